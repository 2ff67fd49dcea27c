#include "row_descent.h"

#include <algorithm>
#include <limits>

namespace hirank {

// The same constants as in hirank.optim.quasi_newton and hirank.core.curvature.
constexpr double SUFFICIENT = 1e-4, MIN_CURVATURE = 0.1, MIN_DIAGONAL = 1e-4;

RowDescent::RowDescent(int m, const Rules& rules, bool bounded)
    : value(0), evaluations(0), rules_(rules), bounded_(bounded), q_(0), newest_(0), length_(1),
      gamma_(1), curved_(false), x_(m), gradient_(m), direction_(m), trial_(m), lower_(m),
      upper_(m), room_(m), held_(m), pairs_(rules.memory) {
    for (Pair& one : pairs_) {
        one.step.resize(m);
        one.change.resize(m);
    }
}

bool RowDescent::begin(const RowBasis& basis, const Place& place, const std::vector<int>& missing,
                    const double* lower, const double* upper) {
    missing_ = missing;
    q_ = int(missing.size());
    value = place.value;
    evaluations = 1;
    gamma_ = 1;
    for (Pair& one : pairs_) one.inverse = 0;
    for (int a = 0; a < q_; a++) {
        const int c = missing[a];
        x_[a] = place.x[c];
        gradient_[a] = place.gradient[c];
        if (bounded_) {
            lower_[a] = lower[c] - basis.center[c];
            upper_[a] = upper[c] - basis.center[c];
        }
    }
    curved_ = rules_.damping > 0;
    if (curved_) factorize(basis, place);
    find_direction();
    const double norm = std::sqrt(std::max(-dot(gradient_.data(), direction_.data(), q_), 0.0));
    length_ = std::min(1.0, 1 / std::max(norm, std::sqrt(std::numeric_limits<double>::min())));
    return has_step();
}

// C = U'U with U upper triangular, row by row; its diagonal is stored inverted
void RowDescent::factorize(const RowBasis& basis, const Place& place) {
    const float* H = basis.curvature(basis.nearest(place), scratch_);
    const int q = q_;
    factor_.resize(size_t(q) * q);
    double trace = 0;
    for (int a = 0; a < q; a++) {
        const size_t row = missing_[a];
        const float* h = H + row * (row + 1) / 2;
        for (int b = 0; b <= a; b++) factor_[size_t(b) * q + a] = h[missing_[b]];
        trace += h[row];
    }
    const double unit = H[size_t(basis.m) * (basis.m + 1) / 2];
    const double damping = rules_.damping * std::max(trace / q, MIN_DIAGONAL * unit);
    for (int a = 0; a < q; a++) {
        double* u = factor_.data() + size_t(a) * q;
        u[a] += damping;
        if (!(u[a] > 0)) {
            curved_ = false;
            return;
        }
        u[a] = 1 / std::sqrt(u[a]);
        for (int b = a + 1; b < q; b++) u[b] *= u[a];
        double* next = u + q;
        for (int b = a + 1; b < q; b++, next += q) add(-u[b], u + b, next + b, q - b);
    }
}

void RowDescent::precondition(double* v) const {
    if (!curved_) return;
    const int q = q_;
    for (int a = 0; a < q; a++) {
        const double* u = factor_.data() + size_t(a) * q;
        v[a] *= u[a];
        add(-v[a], u + a + 1, v + a + 1, q - a - 1);
    }
    for (int a = q - 1; a >= 0; a--) {
        const double* u = factor_.data() + size_t(a) * q;
        v[a] = (v[a] - dot(u + a + 1, v + a + 1, q - a - 1)) * u[a];
    }
}

// Set the entries of variables that are held at a bound to 0.
void RowDescent::release(double* v) const {
    if (!bounded_) return;
    for (int a = 0; a < q_; a++)
        if (held_[a]) v[a] = 0;
}

// The two-loop recursion, restricted to the variables that are not held
void RowDescent::find_direction() {
    double* d = direction_.data();
    const int q = q_;
    for (int a = 0; a < q; a++) {
        held_[a] = bounded_ && ((x_[a] <= lower_[a] && gradient_[a] > 0) ||
                                (x_[a] >= upper_[a] && gradient_[a] < 0));
        d[a] = -gradient_[a];
    }
    release(d);
    for (int age = 0; age < rules_.memory; age++) {
        Pair& one = pair(age);
        one.free_inverse = one.inverse;
        if (one.inverse == 0) continue;
        if (bounded_) {
            double sy = 0;
            for (int a = 0; a < q; a++) sy += held_[a] ? 0 : one.step[a] * one.change[a];
            one.free_inverse = sy * one.inverse > MIN_CURVATURE ? 1 / sy : 0;
        }
        one.weight = one.free_inverse * dot(one.step.data(), d, q);
        add(-one.weight, one.change.data(), d, q);
        release(d);
    }
    precondition(d);
    for (int a = 0; a < q; a++) d[a] *= gamma_;
    release(d);
    for (int age = rules_.memory - 1; age >= 0; age--) {
        const Pair& one = pair(age);
        if (one.free_inverse == 0) continue;
        const double weight = one.free_inverse * dot(one.change.data(), d, q);
        add(one.weight - weight, one.step.data(), d, q);
        release(d);
    }
}

void RowDescent::propose(Place& place) {
    for (int a = 0; a < q_; a++) {
        double x = x_[a] + length_ * direction_[a];
        if (bounded_) x = std::min(std::max(x, lower_[a]), upper_[a]);
        trial_[a] = place.x[missing_[a]] = x;
    }
}

bool RowDescent::update(const Place& place) {
    evaluations++;
    double slope = 0;  // with bounds, the mean slope of the projected path
    for (int a = 0; a < q_; a++)
        slope += gradient_[a] * (bounded_ ? (trial_[a] - x_[a]) / length_ : direction_[a]);
    newest_ = (newest_ + 1) % rules_.memory;
    pair(0).inverse = 0;
    if (place.value <= value + SUFFICIENT * length_ * slope && (slope <= 0 || !bounded_)) {
        accept(place);
        return has_step();
    }
    // The minimum of the interpolating parabola, within limits
    const double t = length_, best = -slope * t / (2 * (place.value - value - slope * t));
    length_ = t * (std::isfinite(best) ? std::min(std::max(best, 0.1), 0.5) : 0.1);
    return evaluations <= rules_.rounds;
}

void RowDescent::accept(const Place& place) {
    Pair& one = pair(0);
    for (int a = 0; a < q_; a++) {
        const double gradient = place.gradient[missing_[a]];
        one.step[a] = trial_[a] - x_[a];
        one.change[a] = gradient - gradient_[a];
        if (bounded_ && one.step[a] == 0) one.change[a] = 0;
        gradient_[a] = gradient;
        x_[a] = trial_[a];
        room_[a] = one.change[a];
    }
    value = place.value;
    precondition(room_.data());
    const double sy = dot(one.step.data(), one.change.data(), q_);
    const double yy = dot(one.change.data(), room_.data(), q_);
    if (sy > std::numeric_limits<double>::epsilon() * yy * gamma_) {
        one.inverse = 1 / sy;
        gamma_ = sy / yy;
    }
    find_direction();
    length_ = 1;
}

bool RowDescent::has_step() const {
    double largest = 0, slope = 0;  // `largest` stays 0 if the direction is not a number
    for (int a = 0; a < q_; a++) {
        largest = std::max(largest, std::fabs(direction_[a]));
        slope += gradient_[a] * direction_[a];
    }
    return largest > rules_.tolerance && -slope / 2 > rules_.decrease &&
           evaluations <= rules_.rounds;
}

void RowDescent::finish(double* row, const double* center, const double* lower,
                     const double* upper) const {
    for (int a = 0; a < q_; a++) {
        const int c = missing_[a];
        row[c] = x_[a] + center[c];
        if (!bounded_) continue;
        // Without the rounding of the center: a value at a bound must be the bound.
        if (x_[a] <= lower_[a] || row[c] < lower[c]) row[c] = lower[c];
        if (x_[a] >= upper_[a] || row[c] > upper[c]) row[c] = upper[c];
    }
}

}  // namespace hirank
