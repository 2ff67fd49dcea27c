// L-BFGS for one problem, as in hirank/optim/quasi_newton.py.
#pragma once
#include <deque>
#include <memory>
#include <mutex>

#include "blas.h"

namespace hirank {

// A symmetric positive definite guess at the inverse Hessian.
struct Guide {
    virtual ~Guide() = default;
    virtual void apply(const Vector& vector, Vector& out) const = 0;
};

// An objective of one vector. Work memory belongs to it, so one thread at a time may use it.
struct Problem {
    Vector lower, upper;  // limits of the vector; empty without any
    std::mutex busy;

    virtual ~Problem() = default;
    virtual double evaluate(const Vector& x, Vector& gradient) = 0;  // infinite where undefined
    virtual std::shared_ptr<const Guide> precondition(const Vector& x) = 0;
};

using SharedVector = std::shared_ptr<const Vector>;

// Where an optimization stands. It is never changed: a step returns another one, which shares the
// history of steps.
class Descent {
   public:
    Descent(std::shared_ptr<Problem> problem, Vector x, int memory);
    Descent step() const;
    Descent renew() const;  // begin again from the same point, with its curvature
    double value() const { return value_; }
    const Vector& x() const { return *x_; }
    const Vector& gradient() const { return *gradient_; }

   private:
    struct Pair {
        SharedVector s, y;
        double rho;  // 1 / <s, y>
    };

    void begin();
    void set_direction();
    Vector two_loop(Vector q, const std::deque<Pair>& pairs, const std::vector<bool>& held) const;
    std::vector<bool> held() const;
    double shorter(double value, double slope) const;

    std::shared_ptr<Problem> problem_;
    std::shared_ptr<const Guide> guide_;
    SharedVector x_, gradient_, direction_;
    double value_, length_, gamma_;
    size_t memory_;
    std::deque<Pair> history_;  // of the last rounds; rho is 0 where no usable step was taken
};

}  // namespace hirank
