// Many rows with one dictionary: minimize F of row_basis.h over the missing entries of each.
//
// A few rows are evaluated together, since products of several rows are cheaper than of one. A row
// that has ended makes room for the next. What is computed beside a row does not change it.
#include "rows.h"

#include <algorithm>

#include "signals.h"

namespace hirank {
namespace {

constexpr double SIGNAL_COST = 1e8;  // multiplications between two looks for signals: 0.05 s

struct Slot {
    Place place;
    RowDescent descent;
    int number = 0;   // among the rows to be solved
    int64_t row = 0;  // in X

    Slot(const RowBasis& basis, const Rules& rules, bool bounded)
        : place(basis.m, basis.r), descent(basis.m, rules, bounded) {}
};

class Queue {
  public:
    Queue(const RowBasis& basis, const Rules& rules, const RowProblem& problem, double* values,
          int64_t* evaluations)
        : basis_(basis), problem_(problem), values_(values), evaluations_(evaluations) {
        const int count = std::min(ROWS_AT_ONCE, problem.count);
        for (int i = 0; i < count; i++)
            slots_.push_back(std::make_unique<Slot>(basis, rules, problem.lower != nullptr));
    }

    void run() {
        std::vector<Slot*> active;
        for (auto& slot : slots_)
            if (load(*slot)) active.push_back(slot.get());
        Place* places[ROWS_AT_ONCE];
        const double cost = double(basis_.r) * (basis_.r + 2 * basis_.m) * ROWS_AT_ONCE;
        double since = 0;
        while (!active.empty()) {
            if ((since += cost) > SIGNAL_COST) {
                check_signals();
                since = 0;
            }
            for (size_t i = 0; i < active.size(); i++) places[i] = &active[i]->place;
            basis_.evaluate(int(active.size()), places);
            size_t kept = 0;
            for (Slot* slot : active)
                if (advance(*slot) || load(*slot)) active[kept++] = slot;
            active.resize(kept);
        }
    }

  private:
    const RowBasis& basis_;
    const RowProblem& problem_;
    double* values_;
    int64_t* evaluations_;
    std::vector<std::unique_ptr<Slot>> slots_;
    int next_ = 0;

    // Put the next row into a slot; return whether there is one.
    bool load(Slot& slot) {
        if (next_ == problem_.count) return false;
        slot.number = next_++;
        slot.row = problem_.rows[slot.number];
        const double* row = problem_.X + slot.row * basis_.m;
        for (int c = 0; c < basis_.m; c++) slot.place.x[c] = row[c] - basis_.center[c];
        basis_.leave_out(slot.place, problem_.left_out ? int(problem_.left_out[slot.row]) : -1);
        slot.descent.evaluations = 0;
        return true;
    }

    // Use the evaluation of a row; return whether it goes on.
    bool advance(Slot& slot) {
        RowDescent& descent = slot.descent;
        const bool more = descent.evaluations ? descent.update(slot.place) : begin(slot);
        if (more) {
            descent.propose(slot.place);
            return true;
        }
        descent.finish(problem_.X + slot.row * basis_.m, basis_.center.data(), problem_.lower,
                       problem_.upper);
        values_[slot.number] = descent.value;
        evaluations_[slot.number] = descent.evaluations;
        return false;
    }

    bool begin(Slot& slot) {
        std::vector<int> missing;
        for (int c = 0; c < basis_.m; c++)
            if (!problem_.observed[slot.row * basis_.m + c]) missing.push_back(c);
        return slot.descent.begin(basis_, slot.place, missing, problem_.lower, problem_.upper);
    }
};

}  // namespace

void minimize_rows(const RowBasis& basis, const Rules& rules, const RowProblem& problem,
                   double* values, int64_t* evaluations) {
    Queue(basis, rules, problem, values, evaluations).run();
}

void evaluate_rows(const RowBasis& basis, const double* X, const int64_t* left_out, int64_t n,
                   double* values, double* gradients) {
    Place place(basis.m, basis.r);
    Place* one = &place;
    for (int64_t i = 0; i < n; i++) {
        for (int c = 0; c < basis.m; c++) place.x[c] = X[i * basis.m + c] - basis.center[c];
        basis.leave_out(place, left_out ? int(left_out[i]) : -1);
        basis.evaluate(1, &one);
        values[i] = place.value;
        std::copy_n(place.gradient, basis.m, gradients + i * basis.m);
    }
}

void find_nearest(const RowBasis& basis, const double* X, const bool* observed, int64_t n,
                  int64_t* nearest) {
    for (int64_t i = 0; i < n; i++, X += basis.m, observed += basis.m)
        nearest[i] = basis.nearest(X, observed);
}

}  // namespace hirank
