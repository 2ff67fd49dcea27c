// The Schatten-p penalty of a low-rank kernel matrix, for L-BFGS.
#pragma once
#include <memory>
#include <vector>

#include "kernel.h"
#include "lbfgs.h"

namespace hirank {

// The variables are the entries of X (n x m) that are not fixed, row by row. Landmarks are rows of
// X; without any, the penalty is exact. X and `fixed` are copied.
std::shared_ptr<Problem> make_penalty(const Kernel& kernel, const double* X, const bool* fixed,
                                      int n, int m, std::vector<int> landmarks, double gamma,
                                      double power);

}  // namespace hirank
