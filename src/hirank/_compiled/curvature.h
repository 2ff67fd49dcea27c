// Inverse curvature of samples and points, as in hirank/core/curvature.py.
#pragma once
#include "basis.h"

namespace hirank {

// The free features of each row of a table, and where they are in the vector of a problem: those of
// row i are features[first[i]], ..., features[first[i + 1] - 1], in this order.
struct FreeEntries {
    std::vector<int> features;
    std::vector<size_t> first;

    FreeEntries() : first(1, 0) {}
    void add_row(const bool* fixed, int m) {
        for (int c = 0; c < m; c++)
            if (!fixed[c]) features.push_back(c);
        first.push_back(features.size());
    }
    int count(int row) const { return static_cast<int>(first[row + 1] - first[row]); }
};

// (H + damping)^-1 on the free entries of each row, with H = <d phi, d phi> - J' root' root J.
// A preconditioner needs few digits, so it is in single precision, multiplied by a unit so that it
// neither overflows nor vanishes.
class InverseCurvature {
   public:
    // `root` has rows of length r, or none; it is the lower triangle of the basis if it is null.
    // K and S are those of the rows, n x r. Row i is divided by weights[i], if there are any.
    InverseCurvature(const Basis& basis, const FreeEntries& free, const Rows& rows, const Vector& K,
                     const double* S, const Vector* root, const Vector& weights);
    void apply(const double* vector, double* out) const;

   private:
    const FreeEntries& free_;
    std::vector<float> blocks_;  // of each row, with lines that are filled up to whole vectors
    std::vector<size_t> first_;  // where the block of a row begins
    double unit_;
};

}  // namespace hirank
