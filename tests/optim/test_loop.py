"""The loop, its monitor, and the sentences about why a fit stopped."""

from dataclasses import dataclass
from threading import Thread

import numpy as np
import pytest

from hirank.exceptions import StopReason
from hirank.optim.loop import has_stalled, minimize, minimize_each
from hirank.optim.trace import (
    Monitor,
    Phase,
    PhaseStarted,
    RefitFailed,
    Step,
    TrialFinished,
    describe_stop,
)


@dataclass(frozen=True)
class Position:
    number: int
    objective: float


@dataclass(frozen=True)
class Scripted:
    """A solver whose objectives are given; it terminates at one that is 0."""

    objectives: list
    monotone: bool = True

    def init(self, start):
        return Position(start, self.objectives[start])

    def step(self, state):
        return Position(state.number + 1, self.objectives[state.number + 1])

    def terminate(self, state, objectives):
        assert objectives == self.objectives[: state.number + 1]
        return state.objective == 0


def test_it_ends_where_the_solver_terminates():
    solution = minimize(Scripted([3.0, 2.0, 0.0, -1.0]), 0, max_iter=3, monitor=Monitor())

    assert solution.state.number == 2
    assert solution.reason is StopReason.CONVERGED


def test_it_ends_after_max_iter_steps():
    monitor = Monitor()

    solution = minimize(Scripted([3.0, 2.0, 1.0, 0.5]), 0, max_iter=2, monitor=monitor)

    assert solution.state.number == 2
    assert solution.reason is StopReason.MAX_ITER
    assert monitor.trace["objective"].tolist() == [2.0, 1.0]  # the start is not a step


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("monotone", [True, False])
def test_an_objective_that_is_not_finite_ends_it_with_the_point_before(bad, monotone):
    solver = Scripted([3.0, 2.0, bad, 1.0], monotone)

    solution = minimize(solver, 0, max_iter=3, monitor=Monitor())

    assert solution.state.number == 1
    assert solution.reason is StopReason.DIVERGED


def test_a_monotone_solver_that_stays_above_its_start_has_diverged():
    rising = [3.0, 2.0, *np.linspace(4, 5, 40)]

    solution = minimize(Scripted(rising), 0, max_iter=41, monitor=Monitor())

    assert solution.state.objective == 2.0
    assert solution.reason is StopReason.DIVERGED


def test_other_objectives_may_rise():
    rising = [3.0, *np.linspace(4, 5, 40)]

    solution = minimize(Scripted(rising, monotone=False), 0, max_iter=40, monitor=Monitor())

    assert solution.state.objective == 5.0
    assert solution.reason is StopReason.MAX_ITER


@pytest.mark.parametrize(("monotone", "number"), [(True, 1), (False, 2)])
def test_a_callback_stops_it_with_the_best_point_or_the_latest(monotone, number):
    monitor = Monitor(lambda line: line.step == 2)
    solver = Scripted([3.0, 1.0, 2.0, 0.5], monotone)

    solution = minimize(solver, 0, max_iter=3, monitor=monitor)

    assert solution.state.number == number
    assert solution.reason is StopReason.CALLBACK
    assert monitor.stopped


def test_after_a_stop_one_step_is_taken_and_not_recorded():
    monitor = Monitor(lambda line: True)
    monitor.record(1.0)

    solution = minimize(Scripted([3.0, 2.0, 1.0]), 0, max_iter=2, monitor=monitor)

    assert solution.state.number == 1
    assert monitor.steps == 1


def test_each_call_is_a_stage():
    monitor, solver = Monitor(), Scripted([3.0, 2.0, 1.0])

    for _ in range(2):
        minimize(solver, 0, max_iter=2, monitor=monitor)

    assert monitor.trace["stage"].tolist() == [0, 0, 1, 1]
    assert monitor.trace["step"].tolist() == [1, 2, 3, 4]
    assert monitor.stages == 2


@dataclass(frozen=True)
class Halving:
    """A solver that halves a number, three times."""

    monotone: bool = True

    def init(self, start):
        return start

    def step(self, state):
        return Position(state.number + 1, state.objective / 2)

    def terminate(self, state, objectives):
        return len(objectives) > 3


def test_each_solver_starts_where_the_one_before_ended():
    solvers = [("first", Halving()), ("second", Halving())]

    found = list(minimize_each(solvers, Position(0, 64.0), max_iter=9, monitor=Monitor()))

    assert [key for key, _ in found] == ["first", "second"]
    assert [solution.state.objective for _, solution in found] == [8.0, 1.0]


def test_no_further_solver_starts_after_a_stop():
    solvers, monitor = [(1, Halving()), (2, Halving())], Monitor(lambda line: line.step == 2)

    found = list(minimize_each(solvers, Position(0, 64.0), max_iter=9, monitor=monitor))

    assert [(key, solution.reason) for key, solution in found] == [(1, StopReason.CALLBACK)]


def test_the_time_limit_stops_it_and_ends_a_search_before():
    monitor = Monitor(max_time=1e-9)

    assert monitor.late
    assert not monitor.stopped
    assert monitor.record(1.0) is StopReason.MAX_TIME
    assert monitor.finish(StopReason.MAX_ITER).reason is StopReason.MAX_TIME


def test_threads_share_a_monitor():
    monitor = Monitor()
    threads = [Thread(target=lambda: [monitor.record(1.0) for _ in range(200)]) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert monitor.trace["step"].tolist() == list(range(1, 801))


@pytest.mark.parametrize(
    ("objectives", "window", "expected"),
    [
        ([1.0], 1, False),
        ([1.0, 0.995], 1, True),
        ([1.0, 0.9], 1, False),
        ([np.inf, 1.0], 1, False),
        ([2.0, 1.0, 0.995], 2, False),
        ([-1.0, -1.005], 1, True),
    ],
)
def test_stalled_means_a_small_relative_decrease(objectives, window, expected):
    assert has_stalled(objectives, 0.01, window) is expected


def test_a_run_is_described_by_its_last_step():
    monitor = Monitor(lambda line: False)
    monitor.record(3.0)
    monitor.record(2.0)

    run = monitor.finish(StopReason.CONVERGED, tol=0.01, quantity="the table")

    assert (run.objective, run.n_iter, run.reason) == (2.0, 2, StopReason.CONVERGED)
    assert run.stop_reason == "Converged: the table changed by less than tol=0.01 at step 2."


@pytest.mark.parametrize("reason", StopReason)
def test_each_stop_reason_is_a_sentence(reason):
    sentence = describe_stop(reason, steps=3, max_iter=3, tol=0.1, max_time=2.0)

    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_the_sentence_names_the_limit_that_was_reached():
    assert "n_passes=4" in describe_stop(StopReason.MAX_ITER, steps=4, max_iter=4, limit="n_passes")
    assert "max_time=0.5 seconds" in describe_stop(StopReason.MAX_TIME, steps=4, max_time=0.5)
    assert describe_stop(StopReason.CALLBACK, steps=2) == "Stopped by the callback at step 2."


def test_a_path_that_ends_early_is_described_unless_it_was_stopped():
    stage = (3, 7)

    early = describe_stop(StopReason.CONVERGED, steps=9, tol=0.1, stage=stage)
    stopped = describe_stop(StopReason.CALLBACK, steps=9, stage=stage)

    assert early.startswith("Held-out entries were recovered best at stage 3 of 7")
    assert stopped == "Stopped by the callback at step 9."


def test_events_reach_the_subscriber_and_print_as_sentences():
    seen = []
    monitor = Monitor(subscriber=seen.append)

    monitor.notify(TrialFinished("linear", "one Gaussian", 0.25, 1.0))
    monitor.notify(RefitFailed("linear", "one Gaussian", "singular", 2.0))
    monitor.notify(PhaseStarted(Phase.OUT_OF_SAMPLE, 3.0, 1))
    Monitor().notify(PhaseStarted(Phase.REFIT, 3.0))

    assert [event.seconds for event in seen] == [1.0, 2.0, 3.0]
    assert [str(event) for event in seen] == [
        "one Gaussian: error 0.25 on held-out entries",
        "one Gaussian could not be refitted to all entries: singular",
        "imputing the rows that were not fitted (1 row)",
    ]


def test_callbacks_get_the_lines_of_the_trace():
    seen = []
    monitor = Monitor(seen.append)

    monitor.record(2.5, stage=1)

    assert seen == [Step(1, 1, 2.5, seen[0].seconds)]
    assert monitor.trace.tolist() == [tuple(seen[0])]
