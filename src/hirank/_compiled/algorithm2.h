// Algorithm 2 of the paper: a pass over samples that come in order.
#pragma once

namespace hirank {

struct Algorithm2Options {
    int degree;       // of the polynomial kernel; 0 for the RBF kernel
    double constant;  // offset of the polynomial kernel, or 1 / sigma^2
    double beta, alpha;
    int batch_size, max_inner;
    double tol, momentum, relaxation;
};

// What a pass updates: samples X, n x m, codes Z, n x r, the dictionary D and its last step, r x m,
// and the cost and the weight of each sample, n x 2.
struct Algorithm2State {
    int n, m, r;
    double *X, *Z;
    const bool* observed;
    double *D, *last, *costs;
};

// Update the state by one pass; return how many samples were rejected.
int algorithm2_pass(const Algorithm2State& state, const Algorithm2Options& options);

}  // namespace hirank
