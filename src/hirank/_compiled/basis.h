// A dictionary under a kernel, for products with many rows: Basis of hirank.core.objective.
#pragma once
#include "blas.h"
#include "kernel.h"

namespace hirank {

// Rows of a table as a basis reads them: centered if the kernel is RBF, with squared norms.
struct Rows {
    Vector x, squares;  // n x m and n
};

struct Basis {
    Kernel kernel;
    int r, m;
    Vector center;   // m; 0 unless the kernel is RBF
    Rows points;     // r x m
    Vector columns;  // the points, m x r
    Vector G, slope; // r x r; no slope if the kernel is RBF, where it is G
    Vector root;     // r x r, lower triangular: A^-1 = root' root, A = G + beta I

    Basis(const Kernel& kernel, int r, int m) : kernel(kernel), r(r), m(m) {}
    void bind(const double* D);  // to the points D, r x m: all but the root
    bool factor(double beta);    // the root; false if G + beta I is not positive definite
    void read(const double* X, int n, Rows& rows) const;
    // K = k(X, D) and its slope S, n x r; S is not written if the kernel is RBF, where it is K.
    void evaluate(const Rows& rows, int n, double* K, double* S) const;
    const double* slopes(const Vector& K, const Vector& S) const {
        return (kernel.rbf ? K : S).data();
    }
    // out (n x m) = the gradient in X of <W, k(X, D)>, for P = W * S
    void pull_rows(const double* P, const Rows& rows, int n, double* out) const;
    // out (r x m) = the gradient in D of <W, k(X, D)>, for P = W * S
    void pull_points(const double* P, const Rows& rows, int n, double* out) const;
};

// The sum over i of a_i b_i, in a fixed order.
double inner_product(const double* a, const double* b, size_t n);

}  // namespace hirank
