// The Schatten-p penalty of a kernel matrix over the free entries of a table. With s = p/2,
//
//     F = (tr (K + gamma I)^s - n gamma^s) / (2 s gamma^(s-1)),
//
// exact, or bounded by landmarks: hirank/core/schatten.py has the formulas and is the reference.
// The inverse curvature is that of the least squares of the moment, sample by sample.
#include "penalty.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "curvature.h"
#include "signals.h"

namespace hirank {
namespace {

const double RIDGE = 1e-10;      // as in hirank/core/schatten.py
const double MIN_RATIO = 1e-13;  // of an eigenvalue to the largest: below, it is rounding
const double MIN_KEPT = 1e-6;    // weight of an eigenvector that matters to the curvature

struct PenaltyGuide : Guide {
    std::unique_ptr<InverseCurvature> of_samples;

    void apply(const Vector& vector, Vector& out) const override {
        of_samples->apply(vector.data(), out.data());
    }
};

class Penalty : public Problem {
   public:
    Penalty(const Kernel& kernel, const double* X, const bool* fixed, int n, int m,
            std::vector<int> landmarks, double gamma, double power)
        : n_(n), m_(m), landmarks_(std::move(landmarks)), gamma_(gamma), s_(power / 2),
          X_(X, X + static_cast<size_t>(n) * m),
          basis_(kernel, landmarks_.empty() ? n_ : static_cast<int>(landmarks_.size()), m_) {
        for (int i = 0; i < n_; i++) free_.add_row(fixed + static_cast<size_t>(i) * m_, m_);
    }

    double evaluate(const Vector& x, Vector& gradient) override;
    std::shared_ptr<const Guide> precondition(const Vector& x) override;

   private:
    double exact();
    double with_landmarks();
    bool decompose(int size);
    double spectrum() const;
    void add_root(int size, const Vector& weights, const double* vectors);

    int n_, m_;
    std::vector<int> landmarks_;  // empty: all of K
    double gamma_, s_;
    Vector X_;
    Basis basis_;
    FreeEntries free_;
    Rows rows_;
    Vector K_, S_, V_, P_, Q_, T_, M_, values_, weights_, gradient_, part_, work_;
    Vector root_;  // of the least squares: rows of length r
    std::vector<int> integers_;
    Vector at_;  // the vector that was evaluated last
};

// Q <- eigenvectors of Q, one per row; eigenvalues and their weights in W, between 0 and 1.
bool Penalty::decompose(int size) {
    values_.resize(size);
    if (!blas::eigenvectors(size, Q_.data(), values_.data(), work_, integers_)) return false;
    weights_.resize(size);
    for (int i = 0; i < size; i++) {
        values_[i] = std::max(values_[i], 0.0);
        weights_[i] = std::pow(values_[i] / gamma_ + 1, s_ - 1);
    }
    return true;
}

// F of a matrix with the eigenvalues at hand.
double Penalty::spectrum() const {
    double sum = 0;
    for (double value : values_) sum += std::pow(value / gamma_ + 1, s_) - 1;
    return sum * gamma_ / (2 * s_);
}

// The root of the least squares: the vectors, one per row, times the roots of weights that matter.
void Penalty::add_root(int size, const Vector& weights, const double* vectors) {
    root_.clear();
    for (int i = 0; i < size; i++) {
        if (!(1 - weights_[i] > MIN_KEPT)) continue;
        const double factor = std::sqrt(weights[i]);
        for (int j = 0; j < size; j++)
            root_.push_back(factor * vectors[static_cast<size_t>(i) * size + j]);
    }
}

double Penalty::exact() {
    const size_t square = static_cast<size_t>(n_) * n_;
    basis_.bind(X_.data());
    Q_ = basis_.G;
    if (!decompose(n_)) return std::numeric_limits<double>::infinity();
    const double largest = *std::max_element(values_.begin(), values_.end());
    Vector ratios(n_);
    for (int i = 0; i < n_; i++)
        ratios[i] = values_[i] > MIN_RATIO * largest ? (1 - weights_[i]) / values_[i] : 0;
    add_root(n_, ratios, Q_.data());
    for (int i = 0; i < n_; i++)  // P = W, times the slope
        for (int j = 0; j < n_; j++) Q_[static_cast<size_t>(i) * n_ + j] *= std::sqrt(weights_[i]);
    P_.resize(square);
    blas::gram_of_columns(n_, n_, Q_.data(), P_.data());
    blas::symmetrize(n_, P_.data());
    const double* slope = basis_.slopes(basis_.G, basis_.slope);
    for (size_t a = 0; a < square; a++) P_[a] *= slope[a];
    // Half of the gradient comes from each argument of the kernel, and F is half of the penalty.
    basis_.pull_rows(P_.data(), basis_.points, n_, gradient_.data());
    return spectrum();
}

double Penalty::with_landmarks() {
    const Kernel& kernel = basis_.kernel;
    const int r = basis_.r;
    const size_t square = static_cast<size_t>(r) * r, size = static_cast<size_t>(n_) * r;
    Vector D(static_cast<size_t>(r) * m_);
    for (int j = 0; j < r; j++)
        std::copy_n(X_.data() + static_cast<size_t>(landmarks_[j]) * m_, m_,
                    D.data() + static_cast<size_t>(j) * m_);
    basis_.bind(D.data());
    basis_.read(X_.data(), n_, rows_);
    double total = 0;
    for (double norm : rows_.squares) total += kernel.diagonal(norm);
    if (!basis_.factor(RIDGE * total / n_)) return std::numeric_limits<double>::infinity();
    K_.resize(size), S_.resize(kernel.rbf ? 0 : size), P_.resize(size);
    basis_.evaluate(rows_, n_, K_.data(), S_.data());
    V_ = K_;
    blas::times_lower(n_, r, V_.data(), basis_.root.data(), true);
    check_signals();
    Q_.resize(square), M_.resize(square);
    blas::gram_of_columns(n_, r, V_.data(), Q_.data());
    blas::symmetrize(r, Q_.data());
    if (!decompose(r)) return std::numeric_limits<double>::infinity();
    double value = spectrum() + total / 2;
    for (double eigenvalue : values_) value -= eigenvalue / 2;
    T_ = Q_;  // rows of T = Q' R
    blas::times_lower(r, r, T_.data(), basis_.root.data(), false);
    Vector kept(r), scaled(T_);
    for (int i = 0; i < r; i++) {
        kept[i] = 1 - weights_[i];
        for (int j = 0; j < r; j++) scaled[static_cast<size_t>(i) * r + j] *= kept[i];
    }
    add_root(r, kept, T_.data());
    blas::transposed_product(r, r, r, Q_.data(), scaled.data(), M_.data());
    blas::product(n_, r, r, V_.data(), M_.data(), P_.data());
    const double* S = basis_.slopes(K_, S_);
    for (size_t a = 0; a < size; a++) P_[a] *= S[a];
    check_signals();
    basis_.pull_rows(P_.data(), rows_, n_, gradient_.data());
    for (int i = 0; i < n_; i++) {
        const double own =
            kernel.rbf ? 0 : kernel.degree * kernel.power(rows_.squares[i], kernel.degree - 1);
        for (int c = 0; c < m_; c++) {
            const size_t a = static_cast<size_t>(i) * m_ + c;
            gradient_[a] = own * rows_.x[a] - gradient_[a];
        }
    }
    // The landmarks move with the samples that they are.
    for (int i = 0; i < r; i++)
        for (int j = 0; j < r; j++)
            T_[static_cast<size_t>(i) * r + j] *= std::sqrt(values_[i] * kept[i]);
    blas::gram_of_columns(r, r, T_.data(), M_.data());
    blas::symmetrize(r, M_.data());
    const double* slope = basis_.slopes(basis_.G, basis_.slope);
    for (size_t a = 0; a < square; a++) M_[a] *= slope[a];
    part_.resize(static_cast<size_t>(r) * m_);
    const auto add = [&](double factor) {
        for (int j = 0; j < r; j++)
            for (int c = 0; c < m_; c++)
                gradient_[static_cast<size_t>(landmarks_[j]) * m_ + c] +=
                    factor * part_[static_cast<size_t>(j) * m_ + c];
    };
    basis_.pull_rows(M_.data(), basis_.points, r, part_.data());
    add(1);
    basis_.pull_points(P_.data(), rows_, n_, part_.data());
    add(-1);
    return value;
}

double Penalty::evaluate(const Vector& x, Vector& gradient) {
    at_.clear();
    for (int i = 0; i < n_; i++)
        for (size_t a = free_.first[i]; a < free_.first[i + 1]; a++)
            X_[static_cast<size_t>(i) * m_ + free_.features[a]] = x[a];
    gradient_.resize(X_.size());
    const double value = landmarks_.empty() ? exact() : with_landmarks();
    if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
    for (int i = 0; i < n_; i++)
        for (size_t a = free_.first[i]; a < free_.first[i + 1]; a++)
            gradient[a] = gradient_[static_cast<size_t>(i) * m_ + free_.features[a]];
    at_ = x;
    return value;
}

std::shared_ptr<const Guide> Penalty::precondition(const Vector& x) {
    if (x != at_) {
        Vector unused(x.size());
        evaluate(x, unused);
    }
    const bool all = landmarks_.empty();
    const Rows& rows = all ? basis_.points : rows_;
    const Vector &K = all ? basis_.G : K_, &S = all ? basis_.slope : S_;
    auto guide = std::make_shared<PenaltyGuide>();
    guide->of_samples = std::make_unique<InverseCurvature>(
        basis_, free_, rows, K, basis_.slopes(K, S), &root_, Vector());
    return guide;
}

}  // namespace

std::shared_ptr<Problem> make_penalty(const Kernel& kernel, const double* X, const bool* fixed,
                                      int n, int m, std::vector<int> landmarks, double gamma,
                                      double power) {
    return std::make_shared<Penalty>(kernel, X, fixed, n, m, std::move(landmarks), gamma, power);
}

}  // namespace hirank
