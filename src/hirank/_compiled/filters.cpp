// The formulas are those of hirank/online/filters.py. With S = P_OO = L L', W = L^-1 and innovations
// v of the observed entries O,
//
//     x + P_{:O} S^-1 v     = x + T' u        T = W P_O,  u = W v
//     P - P_{:O} S^-1 P_{O:} = P - T' T
//     (S^-1 v)_i            = (W' u)_i,       (S^-1)_ii = sum_k W_ki^2
//
// and likewise for the covariance Q of the noise and that with the row before.
#include "filters.h"

#include <algorithm>
#include <cmath>

#include "blas.h"

namespace hirank {
namespace {

struct Prediction {
    Vector mean, P, Q, cross;
};

double clip(double a, double reach) { return std::min(std::max(a, -reach), reach); }

Prediction predict(const FilterState& s, const FilterRow& row, const FilterOptions& o) {
    const int m = s.m;
    const size_t size = size_t(m) * m;
    Prediction p{Vector(row.mean, row.mean + m), {}, Vector(size), {}};
    for (int i = 0; i < m; i++)
        for (int j = 0; j < m; j++) {
            const double q = s.Q_sum[size_t(i) * m + j] / o.weight;
            const double shrunk = i == j ? q * (1 + o.ridge) + o.min_variance : q * o.shrinkage;
            p.Q[size_t(i) * m + j] = shrunk * row.growth[i] * row.growth[j];
        }
    p.P = p.Q;
    if (!o.ordered) return p;
    if (o.trend) p.cross.resize(size);
    for (int i = 0; i < m; i++) {
        const double step = clip(s.x[i] - s.before[i], row.reach[i]);
        p.mean[i] += row.c1[i] * (s.x[i] - row.mean[i]);
        if (o.trend) p.mean[i] += row.c2[i] * (s.x[i] - step - row.mean[i]);
        for (int j = 0; j < m; j++) {
            const size_t at = size_t(i) * m + j, mirrored = size_t(j) * m + i;
            p.P[at] += row.c1[i] * row.c1[j] * s.P[at];
            if (!o.trend) continue;
            p.P[at] += row.c1[i] * s.P_cross[at] * row.c2[j] +
                       row.c1[j] * s.P_cross[mirrored] * row.c2[i] +
                       row.c2[i] * row.c2[j] * s.P_before[at];
            p.cross[at] = row.c1[i] * s.P[at] + row.c2[i] * s.P_cross[mirrored];
        }
        p.P[size_t(i) * m + i] *= 1 + o.inflation;
    }
    return p;
}

// W A_O (o x m) for the rows O of A (m x m)
Vector reduce(const Vector& W, const Vector& A, const std::vector<int>& at, int m) {
    const int o = int(at.size());
    Vector rows(size_t(o) * m), product(size_t(o) * m);
    for (int k = 0; k < o; k++)
        std::copy_n(A.data() + size_t(at[k]) * m, m, rows.data() + size_t(k) * m);
    blas::product(o, m, o, W.data(), rows.data(), product.data());
    return product;
}

// A <- A - T'T, symmetric
void subtract_gram(int o, int m, const Vector& T, double* A) {
    // Also where nothing is subtracted: what rounding makes of symmetric rows grows exponentially.
    if (o == 0) return blas::symmetrize(m, A);
    for (size_t k = 0; k < size_t(m) * m; k++) A[k] = -A[k];
    blas::gram_of_columns(o, m, T.data(), A, 1);
    blas::symmetrize(m, A);
    for (size_t k = 0; k < size_t(m) * m; k++) A[k] = -A[k];
}

// T' u, m numbers
Vector pull(const Vector& T, const Vector& u, int m) {
    Vector sum(m);
    for (size_t k = 0; k < u.size(); k++)
        for (int j = 0; j < m; j++) sum[j] += u[k] * T[k * m + j];
    return sum;
}

}  // namespace

void filter_row(const FilterState& s, const FilterRow& row, const FilterOptions& o,
                const FilterResult& result) {
    const int m = s.m;
    const size_t size = size_t(m) * m;
    const Prediction p = predict(s, row, o);
    std::vector<int> at;
    for (int j = 0; j < m; j++)
        if (row.known[j] && !std::isnan(row.y[j])) at.push_back(j);
    int n = int(at.size());

    Vector W(size_t(n) * n), v(n), u(n);
    for (int k = 0; k < n; k++) {
        const int i = at[k];
        for (int l = 0; l < n; l++) W[size_t(k) * n + l] = p.P[size_t(i) * m + at[l]];
        const double reach = o.max_innovation * std::sqrt(p.P[size_t(i) * m + i]);
        v[k] = clip((row.y[i] - p.mean[i]) / row.unit[i], reach);
    }
    if (n && !blas::inverse_root(n, W.data())) {  // by rounding: the row says nothing
        at.clear();
        n = 0;
    }
    for (int k = 0; k < n; k++)
        for (int l = 0; l <= k; l++) u[k] += W[size_t(k) * n + l] * v[l];
    u.resize(n);
    const Vector T = n ? reduce(W, p.P, at, m) : Vector();
    Vector move = pull(T, u, m), variance(m);
    for (int j = 0; j < m; j++) variance[j] = p.P[size_t(j) * m + j];
    for (int k = 0; k < n; k++)
        for (int j = 0; j < m; j++) variance[j] -= T[size_t(k) * m + j] * T[size_t(k) * m + j];
    for (int j = 0; j < m; j++) variance[j] = std::max(variance[j], 0.0);
    for (int k = 0; k < n; k++) {  // observed entries given the others
        double precision = 0, pulled = 0;
        for (int l = k; l < n; l++) {
            const double w = W[size_t(l) * n + k];
            precision += w * w;
            pulled += w * u[l];
        }
        move[at[k]] = v[k] - pulled / precision;
        variance[at[k]] = 1 / precision;
    }
    for (int j = 0; j < m; j++) {
        const double far = o.max_move * std::sqrt(p.P[size_t(j) * m + j]);
        result.imputed[j] = p.mean[j] + row.unit[j] * clip(move[j], far);
        result.variance[j] = row.unit[j] * row.unit[j] * variance[j];
    }
    if (!result.learn) return;

    for (int j = 0; j < m; j++) result.x[j] = std::isnan(row.y[j]) ? result.imputed[j] : row.y[j];
    std::copy_n(s.Q_sum, size, result.Q_sum);
    if (n) {
        const Vector noise = o.ordered ? reduce(W, p.Q, at, m) : T;
        const Vector e = pull(noise, u, m);
        Vector rest = p.Q;
        subtract_gram(n, m, noise, rest.data());
        for (int i = 0; i < m; i++)
            for (int j = 0; j < m; j++) {
                const size_t k = size_t(i) * m + j;
                const double both = row.growth[i] * row.growth[j];
                result.Q_sum[k] = o.keep * s.Q_sum[k] + (rest[k] + e[i] * e[j]) / both;
            }
    }
    std::copy_n(s.before, m, result.before);
    std::copy_n(o.ordered ? p.P.data() : s.P, size, result.P);
    std::copy_n(o.trend ? p.cross.data() : s.P_cross, size, result.P_cross);
    std::copy_n(o.trend ? s.P : s.P_before, size, result.P_before);
    if (o.ordered) subtract_gram(n, m, T, result.P);
    if (o.trend) {
        const Vector across = n ? reduce(W, p.cross, at, m) : Vector();
        const Vector back = pull(across, u, m);
        for (int j = 0; j < m; j++) result.before[j] = s.x[j] + row.unit[j] * back[j];
        if (n) {
            Vector product(size);
            blas::transposed_product(m, m, n, T.data(), across.data(), product.data());
            for (size_t k = 0; k < size; k++) result.P_cross[k] -= product[k];
            subtract_gram(n, m, across, result.P_before);
        }
    }
    for (int i = 0; i < m; i++) {
        if (std::isnan(row.y[i])) continue;
        if (!row.known[i]) result.before[i] = result.x[i];  // the first value is a constant
        if (!o.ordered) continue;
        for (int j = 0; j < m; j++) {
            result.P[size_t(i) * m + j] = result.P[size_t(j) * m + i] = 0;
            result.P_cross[size_t(i) * m + j] = 0;
        }
    }
}

}  // namespace hirank
