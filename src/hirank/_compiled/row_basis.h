// A dictionary seen through a kernel: the objective of single rows, their gradients and curvature.
//
// With K = k(x, D), a row vector of r values, V = K R' for the factor A^-1 = R'R and Z = V R,
//
//     F(x) = (k(x, x) - |V|^2) / 2,    dF/dx = 1/2 dk(x, x)/dx - (Z * S) D,    S = slope of K,
//
// as in hirank.core.objective. Without a point j of the dictionary, A^-1 loses c c' / c_j, where c
// is its column j: F grows by Z_j^2 / (2 c_j), and Z loses c Z_j / c_j. The Gauss-Newton curvature
// is that of hirank.core.curvature.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "kernel.h"
#include "vec.h"

namespace hirank {

// One row at a time, and all that is computed for it. Memory of other rows is elsewhere.
struct Place {
    Memory memory;
    double *x, *K, *S, *V, *Z, *gradient, *without;  // x is relative to the center
    double value, pivot;
    int left_out = -1;  // a point that the row does without

    Place(int m, int r)
        : memory(2 * size_t(padded(m + 1)) + 5 * size_t(padded(r))), x(memory.get()),
          K(x + padded(m + 1)), S(K + padded(r)), V(S + padded(r)), Z(V + padded(r)),
          without(Z + padded(r)), value(0), pivot(1) {
        gradient = without + padded(r);
    }
};

class RowBasis {
  public:
    const int r, m;
    const Kernel kernel;
    std::vector<double> center;  // of the points, with RBF: distances round better near 0

    // D is r x m; R is r x r, lower triangular
    RowBasis(const Kernel& kernel, const double* D, const double* R, int r, int m);
    ~RowBasis();

    void leave_out(Place& place, int point) const;
    // Set value and gradient of several places, at their x
    void evaluate(int count, Place* const* places) const;
    // The point of the dictionary whose image is nearest to that of an evaluated place
    int nearest(const Place& place) const;
    // The point of the dictionary that is nearest to a row, m, on its observed entries
    int nearest(const double* x, const bool* observed) const;
    // Curvature at a point: the rows of its lower triangle, and the mean diagonal of its first term
    const float* curvature(int point, std::vector<float>& scratch) const;

  private:
    Panels exponent_, root_transposed_, root_, points_;
    Memory start_;              // of the exponents, r
    std::vector<double> D_;     // r x m, centered
    std::vector<double> norm_;  // k(d, d), r
    mutable std::vector<std::atomic<float*>> table_;
    mutable std::atomic<size_t> stored_{0};

    void compute_curvature(int point, float* H) const;
};

}  // namespace hirank
