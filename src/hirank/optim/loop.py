"""The loop that every iterative algorithm of the library runs under.

A solver makes a state from a starting point (`init`), a better state from a state (`step`), and
decides when a state is good enough (`terminate`). Counting, timing, callbacks, divergence and stop
reasons are the loop's and the monitor's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Generic, Protocol, TypeVar

from hirank.exceptions import StopReason
from hirank.optim.trace import Monitor

PATIENCE = 25  # steps in a row with an objective above that of the start that count as divergence


class State(Protocol):
    """Where a solver stands. A state is never changed, so that an earlier one can be kept."""

    @property
    def objective(self) -> float: ...  # infinite if `init` does not evaluate it


S = TypeVar("S", bound=State)
K = TypeVar("K")


class Solver(Protocol[S]):
    """An algorithm that minimizes an objective step by step."""

    @property
    def monotone(self) -> bool: ...  # False: the objective may rise above its start on the way

    def init(self, start: Any) -> S: ...

    def step(self, state: S) -> S: ...

    def terminate(self, state: S, objectives: Sequence[float]) -> bool: ...


@dataclass(frozen=True)
class Solution(Generic[S]):
    """The state that an optimization ended with, and why it ended."""

    state: S
    reason: StopReason


def minimize(solver: Solver[S], start: Any, *, max_iter: int, monitor: Monitor) -> Solution[S]:
    """Take steps until the solver terminates, the objective diverges, or the monitor stops.

    One call is one stage of the trace. At least one step is taken, also if the monitor has stopped
    the fit before: callers rely on a usable state. After divergence or a stop, the best state of a
    monotone solver is returned, and the latest finite one of any other.
    """
    state = best = solver.init(start)
    objectives, stage = [state.objective], monitor.begin_stage()
    for _ in range(max_iter):
        state = solver.step(state)
        objectives.append(state.objective)
        if isfinite(state.objective) and not (
            solver.monotone and state.objective >= best.objective
        ):
            best = state
        stop = monitor.record(state.objective, stage)
        if _has_diverged(objectives, monotone=solver.monotone):
            return Solution(best, StopReason.DIVERGED)
        if stop is not None:
            return Solution(best, stop)
        if solver.terminate(state, objectives):
            return Solution(state, StopReason.CONVERGED)
    return Solution(state, StopReason.MAX_ITER)


def minimize_each(
    solvers: Iterable[tuple[K, Solver[S]]], start: Any, *, max_iter: int, monitor: Monitor
) -> Iterator[tuple[K, Solution[S]]]:
    """Minimize with each solver from the state that the one before ended with.

    Yields each solver's key, such as the penalty on a falling path, and its solution, until the
    monitor stops the fit.
    """
    for key, solver in solvers:
        solution = minimize(solver, start, max_iter=max_iter, monitor=monitor)
        yield key, solution
        if monitor.stopped:
            return
        start = solution.state


def has_stalled(objectives: Sequence[float], tol: float, window: int = 1) -> bool:
    """Return whether the objective fell by no more than a fraction `tol` over the last steps."""
    if len(objectives) <= window:
        return False
    return objectives[-1 - window] - objectives[-1] <= tol * abs(objectives[-1])


def _has_diverged(objectives: Sequence[float], *, monotone: bool) -> bool:
    if not isfinite(objectives[-1]):
        return True
    recent = objectives[-PATIENCE:]
    return monotone and len(recent) == PATIENCE and min(recent) > objectives[0]
