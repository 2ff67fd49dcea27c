// L-BFGS with a line search: value and direction of each step as in hirank/optim/quasi_newton.py,
// which explains the method and is the reference.
#include "lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "basis.h"

namespace hirank {
namespace {

const double SUFFICIENT = 1e-4, MIN_CURVATURE = 0.1;  // as there
const double EPSILON = std::numeric_limits<double>::epsilon();

double dot(const Vector& a, const Vector& b) {
    return inner_product(a.data(), b.data(), a.size());
}

void add(Vector& to, double factor, const Vector& v) {
    for (size_t i = 0; i < to.size(); i++) to[i] += factor * v[i];
}

void clear(Vector& v, const std::vector<bool>& held) {
    for (size_t i = 0; i < held.size(); i++)
        if (held[i]) v[i] = 0;
}

}  // namespace

Descent::Descent(std::shared_ptr<Problem> problem, Vector x, int memory)
    : problem_(std::move(problem)), memory_(memory) {
    std::lock_guard<std::mutex> lock(problem_->busy);
    Vector gradient(x.size());
    value_ = problem_->evaluate(x, gradient);
    x_ = std::make_shared<const Vector>(std::move(x));
    gradient_ = std::make_shared<const Vector>(std::move(gradient));
    if (std::isfinite(value_)) begin();
}

Descent Descent::renew() const {
    std::lock_guard<std::mutex> lock(problem_->busy);
    Descent next = *this;
    next.begin();
    return next;
}

void Descent::begin() {
    guide_ = problem_->precondition(*x_);
    history_.clear();
    gamma_ = 1;
    set_direction();
    double norm = std::sqrt(std::max(-dot(*gradient_, *direction_), 0.0));
    length_ = std::min(1.0, 1 / std::max(norm, std::sqrt(std::numeric_limits<double>::min())));
}

Descent Descent::step() const {
    std::lock_guard<std::mutex> lock(problem_->busy);
    const Vector &lower = problem_->lower, &upper = problem_->upper, &x = *x_, &g = *gradient_;
    const bool bounded = !lower.empty();
    auto point = std::make_shared<Vector>(x), gradient = std::make_shared<Vector>(x.size());
    add(*point, length_, *direction_);
    auto s = std::make_shared<Vector>(x.size()), y = std::make_shared<Vector>(x.size());
    for (size_t i = 0; i < x.size(); i++) {
        if (bounded) (*point)[i] = std::min(std::max((*point)[i], lower[i]), upper[i]);
        (*s)[i] = (*point)[i] - x[i];
    }
    double value = problem_->evaluate(*point, *gradient);
    // With limits, the mean slope of the projected path to the point.
    double slope = bounded ? dot(g, *s) / length_ : dot(g, *direction_);
    Descent next = *this;
    if (next.history_.size() == memory_) next.history_.pop_front();
    next.history_.push_back({nullptr, nullptr, 0});
    if (!(value <= value_ + SUFFICIENT * length_ * slope) || (bounded && !(slope <= 0))) {
        next.length_ = shorter(value, slope);
        return next;
    }
    for (size_t i = 0; i < x.size(); i++)  // curvature along the variables that moved
        (*y)[i] = bounded && (*s)[i] == 0 ? 0 : (*gradient)[i] - g[i];
    Vector scaled(y->size());
    guide_->apply(*y, scaled);
    double sy = dot(*s, *y), yy = dot(*y, scaled);
    if (sy > EPSILON * yy * gamma_) {
        next.history_.back() = {s, y, 1 / sy};
        next.gamma_ = sy / yy;
    }
    next.x_ = point;
    next.gradient_ = gradient;
    next.value_ = value;
    next.set_direction();
    next.length_ = 1;
    return next;
}

double Descent::shorter(double value, double slope) const {
    double best = -slope * length_ / (2 * (value - value_ - slope * length_));
    return length_ * (std::isfinite(best) ? std::min(std::max(best, 0.1), 0.5) : 0.1);
}

// The variables at a limit that descent would lead them across; empty without limits.
std::vector<bool> Descent::held() const {
    const Vector &lower = problem_->lower, &upper = problem_->upper, &x = *x_, &g = *gradient_;
    std::vector<bool> held(lower.size());
    for (size_t i = 0; i < held.size(); i++)
        held[i] = (x[i] <= lower[i] && g[i] > 0) || (x[i] >= upper[i] && g[i] < 0);
    return held;
}

// All of the inverse Hessian is restricted to the variables that are not held, not only its result,
// which might otherwise not be a descent direction.
void Descent::set_direction() {
    std::vector<bool> held = this->held();
    Vector q = *gradient_;
    for (double& value : q) value = -value;
    if (std::find(held.begin(), held.end(), true) == held.end()) {
        direction_ = std::make_shared<const Vector>(two_loop(std::move(q), history_, {}));
        return;
    }
    clear(q, held);
    std::deque<Pair> pairs;
    for (const Pair& pair : history_) {
        if (!(pair.rho > 0)) continue;
        auto s = std::make_shared<Vector>(*pair.s), y = std::make_shared<Vector>(*pair.y);
        clear(*s, held);
        clear(*y, held);
        double sy = dot(*s, *y);
        if (sy * pair.rho > MIN_CURVATURE) pairs.push_back({s, y, 1 / sy});
    }
    direction_ = std::make_shared<const Vector>(two_loop(std::move(q), pairs, held));
}

Vector Descent::two_loop(Vector q, const std::deque<Pair>& pairs,
                         const std::vector<bool>& held) const {
    std::vector<double> weights(pairs.size());
    for (size_t i = pairs.size(); i-- > 0;) {
        if (!(pairs[i].rho > 0)) continue;
        weights[i] = pairs[i].rho * dot(*pairs[i].s, q);
        add(q, -weights[i], *pairs[i].y);
    }
    Vector direction(q.size());
    guide_->apply(q, direction);
    clear(direction, held);
    for (double& value : direction) value *= gamma_;
    for (size_t i = 0; i < pairs.size(); i++)
        if (pairs[i].rho > 0)
            add(direction, weights[i] - pairs[i].rho * dot(*pairs[i].y, direction), *pairs[i].s);
    return direction;
}

}  // namespace hirank
