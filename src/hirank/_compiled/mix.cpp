// The mean squares A of an entry are those of its feature and age, with those of all features
// counted as a few entries; the weights A^-1 1 / (1' A^-1 1) have the smallest mean squared error of
// all that sum to 1. Where some are negative, these predictions are dropped.
#include "mix.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hirank {
namespace {

using Vector = std::vector<double>;

// The moments of all features by class of ages, b x K x K; few entries borrow from neighbors.
Vector pool(const MixMoments& mix, const MixOptions& o) {
    const int K = mix.K, b = mix.b;
    Vector pooled(size_t(b) * K * K);
    for (int c = 0; c < b; c++) {
        double* A = pooled.data() + size_t(c) * K * K;
        double total = 1e-9;
        for (int d = 0; d < b; d++) {
            const double n = mix.pooled_entries[d];
            const double share = std::pow(o.neighbor, std::abs(c - d)) * (n / (n + o.few_entries));
            total += share;
            for (int k = 0; k < K * K; k++)
                A[k] += share * (mix.pooled[size_t(d) * K * K + k] / std::max(n, 1e-9));
        }
        for (int k = 0; k < K; k++) A[k * K + k] += 1e-9 * mix.prior[k];
        for (int k = 0; k < K * K; k++) A[k] /= total;
    }
    return pooled;
}

// w <- A^-1 1 over the predictions that are not dropped, 0 for the others; A is overwritten.
void solve(int K, double* A, const char* dropped, double* w) {
    for (int k = 0; k < K; k++) w[k] = dropped[k] ? 0 : 1;
    for (int k = 0; k < K; k++) {
        if (dropped[k]) continue;
        for (int i = k + 1; i < K; i++) {
            if (dropped[i]) continue;
            const double factor = A[i * K + k] / A[k * K + k];
            for (int j = k; j < K; j++) A[i * K + j] -= factor * A[k * K + j];
            w[i] -= factor * w[k];
        }
    }
    for (int k = K - 1; k >= 0; k--) {
        if (dropped[k]) continue;
        for (int j = k + 1; j < K; j++)
            if (!dropped[j]) w[k] -= A[k * K + j] * w[j];
        w[k] /= A[k * K + k];
    }
}

void minimal_weights(int K, const double* A, double ridge, double* w) {
    std::vector<char> dropped(K);
    Vector B(size_t(K) * K);
    for (int round = 0; round < K; round++) {
        std::copy_n(A, K * K, B.data());
        for (int k = 0; k < K; k++) B[k * K + k] += ridge;
        solve(K, B.data(), dropped.data(), w);
        double total = 0;
        for (int k = 0; k < K; k++) total += w[k];
        bool negative = false;
        for (int k = 0; k < K; k++) {
            w[k] /= total;
            if (w[k] < 0) dropped[k] = negative = true;
        }
        if (!negative) break;
    }
    double total = 0;
    for (int k = 0; k < K; k++) total += w[k] = std::max(w[k], 0.0);
    for (int k = 0; k < K; k++) w[k] /= total;
}

}  // namespace

void mix_weights(const MixMoments& mix, const MixOptions& o, size_t n, const int64_t* features,
                 const int64_t* ages, const double* units, double* weights, double* squares) {
    const int K = mix.K, b = mix.b, size = K * K;
    const Vector pooled = pool(mix, o);
    for (size_t e = 0; e < n; e++) {
        double *A = squares + e * size, count = 0;
        std::fill(A, A + size, 0.0);
        for (int c = 0; c < b; c++) {
            const double near = std::pow(o.neighbor, std::abs(int(ages[e]) - c));
            const size_t at = size_t(features[e]) * b + c;
            count += near * mix.entries[at];
            for (int k = 0; k < size; k++) A[k] += near * mix.moments[at * size + k];
        }
        double least = INFINITY;
        for (int k = 0; k < size; k++) {
            A[k] = A[k] / (units[e] * units[e]) + o.pooled_entries * pooled[ages[e] * size + k];
            A[k] /= count + o.pooled_entries;
        }
        for (int k = 0; k < K; k++) least = std::min(least, A[k * K + k]);
        minimal_weights(K, A, o.ridge * least + 1e-12, weights + e * K);
    }
}

}  // namespace hirank
