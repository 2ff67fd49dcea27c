// Many rows with one dictionary, each with its own missing entries.
#pragma once
#include <cstdint>

#include "row_basis.h"
#include "row_descent.h"

namespace hirank {

struct RowProblem {
    double* X;  // n x m; missing entries are changed in place
    const bool* observed;
    const double *lower, *upper;  // m, or null
    const int64_t* rows;          // count positions in X
    const int64_t* left_out;      // a point for each row of X, -1 for none; or null
    int count;
};

// Minimize F over the missing entries of each row; write the value of F and the number of
// evaluations of each.
void minimize_rows(const RowBasis& basis, const Rules& rules, const RowProblem& problem,
                   double* values, int64_t* evaluations);
// Write F, n, and its gradient, n x m, at the rows of X. `left_out` is as above.
void evaluate_rows(const RowBasis& basis, const double* X, const int64_t* left_out, int64_t n,
                   double* values, double* gradients);
// Write the point of the dictionary that is nearest to each row on its observed entries.
void find_nearest(const RowBasis& basis, const double* X, const bool* observed, int64_t n,
                  int64_t* nearest);

}  // namespace hirank
