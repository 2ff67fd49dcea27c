// Limited-memory BFGS for one row within bounds, as in hirank.optim.quasi_newton.
//
// The inverse Hessian starts as gamma C^-1. C is the curvature at the point of the dictionary that
// is nearest, cut to the missing entries of the row and damped by a part of its mean diagonal; or
// C = I.
#pragma once
#include <vector>

#include "row_basis.h"

namespace hirank {

constexpr int MAX_MEMORY = 16;

struct Rules {
    int rounds;        // evaluations after the first one
    int memory;        // pairs of steps and changes of the gradient, up to MAX_MEMORY
    double tolerance;  // a row ends where no entry of its next step is larger,
    double decrease;   // or where that step promises no larger decrease
    double damping;    // of the curvature, in mean diagonals; 0 for C = I
};

class RowDescent {
  public:
    RowDescent(int m, const Rules& rules, bool bounded);

    // Begin at an evaluated place, with `missing` as variables; return whether there is a step.
    bool begin(const RowBasis& basis, const Place& place, const std::vector<int>& missing,
               const double* lower, const double* upper);
    // Accept or reject the evaluated place; return whether there is a step.
    bool update(const Place& place);
    // Write the point to evaluate next into a place.
    void propose(Place& place);
    // Write the best point so far into a row, around a center.
    void finish(double* row, const double* center, const double* lower, const double* upper) const;

    double value;
    int evaluations;

  private:
    struct Pair {
        std::vector<double> step, change;
        double inverse;  // 1 / <step, change>, or 0 of a pair that is not used
        double free_inverse, weight;
    };

    const Rules rules_;
    const bool bounded_;
    int q_, newest_;
    double length_, gamma_;
    bool curved_;
    std::vector<int> missing_;
    std::vector<double> x_, gradient_, direction_, trial_, lower_, upper_, room_, factor_;
    std::vector<char> held_;
    std::vector<float> scratch_;
    std::vector<Pair> pairs_;

    void factorize(const RowBasis& basis, const Place& place);
    void precondition(double* v) const;
    void find_direction();
    void release(double* v) const;
    void accept(const Place& place);
    bool has_step() const;
    Pair& pair(int age) { return pairs_[(newest_ - age + rules_.memory) % rules_.memory]; }
};

}  // namespace hirank
