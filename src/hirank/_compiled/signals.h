// Signals of Python, such as Ctrl-C, and slices of work, during a computation that has released the
// interpreter's lock.
#pragma once
#include <chrono>

namespace hirank {

// Raise what a signal handler raises, as Python does between two operations. module.cpp defines it.
void check_signals();

// Count multiplications of a computation that may be cut into slices (hirank/core/slices.py): at the
// end of a slice this waits for the next one. Like the above, in the thread that Python has called.
void count_work(double multiplications);

// A look for signals after so much work, for loops of small steps.
class Signals {
  public:
    // Count multiplications. The clock is read after every 200 000 of them, and the interpreter's
    // lock, for which other threads may make it wait, is taken twenty times a second.
    void check(double multiplications) {
        work_ += multiplications;
        if (work_ < 2e5) return;
        work_ = 0;
        if (Clock::now() < next_) return;
        check_signals();
        next_ = Clock::now() + PERIOD;
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds PERIOD{50};
    double work_ = 0;
    Clock::time_point next_ = Clock::now() + PERIOD;
};

}  // namespace hirank
