// The objective of one stage of the fit of a dictionary, for L-BFGS.
#pragma once
#include <memory>

#include "kernel.h"
#include "lbfgs.h"

namespace hirank {

// The variables are the entries of X (n x m) that are not observed, row by row, and a dictionary
// of r points. X and `observed` are copied.
std::shared_ptr<Problem> make_stage(const Kernel& kernel, const double* X, const bool* observed,
                                    int n, int m, int r, double beta, double alpha, int n_threads);

}  // namespace hirank
