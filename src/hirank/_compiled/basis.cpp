#include "basis.h"

#include "vec.h"

namespace hirank {

double inner_product(const double* a, const double* b, size_t n) {
    double sums[16] = {0};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int w = 0; w < 16; w++) sums[w] += a[i + w] * b[i + w];
    double total = 0;
    for (double part : sums) total += part;
    for (; i < n; i++) total += a[i] * b[i];
    return total;
}

void Basis::read(const double* X, int n, Rows& rows) const {
    rows.x.resize(static_cast<size_t>(n) * m);
    rows.squares.resize(n);
    for (int i = 0; i < n; i++) {
        const double* from = X + static_cast<size_t>(i) * m;
        double* to = rows.x.data() + static_cast<size_t>(i) * m;
        for (int c = 0; c < m; c++) to[c] = from[c] - center[c];
        rows.squares[i] = inner_product(to, to, m);
    }
}

void Basis::bind(const double* D) {
    size_t size = static_cast<size_t>(r) * r;
    center.assign(m, 0.0);
    if (kernel.rbf) {  // distances do not depend on the origin, but their rounding does
        for (int j = 0; j < r; j++)
            for (int c = 0; c < m; c++) center[c] += D[static_cast<size_t>(j) * m + c];
        for (double& c : center) c /= r;
    }
    read(D, r, points);
    columns.resize(points.x.size());
    for (int j = 0; j < r; j++)
        for (int c = 0; c < m; c++)
            columns[static_cast<size_t>(c) * r + j] = points.x[static_cast<size_t>(j) * m + c];
    G.resize(size);
    if (!kernel.rbf) slope.resize(size);
    evaluate(points, r, G.data(), slope.data());
}

bool Basis::factor(double beta) {
    root = G;
    for (int j = 0; j < r; j++) root[static_cast<size_t>(j) * r + j] += beta;
    return blas::inverse_root(r, root.data());
}

void Basis::evaluate(const Rows& rows, int n, double* K, double* S) const {
    blas::product_transposed(n, r, m, rows.x.data(), points.x.data(), K);
    for (int i = 0; i < n; i++) {
        double* k = K + static_cast<size_t>(i) * r;
        if (kernel.rbf) {
            double square = rows.squares[i];
            const double* squares = points.squares.data();
            for (int j = 0; j < r; j++)
                k[j] = kernel.inverse_square * (k[j] - (square + squares[j]) / 2);
            exp(k, r);
            continue;
        }
        double* s = S + static_cast<size_t>(i) * r;
        for (int j = 0; j < r; j++) k[j] += kernel.offset, s[j] = 1;
        for (int power = 1; power < kernel.degree; power++)
            for (int j = 0; j < r; j++) s[j] *= k[j];
        for (int j = 0; j < r; j++) k[j] *= s[j], s[j] *= kernel.degree;
    }
}

void Basis::pull_rows(const double* P, const Rows& rows, int n, double* out) const {
    blas::product(n, m, r, P, points.x.data(), out);
    if (!kernel.rbf) return;
    Vector ones(r, 1.0);
    for (int i = 0; i < n; i++) {
        const double* p = P + static_cast<size_t>(i) * r;
        const double* x = rows.x.data() + static_cast<size_t>(i) * m;
        double *o = out + static_cast<size_t>(i) * m, sum = inner_product(p, ones.data(), r);
        for (int c = 0; c < m; c++) o[c] = kernel.inverse_square * (o[c] - sum * x[c]);
    }
}

void Basis::pull_points(const double* P, const Rows& rows, int n, double* out) const {
    blas::transposed_product(r, m, n, P, rows.x.data(), out);
    if (!kernel.rbf) return;
    Vector sums(r, 0.0);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < r; j++) sums[j] += P[static_cast<size_t>(i) * r + j];
    for (int j = 0; j < r; j++) {
        const double* d = points.x.data() + static_cast<size_t>(j) * m;
        double* o = out + static_cast<size_t>(j) * m;
        for (int c = 0; c < m; c++) o[c] = kernel.inverse_square * (o[c] - sums[j] * d[c]);
    }
}

}  // namespace hirank
