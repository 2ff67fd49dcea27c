// One Gaussian filter of rows in order of time: what it expects of a row, and what it learns of it.
#pragma once

namespace hirank {

// Constants of hirank.online.filters.FilterConfig, and how the step to the row is taken.
struct FilterOptions {
    bool ordered, trend;  // whether the last row matters, and the one before it
    double weight;        // of Q_sum
    double shrinkage;     // factor of correlations
    double ridge, min_variance, inflation, max_innovation, max_move;
    double keep;  // part of Q_sum that is kept
};

// Vectors have m numbers, matrices m x m; nothing is changed.
struct FilterState {
    int m;
    const double *x, *before, *P, *P_cross, *P_before, *Q_sum;
};

struct FilterRow {
    const double* y;  // NaN where missing
    const bool* known;
    const double *mean, *unit, *c1, *c2, *reach, *growth;
};

// What comes out: m numbers each, and if `learn` the state after the row, of the same sizes.
struct FilterResult {
    double *imputed, *variance;
    bool learn;
    double *x, *before, *P, *P_cross, *P_before, *Q_sum;
};

void filter_row(const FilterState& state, const FilterRow& row, const FilterOptions& options,
                const FilterResult& result);

}  // namespace hirank
