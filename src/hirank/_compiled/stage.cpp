// One stage of the fit of a dictionary: missing entries of X and the points D in one vector.
//
//     F(X, D) = 1/2 sum_i k(x_i, x_i) - 1/2 <K A^-1, K> + alpha/2 tr G,    A = G + beta I,
//
// with its gradients, and the inverse curvature of each sample and each point, as
// hirank/core/objective.py and hirank/optim/lbfgs.py have them.
#include "stage.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <limits>
#include <thread>

#include "curvature.h"
#include "signals.h"

namespace hirank {
namespace {

const size_t BLOCK_ENTRIES = 1 << 17;  // of K and Z: a megabyte each stays in the cache
const double MIN_USE = 1e-3;           // as in hirank/optim/lbfgs.py

// Work memory of one thread: a block of rows, and what it adds to the gradient in D.
struct Block {
    Rows rows;
    Vector K, S, Z, ZZ, of_D;
};

struct StageGuide : Guide {
    std::unique_ptr<InverseCurvature> of_samples, of_points;
    size_t n_missing;

    void apply(const Vector& vector, Vector& out) const override {
        of_samples->apply(vector.data(), out.data());
        of_points->apply(vector.data() + n_missing, out.data() + n_missing);
    }
};

class Stage : public Problem {
   public:
    Stage(const Kernel& kernel, const double* X, const bool* observed, int n, int m, int r,
          double beta, double alpha, int n_threads)
        : n_(n), m_(m), r_(r), beta_(beta), alpha_(alpha), blocks_(n_threads),
          X_(X, X + static_cast<size_t>(n) * m), basis_(kernel, r, m) {
        for (int i = 0; i < n_; i++) missing_.add_row(observed + static_cast<size_t>(i) * m_, m_);
        const std::unique_ptr<bool[]> none(new bool[m_]());
        for (int j = 0; j < r_; j++) all_.add_row(none.get(), m_);
        gradient_.resize(static_cast<size_t>(n_) * m_);
    }

    size_t n_missing() const { return missing_.features.size(); }
    double evaluate(const Vector& x, Vector& gradient) override;
    std::shared_ptr<const Guide> precondition(const Vector& x) override;

   private:
    bool set(const Vector& x);
    double codes(int begin, int n, Block& block) const;
    double add_rows(int begin, int n, Block& block);
    void share_rows(double& value, Vector& of_D);

    int n_, m_, r_;
    double beta_, alpha_;
    std::vector<Block> blocks_;  // one for each thread
    Vector X_;
    FreeEntries missing_, all_;  // of X and of D
    Basis basis_;
    Vector ZZ_, use_, gradient_, at_;  // `at_`: the vector that was evaluated last
};

bool Stage::set(const Vector& x) {
    for (int i = 0; i < n_; i++)
        for (size_t a = missing_.first[i]; a < missing_.first[i + 1]; a++)
            X_[static_cast<size_t>(i) * m_ + missing_.features[a]] = x[a];
    basis_.bind(x.data() + n_missing());
    return basis_.factor(beta_);
}

// The kernel K, its slope S and the codes Z of n rows; returns their part of F.
double Stage::codes(int begin, int n, Block& block) const {
    const size_t size = static_cast<size_t>(n) * r_;
    block.K.resize(size), block.S.resize(size), block.Z.resize(size);
    basis_.read(X_.data() + static_cast<size_t>(begin) * m_, n, block.rows);
    basis_.evaluate(block.rows, n, block.K.data(), block.S.data());
    block.Z = block.K;
    blas::times_lower(n, r_, block.Z.data(), basis_.root.data(), true);
    double value = 0;
    for (int i = 0; i < n; i++) {
        const double* v = block.Z.data() + static_cast<size_t>(i) * r_;
        value += (basis_.kernel.diagonal(block.rows.squares[i]) - inner_product(v, v, r_)) / 2;
    }
    blas::times_lower(n, r_, block.Z.data(), basis_.root.data(), false);
    return value;
}

// The part of F of n rows, their gradient in X, and in the block what they add to that in D.
double Stage::add_rows(int begin, int n, Block& block) {
    const Kernel& kernel = basis_.kernel;
    const double value = codes(begin, n, block);
    block.ZZ.resize(static_cast<size_t>(r_) * r_), block.of_D.resize(static_cast<size_t>(r_) * m_);
    blas::gram_of_columns(n, r_, block.Z.data(), block.ZZ.data());
    const double* S = basis_.slopes(block.K, block.S);
    for (size_t a = 0; a < block.Z.size(); a++) block.Z[a] *= S[a];
    double* of_X = gradient_.data() + static_cast<size_t>(begin) * m_;
    basis_.pull_rows(block.Z.data(), block.rows, n, of_X);
    for (int i = 0; i < n; i++) {
        const double square = block.rows.squares[i];
        const double own = kernel.rbf ? 0 : kernel.degree * kernel.power(square, kernel.degree - 1);
        for (int c = 0; c < m_; c++) {
            const size_t a = static_cast<size_t>(i) * m_ + c;
            of_X[a] = own * block.rows.x[a] - of_X[a];
        }
    }
    basis_.pull_points(block.Z.data(), block.rows, n, block.of_D.data());
    return value;
}

// Share blocks of rows among threads. What they add is added in order, so that the number of
// threads does not change a bit of the result.
void Stage::share_rows(double& value, Vector& of_D) {
    const int most = static_cast<int>(std::max<size_t>(64, BLOCK_ENTRIES / r_));
    const int count = (n_ + most - 1) / most, n_threads = static_cast<int>(blocks_.size());
    std::mutex mutex;
    std::condition_variable changed;
    std::exception_ptr error;
    int turn = 0;
    const auto work = [&](int thread) {
        try {
            for (int b = thread; b < count; b += n_threads) {
                if (thread == 0 && b > 0) check_signals();
                const int begin = b * most, n = std::min(most, n_ - begin);
                const double part = add_rows(begin, n, blocks_[thread]);
                std::unique_lock<std::mutex> lock(mutex);
                changed.wait(lock, [&] { return turn == b || error; });
                if (error) return;
                value += part;
                for (size_t a = 0; a < ZZ_.size(); a++) ZZ_[a] += blocks_[thread].ZZ[a];
                for (size_t a = 0; a < of_D.size(); a++) of_D[a] -= blocks_[thread].of_D[a];
                turn++;
                changed.notify_all();
            }
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            error = std::current_exception();
            changed.notify_all();
        }
    };
    std::vector<std::thread> others;
    for (int t = 1; t < std::min(n_threads, count); t++) others.emplace_back(work, t);
    work(0);
    for (std::thread& thread : others) thread.join();
    if (error) std::rethrow_exception(error);
}

double Stage::evaluate(const Vector& x, Vector& gradient) {
    at_.clear();
    if (!set(x)) return std::numeric_limits<double>::infinity();
    const size_t square = static_cast<size_t>(r_) * r_;
    double value = 0;
    for (int j = 0; j < r_; j++) value += basis_.G[static_cast<size_t>(j) * r_ + j] * alpha_ / 2;
    Vector of_D(static_cast<size_t>(r_) * m_, 0.0), own(of_D.size());
    ZZ_.assign(square, 0.0);
    share_rows(value, of_D);
    blas::symmetrize(r_, ZZ_.data());
    use_.resize(r_);
    for (int j = 0; j < r_; j++) {
        use_[j] = ZZ_[static_cast<size_t>(j) * r_ + j];
        ZZ_[static_cast<size_t>(j) * r_ + j] += alpha_;
    }
    const double* slope = basis_.slopes(basis_.G, basis_.slope);
    for (size_t a = 0; a < square; a++) ZZ_[a] *= slope[a];
    basis_.pull_rows(ZZ_.data(), basis_.points, r_, own.data());
    for (size_t a = 0; a < of_D.size(); a++) gradient[n_missing() + a] = of_D[a] + own[a];
    for (int i = 0; i < n_; i++)
        for (size_t a = missing_.first[i]; a < missing_.first[i + 1]; a++)
            gradient[a] = gradient_[static_cast<size_t>(i) * m_ + missing_.features[a]];
    if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
    at_ = x;
    return value;
}

std::shared_ptr<const Guide> Stage::precondition(const Vector& x) {
    if (x != at_) {  // measure how much each point is used
        Vector unused(x.size());
        evaluate(x, unused);
    }
    double mean = 0;
    for (double use : use_) mean += use / r_;
    Vector weights(r_);
    for (int j = 0; j < r_; j++)
        weights[j] = std::max(use_[j], MIN_USE * mean) + std::numeric_limits<double>::min();
    auto guide = std::make_shared<StageGuide>();
    guide->n_missing = n_missing();
    const size_t size = static_cast<size_t>(n_) * r_;
    Rows rows;
    Vector K(size), S(basis_.kernel.rbf ? 0 : size);
    basis_.read(X_.data(), n_, rows);
    basis_.evaluate(rows, n_, K.data(), S.data());
    guide->of_samples = std::make_unique<InverseCurvature>(
        basis_, missing_, rows, K, basis_.slopes(K, S), nullptr, Vector());
    guide->of_points = std::make_unique<InverseCurvature>(
        basis_, all_, basis_.points, basis_.G, basis_.slopes(basis_.G, basis_.slope), nullptr,
        weights);
    return guide;
}

}  // namespace

std::shared_ptr<Problem> make_stage(const Kernel& kernel, const double* X, const bool* observed,
                                    int n, int m, int r, double beta, double alpha,
                                    int n_threads) {
    return std::make_shared<Stage>(kernel, X, observed, n, m, r, beta, alpha, n_threads);
}

}  // namespace hirank
