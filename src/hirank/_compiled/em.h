// Rows with missing entries under a mixture of Gaussians.
#pragma once
#include <cstddef>

namespace hirank {

struct Mixture {
    int K, v;  // numbers of components and of features
    const double *log_weights, *means, *covariances, *precisions, *log_dets;

    const double* mean(int k) const { return means + std::size_t(k) * v; }
    const double* covariance(int k) const { return covariances + std::size_t(k) * v * v; }
    const double* precision(int k) const { return precisions + std::size_t(k) * v * v; }
};

// Rows should be in an order in which equal patterns of missing entries follow each other.
struct PartialRows {
    const double* X;  // n x v
    const bool* observed;
    std::size_t n;
};

// Sums over rows, weighted with the shares of each component.
struct MomentSums {
    double *counts, *totals, *squares;  // K, K x v, K x v x v
};

// The E-step: write the imputed rows (n x v), which components are likely (n x K), and the sums;
// return the log-likelihood. Unless `likely` (n x K) is null, only components marked there count.
double mixture_moments(const Mixture& mixture, const PartialRows& rows, const bool* likely,
                       double* imputed, bool* still_likely, const MomentSums& sums);
// Write the posterior probabilities of the components given each row, n x K.
void mixture_shares(const Mixture& mixture, const PartialRows& rows, double* shares);
// Replace the missing entries in `filled`, a copy of the rows, by their conditional means, and
// write their standard deviations into `deviations`, n x v, 0 elsewhere, unless it is null.
void mixture_conditional(const Mixture& mixture, const PartialRows& rows, double* filled,
                         double* deviations);

}  // namespace hirank
