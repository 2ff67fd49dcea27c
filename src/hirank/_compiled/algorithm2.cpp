// Algorithm 2 of the paper: samples come in order, and each mini-batch improves the dictionary.
//
// The same arithmetic as hirank.optim.algorithm2_steps, where the steps are derived; rows are
// samples. With D fixed, G = k(D, D) and C = (G + beta I)^-1, codes and missing entries of a
// mini-batch x, B x m, are improved in turn until neither changes:
//
//     z = k(x, D) C,    x = x - step,    step = eta step + (w x - (z * S) D) / (tau |w|)
//
// in the missing entries only, where S is the slope of k(x, D) and the weight w of a sample is the
// sum of z * S for the RBF kernel (of whose sizes the samples share the mean), or else
// q (|x|^2 + c)^(q - 1). Then D takes one step: its gradient, over tau times the spectral norm of
// its curvature, plus eta times its last step.
//
// Rows of one more column contain a 1 there: products with them give sums as well. For the RBF
// kernel the origin is the mean of D; distances do not depend on it, but their digits do.
#include "algorithm2.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel.h"
#include "signals.h"
#include "vec.h"

namespace hirank {
namespace {

using Options = Algorithm2Options;

constexpr double NORM_TOL = 1e-6;
constexpr int NORM_ITERATIONS = 100;
constexpr double MIN_RIDGE = 1e-10;  // over the largest k(d, d): with 1e-12, codes diverged
constexpr double MAX_KERNEL = 1e100; // products of larger values overflow

double sum(const double* a, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += a[i];
    return total;
}

// Rows at a distance that is a multiple of a vector, with zeros behind them.
class Rows {
  public:
    Rows(int count, int width) : width_(padded(width)), data_(size_t(count) * width_) {
        for (int i = 0; i < count; i++) rows_.push_back(data_.get() + size_t(i) * width_);
    }
    double* operator[](int i) { return rows_[i]; }
    const double* operator[](int i) const { return rows_[i]; }
    double* const* all() { return rows_.data(); }
    void clear() { std::fill_n(data_.get(), rows_.size() * width_, 0.0); }

  private:
    int width_;
    Memory data_;
    std::vector<double*> rows_;
};

// out = A B for `count` rows.
void product(int count, double* const* A, const Panels& B, int inner, double* const* out,
             Signals& signals) {
    for (int i = 0; i < count; i += 4 * ROWS_AT_ONCE) {
        const int rows = std::min(4 * ROWS_AT_ONCE, count - i);
        multiply(rows, A + i, B, inner, out + i);
        signals.check(double(rows) * inner * B.outer());
    }
}

// y += a[0] x[0] + a[1] x[1] + a[2] x[2] + a[3] x[3]
void add_four(const double* a, const double* const* x, double* y, int n) {
    const Vec a0 = splat(a[0]), a1 = splat(a[1]), a2 = splat(a[2]), a3 = splat(a[3]);
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, load(y + i) + a0 * load(x[0] + i) + a1 * load(x[1] + i) +
                         a2 * load(x[2] + i) + a3 * load(x[3] + i));
    for (; i < n; i++) y[i] += a[0] * x[0][i] + a[1] * x[1][i] + a[2] * x[2][i] + a[3] * x[3][i];
}

void add_rows(int count, const double* a, const double* const* x, double* y, int n) {
    if (count == 4)
        add_four(a, x, y, n);
    else
        for (int k = 0; k < count; k++) add(a[k], x[k], y, n);
}

// The dictionary, as the products of an inner iteration read it.
class Dictionary {
  public:
    Rows points;      // [D - center, 1], r x (m + 1)
    Rows G, slope;    // k(D, D) and its slope, r x r
    Panels exponents, pull, C;

    Dictionary(int r, int m, const Options& options)
        : points(r, m + 1), G(r, r), slope(options.degree ? r : 0, r), exponents(m, r),
          pull(r, m + 1), C(r, r), r_(r), m_(m), o_(options), start_(padded(r)), U_(r, r), R_(r, r),
          center_(m) {}

    // Read D, r x m, without the inverse.
    void read(const double* D, Signals& signals) {
        if (!o_.degree) {
            std::fill(center_.begin(), center_.end(), 0.0);
            for (int i = 0; i < r_; i++) add(1.0, D + size_t(i) * m_, center_.data(), m_);
            for (double& c : center_) c /= r_;
        }
        for (int i = 0; i < r_; i++) {
            double* d = points[i];
            for (int j = 0; j < m_; j++) d[j] = D[size_t(i) * m_ + j] - center_[j];
            d[m_] = 1;
            const double scale = o_.degree ? 1 : o_.constant;
            start_.get()[i] = o_.degree ? o_.constant : -dot(d, d, m_) / 2 * scale;
            for (int j = 0; j < m_; j++) exponents.at(j, i) = d[j] * scale;
            for (int j = 0; j <= m_; j++) pull.at(i, j) = d[j];
        }
        evaluate(r_, points.all(), G.all(), slope.all(), signals);
    }

    // K = k(x, D) and its slope S for rows x, count x m. For RBF, S is not written: it is K.
    void evaluate(int count, double* const* x, double* const* K, double* const* S,
                  Signals& signals) const {
        product(count, x, exponents, m_, K, signals);
        for (int b = 0; b < count; b++) {
            const Vec own = splat(o_.degree ? 0 : o_.constant / 2 * dot(x[b], x[b], m_));
            for (int i = 0; i < r_; i += LANES) {
                Vec& k = vec(K[b] + i);
                k += vec(start_.get() + i) - own;
                if (!o_.degree) {
                    k = k < splat(-700) ? splat(0) : exp(k);
                    continue;
                }
                Vec s = splat(o_.degree);
                for (int power = 1; power < o_.degree; power++) s *= k;
                k = s * k / splat(o_.degree);
                vec(S[b] + i) = s;
            }
        }
    }

    // k(x, x) = (|x|^2 + c)^q, or its derivative for one less, of the polynomial kernel.
    double own(const double* x, int exponent) const {
        return power(dot(x, x, m_) + o_.constant, exponent);
    }

    // Compute C, which is NaN where numbers are too large or not finite. G + ridge = L P L' without
    // pivoting, which needs no positive pivots: rounding may spoil those of a poor G.
    void invert(Signals& signals) {
        double largest = 0, total = 0;
        for (int i = 0; i < r_; i++) {
            largest = std::max(largest, G[i][i]);
            total += sum(G[i], r_);
        }
        const double ridge = std::max(o_.beta, MIN_RIDGE * largest);
        if (!(std::isfinite(total) && ridge > 0 && std::max(ridge, largest) < MAX_KERNEL)) {
            for (int i = 0; i < r_; i++)
                for (int j = 0; j < r_; j++) C.at(i, j) = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        for (int i = 0; i < r_; i++) {
            std::copy_n(G[i], r_, U_[i]);
            U_[i][i] += ridge;
        }
        factorize(signals);
        invert_factor(signals);
        // C = R' P^-1 R for R = L^-1, first its lower half, in the memory of U.
        std::vector<double> inverse_pivots(r_);
        for (int i = 0; i < r_; i++) inverse_pivots[i] = 1 / U_[i][i];
        U_.clear();
        for (int i = 0; i < r_; i += 4) {
            const int count = std::min(4, r_ - i);
            for (int j = 0; j < i + count; j++) {
                double a[4];
                for (int k = 0; k < count; k++) a[k] = R_[i + k][j] * inverse_pivots[i + k];
                add_rows(count, a, R_.all() + i, U_[j], j + 1);
            }
            signals.check(2.0 * i * i);
        }
        for (int i = 0; i < r_; i++)
            for (int j = 0; j <= i; j++) C.at(i, j) = C.at(j, i) = U_[i][j];
    }

    const double* center() const { return center_.data(); }

  private:
    int r_, m_;
    const Options& o_;
    Memory start_;   // what is added to the products with `exponents`
    Rows U_, R_;     // work space of the inverse
    std::vector<double> center_;

    // Row k of U becomes L[k:, k] P[k], with the pivot P[k] in front.
    void factorize(Signals& signals) {
        for (int k = 0; k < r_; k += 4) {
            const int count = std::min(4, r_ - k);
            for (int i = k; i < r_; i++) {
                // The rows of this block are finished one after the other, then it acts on others.
                const int done = std::min(count, i - k);
                double a[4];
                const double* x[4];
                for (int b = 0; b < done; b++) {
                    a[b] = -U_[k + b][i] / U_[k + b][k + b];
                    x[b] = U_[k + b] + i;
                }
                add_rows(done, a, x, U_[i] + i, r_ - i);
            }
            signals.check(2.0 * (r_ - k) * (r_ - k));
        }
    }

    // R = L^-1, lower triangular: row i is e_i less the sum over k < i of L[i, k] times row k.
    void invert_factor(Signals& signals) {
        R_.clear();
        for (int i = 0; i < r_; i++) {
            for (int k = 0; k < i; k += 4) {
                const int count = std::min(4, i - k);
                double a[4];
                for (int b = 0; b < count; b++) a[b] = -U_[k + b][i] / U_[k + b][k + b];
                add_rows(count, a, R_.all() + k, R_[i], k + count);
            }
            R_[i][i] = 1;
            signals.check(0.5 * i * i);
        }
    }
};

// The largest singular value of a symmetric H, r x r, as MATLAB's normest estimates it.
double spectral_norm(const Rows& H, int r, Signals& signals) {
    Panels columns(r, r);
    Rows work(2, r);
    double *u = work[0], *v = work[1];
    for (int i = 0; i < r; i++)
        for (int j = 0; j < r; j++) {
            columns.at(i, j) = H[i][j];
            v[i] += std::fabs(H[i][j]);
        }
    double norm = std::sqrt(dot(v, v, r));
    if (!(norm > 0)) return 0;
    for (int i = 0; i < r; i++) v[i] /= norm;
    for (int k = 0; k < NORM_ITERATIONS; k++) {
        const double before = norm;
        product(1, work.all() + 1, columns, r, work.all(), signals);
        product(1, work.all(), columns, r, work.all() + 1, signals);
        const double length = std::sqrt(dot(v, v, r));
        if (!(length > 0)) return 0;
        norm = length / std::sqrt(dot(u, u, r));
        for (int i = 0; i < r; i++) v[i] /= length;
        if (!(std::fabs(norm - before) > NORM_TOL * norm)) break;
    }
    return norm;
}

// One mini-batch of at most `size` samples.
class Batch {
  public:
    Rows x, missing;   // the samples less the center, and 1 where they may move, count x m
    Rows codes;        // count x r
    Rows delta;        // the step of D before momentum, r x m

    Batch(int size, int r, int m, const Options& options)
        : x(size, m + 1), missing(size, m + 1), codes(size, r), delta(r, m + 1), r_(r), m_(m),
          o_(options), K_(size, r), S_(options.degree ? size : 0, r), P_(size, r),
          before_(size, r), pulled_(size, m + 1), step_(size, m + 1), weights_(size), H_(r, r) {}

    // Update codes and missing entries in turn until neither changes.
    void complete(int count, const Dictionary& dictionary, Signals& signals) {
        step_.clear();
        for (int iteration = 0; iteration < o_.max_inner; iteration++) {
            for (int b = 0; b < count; b++) std::copy_n(codes[b], r_, before_[b]);
            dictionary.evaluate(count, x.all(), K_.all(), S_.all(), signals);
            product(count, K_.all(), dictionary.C, r_, codes.all(), signals);
            for (int b = 0; b < count; b++)
                for (int i = 0; i < r_; i += LANES)
                    vec(P_[b] + i) = vec(codes[b] + i) * vec(slope(b) + i);
            product(count, P_.all(), dictionary.pull, r_, pulled_.all(), signals);
            bool moving = move_entries(count, dictionary);
            for (int b = 0; b < count && !moving; b++)
                moving = differs(codes[b], before_[b], r_);
            if (!moving) return;
        }
    }

    // Compute the cost of each sample with its best codes: k(x, x) / 2 - k(x, D) C k(D, x) / 2.
    void costs(int count, const Dictionary& dictionary, double size, double* out,
               Signals& signals) {
        dictionary.evaluate(count, x.all(), K_.all(), S_.all(), signals);
        product(count, K_.all(), dictionary.C, r_, P_.all(), signals);
        for (int b = 0; b < count; b++) {
            const double own = o_.degree ? dictionary.own(x[b], o_.degree) : 1;
            out[2 * b] = (own - dot(K_[b], P_[b], r_)) / 2;
            out[2 * b + 1] = size;
        }
    }

    // Compute `delta`: the gradient in D over the spectral norm of its curvature. sigma^2 is left
    // out of both.
    void improve(int count, Dictionary& dictionary, Signals& signals) {
        dictionary.evaluate(count, x.all(), K_.all(), S_.all(), signals);
        H_.clear();
        for (int i = 0; i < r_; i++) {
            for (int b = 0; b < count; b++) add(codes[b][i], codes[b], H_[i], r_);
            H_[i][i] += o_.alpha;
            const double* slopes = o_.degree ? dictionary.slope[i] : dictionary.G[i];
            for (int j = 0; j < r_; j++) H_[i][j] *= slopes[j];
            signals.check(double(count) * r_);
        }
        product(r_, H_.all(), dictionary.pull, r_, delta.all(), signals);
        for (int b = 0; b < count; b++) x[b][m_] = 1;
        for (int i = 0; i < r_; i++) {
            double* gradient = delta[i];
            // The authors take the size of the row sums of H here. The paper keeps their sign.
            if (!o_.degree) H_[i][i] -= std::fabs(gradient[m_]);
            for (int b = 0; b < count; b++) {
                const double weight = codes[b][i] * slope(b)[i];
                if (!o_.degree) H_[i][i] += weight;
                add(-weight, x[b], gradient, m_ + 1);
            }
            signals.check(double(count) * m_);
            if (!o_.degree) add(-gradient[m_], dictionary.points[i], gradient, m_);
        }
        for (int b = 0; b < count; b++) x[b][m_] = 0;
        const double norm = o_.relaxation * spectral_norm(H_, r_, signals);
        const double rate = norm > 0 ? 1 / norm : 0;
        for (int i = 0; i < r_; i++)
            for (int j = 0; j < m_; j++) delta[i][j] *= rate;
    }

  private:
    int r_, m_;
    const Options& o_;
    Rows K_, S_, P_, before_, pulled_, step_;
    std::vector<double> weights_;
    Rows H_;

    const double* slope(int b) const { return o_.degree ? S_[b] : K_[b]; }

    // Take a step of the missing entries; return whether one of them moved by `tol` or more.
    bool move_entries(int count, const Dictionary& dictionary) {
        double mean = 0;
        for (int b = 0; b < count; b++) {
            weights_[b] =
                o_.degree ? o_.degree * dictionary.own(x[b], o_.degree - 1) : pulled_[b][m_];
            mean += std::fabs(weights_[b]) / count;
        }
        bool moving = false;
        for (int b = 0; b < count; b++) {
            const double curvature = o_.relaxation * (o_.degree ? weights_[b] : mean);
            const double rate = curvature > 0 ? 1 / curvature : 0;
            Bits moved = {};
            for (int j = 0; j < m_; j += LANES) {
                Vec &row = vec(x[b] + j), &step = vec(step_[b] + j);
                step = splat(o_.momentum) * step - splat(rate) * vec(pulled_[b] + j) +
                       splat(rate * weights_[b]) * row;
                const Vec change = step * vec(missing[b] + j);
                row -= change;
                moved |= (change >= splat(o_.tol)) | (change <= splat(-o_.tol));
            }
            for (int lane = 0; lane < LANES; lane++) moving = moving || moved[lane];
        }
        return moving;
    }

    bool differs(const double* a, const double* b, int n) const {
        for (int i = 0; i < n; i++)
            if (std::fabs(a[i] - b[i]) >= o_.tol) return true;
        return false;
    }
};

bool all_finite(const Rows& rows, int count, int n) {
    double total = 0;
    for (int i = 0; i < count; i++) total += sum(rows[i], n);
    return std::isfinite(total);
}

}  // namespace

int algorithm2_pass(const Algorithm2State& state, const Algorithm2Options& options) {
    const int n = state.n, m = state.m, r = state.r, batch_size = options.batch_size;
    Signals signals;
    Dictionary dictionary(r, m, options);
    Batch batch(std::min(batch_size, n), r, m, options);
    int rejected = 0;
    for (int start = 0; start < n; start += batch_size) {
        const int count = std::min(batch_size, n - start);
        dictionary.read(state.D, signals);
        dictionary.invert(signals);
        const double* center = dictionary.center();
        for (int b = 0; b < count; b++) {
            const size_t at = size_t(start + b) * m;
            for (int j = 0; j < m; j++) batch.x[b][j] = state.X[at + j] - center[j];
            for (int j = 0; j < m; j++) batch.missing[b][j] = state.observed[at + j] ? 0 : 1;
            std::copy_n(state.Z + size_t(start + b) * r, r, batch.codes[b]);
        }
        batch.complete(count, dictionary, signals);
        batch.improve(count, dictionary, signals);
        for (int i = 0; i < r; i++)
            add(options.momentum, state.last + size_t(i) * m, batch.delta[i], m);
        if (!all_finite(batch.x, count, m) || !all_finite(batch.codes, count, r) ||
            !all_finite(batch.delta, r, m)) {
            rejected += count;
            continue;
        }
        double trace = 0;
        for (int i = 0; i < r; i++) trace += dictionary.G[i][i];
        batch.costs(count, dictionary, options.alpha / 2 * trace, state.costs + size_t(start) * 2,
                    signals);
        for (int b = 0; b < count; b++) {
            const size_t at = size_t(start + b) * m;
            for (int j = 0; j < m; j++) state.X[at + j] = batch.x[b][j] + center[j];
            std::copy_n(batch.codes[b], r, state.Z + size_t(start + b) * r);
        }
        for (int i = 0; i < r; i++) {
            const double* delta = batch.delta[i];
            for (int j = 0; j < m; j++) state.last[size_t(i) * m + j] = delta[j];
            for (int j = 0; j < m; j++) state.D[size_t(i) * m + j] -= delta[j];
        }
    }
    return rejected;
}

}  // namespace hirank
