// Products and triangular factors of small matrices, row by row: each sum has one fixed order.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "vec.h"

namespace hirank {

constexpr int ROWS = 4;  // rows whose products with a matrix are computed together

// One tile of D P for R rows of D (v numbers each) and two vectors of columns of P, v x v. P stays
// as it is: for one row, to store it in panels would take longer than the product.
template <int R>
inline void multiply_columns(const double* D, const double* P, int v, int column, double* product) {
    Vec sums[R][2] = {};
    for (int c = 0; c < v; c++) {
        const double* p = P + size_t(c) * v + column;
        const Vec p0 = load(p), p1 = load(p + LANES);
        for (int r = 0; r < R; r++) {
            const double d = D[r * v + c];
            sums[r][0] += d * p0;
            sums[r][1] += d * p1;
        }
    }
    for (int r = 0; r < R; r++) {
        store(product + r * v + column, sums[r][0]);
        store(product + r * v + column + LANES, sums[r][1]);
    }
}

// D P for up to ROWS rows of D; each row gets the same bits whatever their number.
inline void multiply_rows(const double* D, const double* P, int rows, int v, double* product) {
    if (v < WIDTH) {
        std::fill(product, product + rows * v, 0.0);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < v; c++) add(D[r * v + c], P + c * v, product + r * v, v);
        return;
    }
    // The last tile overlaps the one before where v is not a multiple of its width.
    for (int column = 0; column < v; column += WIDTH) {
        const int at = std::min(column, v - WIDTH);
        switch (rows) {
            case 4: multiply_columns<4>(D, P, v, at, product); break;
            case 3: multiply_columns<3>(D, P, v, at, product); break;
            case 2: multiply_columns<2>(D, P, v, at, product); break;
            default: multiply_columns<1>(D, P, v, at, product);
        }
    }
}

// d P for one row d, v numbers of which only those at `some` are not 0: COUNT vectors of columns.
template <int COUNT>
inline void multiply_some_columns(const double* d, const std::vector<int>& some, const double* P,
                                  int v, int column, double* product) {
    Vec sums[COUNT] = {};
    for (int c : some) {
        const double* p = P + size_t(c) * v + column;
        for (int w = 0; w < COUNT; w++) sums[w] += d[c] * load(p + w * LANES);
    }
    for (int w = 0; w < COUNT; w++) store(product + column + w * LANES, sums[w]);
}

// d P for one row d, v numbers of which only those at `some` are not 0. A processor adds to eight
// sums in about the time of one.
inline void multiply_some(const double* d, const std::vector<int>& some, const double* P, int v,
                          double* product) {
    if (v < WIDTH) {
        std::fill(product, product + v, 0.0);
        for (int c : some) add(d[c], P + size_t(c) * v, product, v);
        return;
    }
    int column = 0;
    for (; column + 8 * LANES <= v; column += 8 * LANES)
        multiply_some_columns<8>(d, some, P, v, column, product);
    // The last tile overlaps the one before where v is not a multiple of its width.
    for (; column < v; column += WIDTH)
        multiply_some_columns<2>(d, some, P, v, std::min(column, v - WIDTH), product);
}

// U with A = U' U in place of the upper half of A, s x s. Returns log det A. Pivots that rounding
// has made negative are replaced; NaN remains.
inline double factorize(double* A, int s) {
    double log_det = 0, product = 1;
    for (int j = 0; j < s; j++) {
        double* row = A + size_t(j) * s;
        const double pivot = std::max(row[j], 1e-300);
        const double scale = 1 / std::sqrt(pivot);
        for (int e = j; e < s; e++) row[e] *= scale;
        row[j] = pivot * scale;
        for (int i = j + 1; i < s; i++) add(-row[i], row + i, A + size_t(i) * s + i, s - i);
        product *= pivot;
        if (!(product > 1e-150 && product < 1e150)) {
            log_det += std::log(product);
            product = 1;
        }
    }
    return log_det + std::log(product);
}

// y = U'^-1 y. Returns |y|^2.
inline double solve_lower(const double* U, double* y, int s) {
    double square = 0;
    for (int j = 0; j < s; j++) {
        const double* row = U + size_t(j) * s;
        y[j] /= row[j];
        square += y[j] * y[j];
        add(-y[j], row + j + 1, y + j + 1, s - j - 1);
    }
    return square;
}

// y = U^-1 y
inline void solve_upper(const double* U, double* y, int s) {
    for (int j = s - 1; j >= 0; j--) {
        const double* row = U + size_t(j) * s;
        double sum = y[j];
        for (int e = j + 1; e < s; e++) sum -= row[e] * y[e];
        y[j] = sum / row[j];
    }
}

// T = U'^-1 T for T, s x n.
inline void solve_rows(const double* U, double* T, int s, int n) {
    for (int j = 0; j < s; j++) {
        double* row = T + size_t(j) * n;
        for (int i = 0; i < j; i++) add(-U[size_t(i) * s + j], T + size_t(i) * n, row, n);
        const double scale = 1 / U[size_t(j) * s + j];
        for (int e = 0; e < n; e++) row[e] *= scale;
    }
}

// W = U'^-1, lower, s x s.
inline void invert(const double* U, double* W, int s) {
    for (int i = 0; i < s; i++) {
        double* row = W + size_t(i) * s;
        std::fill(row, row + s, 0.0);
        row[i] = 1;
        for (int j = 0; j < i; j++) add(-U[size_t(j) * s + i], W + size_t(j) * s, row, j + 1);
        const double scale = 1 / U[size_t(i) * s + i];
        for (int e = 0; e <= i; e++) row[e] *= scale;
    }
}

// The lower half of C += sign T' T for T, s x n, whose row j begins with `lead(j)` numbers only.
template <class Lead>
void add_square(double sign, const double* T, int s, int n, Lead lead, double* C) {
    for (int j = 0; j < s; j++) {
        const double* row = T + size_t(j) * n;
        for (int a = 0; a < lead(j); a++) add(sign * row[a], row, C + size_t(a) * n, a + 1);
    }
}

}  // namespace hirank
