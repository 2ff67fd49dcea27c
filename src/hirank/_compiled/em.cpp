// Rows with missing entries under a mixture of K Gaussians: the E-step of EM, and conditionals.
//
// For a row x with observed entries o and missing entries u, and a component with mean mu,
// covariance S and precision P = S^-1, let d = x - mu. Then
//
//     E[x_u | x_o] = mu_u - P_uu^-1 P_uo d_o       = mu_u + S_uo S_oo^-1 d_o
//     C = Cov[x_u | x_o] = P_uu^-1                 = S_uu - S_uo S_oo^-1 S_ou
//     -2 log p(x_o) = log det S_oo + d_o' S_oo^-1 d_o + |o| log 2 pi
//     d_o' S_oo^-1 d_o = d_o' P_oo d_o - |P_uu^-1/2 P_uo d_o|^2
//     log det S_oo = log det S + log det P_uu
//
// Only the smaller of P_uu and S_oo is factorized, once for rows in a row with the same pattern of
// missing entries. Conditional means and covariances are computed for those components only that
// the row may belong to, and a row may be restricted to components that were likely before
// (hirank/models/em.py). No sum depends on which rows are computed together.
#include "em.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "signals.h"
#include "small_matrices.h"
#include "vec.h"

namespace hirank {
namespace {

constexpr double LOG_2_PI = 1.8378770664093454836;
constexpr double NO_SHARE = 1e-15;  // a component with less than this of a row is left out of it
constexpr double NEGLIGIBLE = 1e-8;  // the same of moments, as in hirank/models/em.py
constexpr int PENDING = 8;          // rows after which the moments of a component are updated

// The rows of a table, up to ROWS at a time, given their observed entries.
class Rows {
public:
    std::vector<double> shares;    // K; of the present row
    std::vector<double> filled;    // K x v; deviations from the means, of components with a share
    std::vector<int> missing, seen;
    double log_likelihood = 0;

    // Only the components of a row that are marked in `likely`, n x K, are visited, unless it is
    // null.
    Rows(const Mixture& mixture, const PartialRows& table, const bool* likely = nullptr)
        : shares(mixture.K), filled(size_t(mixture.K) * mixture.v), m(mixture),
          v(mixture.v), X(table.X), observed(table.observed), n(table.n), likely(likely),
          deviations(size_t(m.K) * ROWS * v), pulls(size_t(m.K) * ROWS * v), factors(m.K),
          factorized(m.K), log_dets(m.K), y(size_t(m.K) * v), covariances(m.K), known(m.K) {}

    // Compute the products that rows first to last - 1 share.
    void prepare(size_t first, size_t last) {
        begin = first;
        if (likely) return;  // few products, of each row alone
        const int rows = static_cast<int>(last - first);
        for (int k = 0; k < m.K; k++) {
            double* D = deviations.data() + size_t(k) * ROWS * v;
            const double* mean = m.mean(k);
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < v; c++) {
                    const size_t cell = (first + r) * v + c;
                    D[r * v + c] = observed[cell] ? X[cell] - mean[c] : 0.0;
                }
            multiply_rows(D, m.precision(k), rows, v, pulls.data() + size_t(k) * ROWS * v);
        }
    }

    // Compute the shares of the components in a row.
    void visit(size_t row) {
        find_pattern(row);
        const int q = static_cast<int>(missing.size()), o = v - q;
        double top = -std::numeric_limits<double>::infinity();
        for (int k = 0; k < m.K; k++) {
            if (likely && !likely[row * m.K + k]) {
                shares[k] = -std::numeric_limits<double>::infinity();
                continue;
            }
            factorize_pattern(k);
            if (likely) pull_row(row, k);
            const double* d = deviation(row, k);
            double* solved = y.data() + size_t(k) * v;
            double square;
            if (by_precision) {
                const double* pull = pulls.data() + (size_t(k) * ROWS + (row - begin)) * v;
                square = 0;
                for (int c : seen) square += d[c] * pull[c];
                for (int a = 0; a < q; a++) solved[a] = pull[missing[a]];
                square -= solve_lower(factors[k].data(), solved, q);
            } else {
                for (int a = 0; a < o; a++) solved[a] = d[seen[a]];
                square = solve_lower(factors[k].data(), solved, o);
            }
            shares[k] = m.log_weights[k] - (log_dets[k] + square + o * LOG_2_PI) / 2;
            top = std::max(top, shares[k]);
        }
        double sum = 0;
        for (double& share : shares) sum += share = std::exp(share - top);
        log_likelihood = top + std::log(sum);
        for (int k = 0; k < m.K; k++)  // a sum that is not finite gives nothing to the others
            shares[k] = likely && !likely[row * m.K + k] ? 0 : shares[k] / sum;
    }

    // Compute the conditional means of the components with a share in the row that was visited.
    void fill(size_t row) {
        for (int k = 0; k < m.K; k++)
            if (has_share(k)) fill(row, k);
    }

    // About the multiplications of ROWS rows.
    double work() const { return double(ROWS) * m.K * v * (v + 100); }

    bool is_negligible(int k) const { return shares[k] < NEGLIGIBLE; }

    bool has_share(int k) const { return !(shares[k] < NO_SHARE); }

    // Whether the next row has another pattern of missing entries.
    bool pattern_ends(size_t row) const {
        const bool *now = observed + row * v, *next = now + v;
        return row + 1 == n || !std::equal(now, next, next);
    }

    // The covariance of the missing entries given component k: lower half of a q x q matrix.
    const double* covariance(int k) {
        const int q = static_cast<int>(missing.size()), o = v - q;
        if (known[k]) return covariances[k].data();
        known[k] = true;
        std::vector<double>& C = covariances[k];
        C.assign(size_t(q) * q, 0.0);
        if (by_precision) {
            const int s = q;
            half.resize(size_t(s) * s);
            invert(factors[k].data(), half.data(), s);
            add_square(1.0, half.data(), s, s, [](int j) { return j + 1; }, C.data());
        } else {
            const double* S = m.covariance(k);
            half.resize(size_t(o) * q);
            for (int a = 0; a < o; a++)
                for (int e = 0; e < q; e++)
                    half[size_t(a) * q + e] = S[size_t(seen[a]) * v + missing[e]];
            solve_rows(factors[k].data(), half.data(), o, q);
            for (int a = 0; a < q; a++)
                for (int e = 0; e <= a; e++)
                    C[size_t(a) * q + e] = S[size_t(missing[a]) * v + missing[e]];
            add_square(-1.0, half.data(), o, q, [q](int) { return q; }, C.data());
        }
        return C.data();
    }

private:
    const Mixture& m;
    const int v;
    const double* X;
    const bool* observed;
    const size_t n;
    const bool* likely;
    size_t begin = 0;                       // the first of the rows that are prepared
    size_t pattern = SIZE_MAX;              // a row with the pattern that factors belong to
    bool by_precision = true;
    std::vector<double> deviations, pulls;  // K x ROWS x v; 0 at missing entries, and times P
    std::vector<std::vector<double>> factors;
    std::vector<char> factorized;           // K; whether the factor is that of the pattern
    std::vector<double> log_dets;           // K; of S_oo
    std::vector<double> y, half;
    std::vector<std::vector<double>> covariances;
    std::vector<char> known;                // K; whether the covariance has been computed

    const double* deviation(size_t row, int k) const {
        return deviations.data() + (size_t(k) * ROWS + (row - begin)) * v;
    }

    void find_pattern(size_t row) {
        const bool* now = observed + row * v;
        if (pattern != SIZE_MAX && std::equal(now, now + v, observed + pattern * v)) return;
        pattern = row;
        missing.clear();
        seen.clear();
        for (int c = 0; c < v; c++) (now[c] ? seen : missing).push_back(c);
        by_precision = missing.size() <= seen.size();
        std::fill(known.begin(), known.end(), false);
        std::fill(factorized.begin(), factorized.end(), false);
    }

    // Factorize what component k has at the pattern of the present row.
    void factorize_pattern(int k) {
        if (factorized[k]) return;
        factorized[k] = true;
        const std::vector<int>& at = by_precision ? missing : seen;
        const int s = static_cast<int>(at.size());
        const double* A = by_precision ? m.precision(k) : m.covariance(k);
        factors[k].resize(size_t(s) * s);
        for (int a = 0; a < s; a++)
            for (int e = a; e < s; e++)
                factors[k][size_t(a) * s + e] = A[size_t(at[a]) * v + at[e]];
        log_dets[k] = factorize(factors[k].data(), s) + (by_precision ? m.log_dets[k] : 0.0);
    }

    // Compute the deviations of one row from the mean of component k, and times P if needed.
    void pull_row(size_t row, int k) {
        double* d = deviations.data() + (size_t(k) * ROWS + (row - begin)) * v;
        const double* mean = m.mean(k);
        std::fill(d, d + v, 0.0);
        for (int c : seen) d[c] = X[row * v + c] - mean[c];
        if (!by_precision) return;
        double* pull = pulls.data() + (size_t(k) * ROWS + (row - begin)) * v;
        multiply_some(d, seen, m.precision(k), v, pull);
    }

    // Write the deviations of a row from the mean of component k, with conditional means.
    void fill(size_t row, int k) {
        const int q = static_cast<int>(missing.size()), o = v - q;
        double *to = filled.data() + size_t(k) * v, *solved = y.data() + size_t(k) * v;
        const double* d = deviation(row, k);
        std::copy(d, d + v, to);
        if (by_precision) {
            solve_upper(factors[k].data(), solved, q);
            for (int a = 0; a < q; a++) to[missing[a]] = -solved[a];
            return;
        }
        solve_upper(factors[k].data(), solved, o);
        for (int e : missing) {
            const double* s = m.covariance(k) + size_t(e) * v;
            double sum = 0;
            for (int a = 0; a < o; a++) sum += s[seen[a]] * solved[a];
            to[e] = sum;
        }
    }
};

// Sums over rows, weighted with the shares of each component.
class Moments {
public:
    Moments(int K, int v, double* counts, double* totals, double* squares)
        : v(v), counts(counts), totals(totals), squares(squares), pending(size_t(K) * PENDING * v),
          waiting(K, 0), shares(K, 0.0) {}

    void add_row(int k, double share, const double* d) {
        counts[k] += share;
        shares[k] += share;
        add(share, d, totals + size_t(k) * v, v);
        const double root = std::sqrt(share);
        double* to = pending.data() + (size_t(k) * PENDING + waiting[k]++) * v;
        for (int c = 0; c < v; c++) to[c] = root * d[c];
        if (waiting[k] == PENDING) flush(k);
    }

    // Add what the missing entries vary by in the rows of one pattern that were added since.
    void end_pattern(Rows& rows) {
        const std::vector<int>& at = rows.missing;
        const int q = static_cast<int>(at.size());
        for (size_t k = 0; k < shares.size(); k++) {
            const double share = shares[k];
            shares[k] = 0;
            if (share == 0.0 || q == 0) continue;
            const double* C = rows.covariance(static_cast<int>(k));
            for (int a = 0; a < q; a++) {
                double* row = squares + (k * v + at[a]) * v;
                for (int e = 0; e <= a; e++) row[at[e]] += share * C[size_t(a) * q + e];
            }
        }
    }

    void finish() {
        for (size_t k = 0; k < waiting.size(); k++) {
            flush(static_cast<int>(k));
            double* Q = squares + k * v * v;
            for (int a = 0; a < v; a++)
                for (int e = 0; e < a; e++) Q[size_t(e) * v + a] = Q[size_t(a) * v + e];
        }
    }

private:
    const int v;
    double *counts, *totals, *squares;  // K, K x v, and K x v x v, of which the lower half is used
    std::vector<double> pending;        // K x PENDING x v
    std::vector<int> waiting;           // K; rows in `pending`
    std::vector<double> shares;         // K; sums over the rows of the present pattern

    void flush(int k) {
        double* rows = pending.data() + size_t(k) * PENDING * v;
        std::fill(rows + size_t(waiting[k]) * v, rows + size_t(PENDING) * v, 0.0);
        waiting[k] = 0;
        for (int a = 0; a < v; a++) {
            double* __restrict to = squares + (size_t(k) * v + a) * v;
            double w[PENDING];
            for (int i = 0; i < PENDING; i++) w[i] = rows[size_t(i) * v + a];
            for (int e = 0; e <= a; e++) {
                double sum = to[e];
                for (int i = 0; i < PENDING; i++) sum += w[i] * rows[size_t(i) * v + e];
                to[e] = sum;
            }
        }
    }
};

// Call `use` for each row, with the shares of the components computed.
template <class Use>
void for_each_row(Rows& rows, size_t n, Use use) {
    Signals signals;
    for (size_t first = 0; first < n; first += ROWS) {
        const size_t last = std::min(n, first + ROWS);
        signals.check(rows.work());
        rows.prepare(first, last);
        for (size_t row = first; row < last; row++) {
            rows.visit(row);
            use(row);
        }
    }
}

}  // namespace

double mixture_moments(const Mixture& mixture, const PartialRows& table, const bool* likely,
                       double* imputed, bool* still_likely, const MomentSums& sums) {
    const int K = mixture.K, v = mixture.v;
    std::fill_n(imputed, table.n * v, 0.0);
    std::fill_n(sums.counts, K, 0.0);
    std::fill_n(sums.totals, size_t(K) * v, 0.0);
    std::fill_n(sums.squares, size_t(K) * v * v, 0.0);
    Moments moments(K, v, sums.counts, sums.totals, sums.squares);
    Rows rows(mixture, table, likely);
    double log_likelihood = 0;
    for_each_row(rows, table.n, [&](size_t row) {
        log_likelihood += rows.log_likelihood;
        rows.fill(row);
        double* out = imputed + row * v;
        for (int k = 0; k < K; k++) {
            still_likely[row * K + k] = !rows.is_negligible(k);
            if (!rows.has_share(k)) continue;
            const double *d = rows.filled.data() + size_t(k) * v, *mean = mixture.mean(k);
            const double share = rows.shares[k];
            for (int c = 0; c < v; c++) out[c] += share * (mean[c] + d[c]);
            if (!rows.is_negligible(k)) moments.add_row(k, share, d);
        }
        if (rows.pattern_ends(row)) moments.end_pattern(rows);
    });
    moments.finish();
    return log_likelihood;
}

void mixture_shares(const Mixture& mixture, const PartialRows& table, double* shares) {
    Rows rows(mixture, table);
    for_each_row(rows, table.n, [&](size_t row) {
        std::copy(rows.shares.begin(), rows.shares.end(), shares + row * mixture.K);
    });
}

void mixture_conditional(const Mixture& mixture, const PartialRows& table, double* filled,
                         double* deviations) {
    const int K = mixture.K, v = mixture.v;
    if (deviations) std::fill_n(deviations, table.n * v, 0.0);
    Rows rows(mixture, table);
    for_each_row(rows, table.n, [&](size_t row) {
        double* out = filled + row * v;
        rows.fill(row);
        for (int c : rows.missing) out[c] = 0;
        for (int k = 0; k < K; k++) {
            if (!rows.has_share(k)) continue;
            const double *d = rows.filled.data() + size_t(k) * v, *mean = mixture.mean(k);
            for (int c : rows.missing) out[c] += rows.shares[k] * (mean[c] + d[c]);
        }
        if (!deviations) return;
        double* var = deviations + row * v;
        const int q = static_cast<int>(rows.missing.size());
        for (int k = 0; k < K; k++) {
            if (!rows.has_share(k)) continue;
            const double *d = rows.filled.data() + size_t(k) * v, *mean = mixture.mean(k);
            const double* C = rows.covariance(k);
            for (int a = 0; a < q; a++) {
                const int c = rows.missing[a];
                const double apart = mean[c] + d[c] - out[c];
                var[c] += rows.shares[k] * (C[size_t(a) * q + a] + apart * apart);
            }
        }
        for (int c : rows.missing) var[c] = std::sqrt(var[c]);
    });
}

}  // namespace hirank
