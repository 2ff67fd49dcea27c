// Weights of several predictions of an entry, from running moments of their errors.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hirank {

// Running moments of the errors of K predictions: m features, b classes of ages.
struct MixMoments {
    int K, b;
    const double *moments, *entries;        // m x b x K x K and m x b
    const double *pooled, *pooled_entries;  // b x K x K and b
    const double* prior;                    // K
};

// Constants of hirank.online.mixing.MixConfig.
struct MixOptions {
    double pooled_entries, few_entries, neighbor, ridge;
};

// The weights (n x K) and mean squares of errors (n x K x K) of n entries: their features, classes
// of ages, and units.
void mix_weights(const MixMoments& mix, const MixOptions& options, size_t n,
                 const int64_t* features, const int64_t* ages, const double* units,
                 double* weights, double* squares);

}  // namespace hirank
