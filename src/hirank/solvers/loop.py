"""The loop that every solver runs under: stages, steps, trace, callbacks, stop reasons.

A solver makes a state from a starting point (``init``) and a better state from a state
(``step``). All else that a user sees of an optimization happens here, and only here: counting,
timing, calling back, stopping, and catching what is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array, Kernel
from hirank.model.objective import codes
from hirank.solvers.path import Setting, Stage, settle

WINDOW = 10
"""Steps over which progress is judged."""
PATIENCE = 25
"""Steps in a row with an objective above the first one that count as divergence."""


class Progress(NamedTuple):
    """One line of the trace."""

    step: int
    stage: int
    objective: float
    seconds: float


TRACE = np.dtype(
    [("step", np.int64), ("stage", np.int64), ("objective", np.float64), ("seconds", np.float64)]
)

Callback = Callable[[Progress], bool | None]
"""Called after each step; a true answer ends the optimization."""

Between = Callable[[int, Setting, Array, Array], tuple[Array, Array]]
"""Called with the number and setting of a stage that ended: where the next one starts."""


class State(Protocol):
    """Where a solver stands. A state is never changed, so an earlier one can be kept."""

    @property
    def objective(self) -> float: ...

    def X(self) -> Array: ...

    def D(self) -> Array: ...


S = TypeVar("S", bound=State)


class Solver(Protocol[S]):
    """An algorithm that works on one stage."""

    def init(self, setting: Setting, X: Array, D: Array) -> S: ...

    def step(self, state: S) -> S: ...


@dataclass(frozen=True)
class Result:
    """What an optimization found. X is n x m, D is r x m."""

    X: Array
    D: Array
    settings: tuple[Setting, ...]  # of the stages walked, in order
    objective: float
    n_iter: int
    stop_reason: str
    trace: NDArray[np.void]  # columns step, stage, objective, seconds

    @cached_property
    def Z(self) -> Array:
        """The codes of the samples, n x r."""
        return codes(self.X, self.settings[-1].basis(self.D))


def run(
    solver: Solver[S],
    kernel: Kernel,
    stages: Sequence[Stage],
    X: Array,
    D: Array,
    *,
    alpha: float = 0.0,
    max_iter: int = 100,
    tol: float = 0.0,
    callback: Callback | None = None,
    between: Between | None = None,
) -> Result:
    """Walk the stages, at most `max_iter` steps each; every stage starts where the last ended.

    A stage ends early when the objective fell by less than the fraction `tol` of itself over the
    last `WINDOW` steps. If it stops being finite, or stays above where it began, the walk ends
    with the best state so far.
    """
    began = perf_counter()
    lines: list[Progress] = []
    settings: list[Setting] = []
    reason = ""
    for number, stage in enumerate(stages):
        setting = settle(stage, kernel, X, D, alpha)
        settings.append(setting)
        state = best = solver.init(setting, X, D)
        if not np.isfinite(state.objective):
            raise FloatingPointError(
                "The objective is not finite at the starting point. Use scale=True, float64 input, "
                "or a smaller degree."
            )
        history = [state.objective]
        end = None
        for _ in range(max_iter):
            state = solver.step(state)
            history.append(state.objective)
            if state.objective < best.objective:
                best = state
            line = Progress(len(lines) + 1, number, state.objective, perf_counter() - began)
            lines.append(line)
            if _diverged(history):
                end = (
                    f"Diverged: the objective left its course at step {line.step}. The best point "
                    "before that was returned. Try solver='lbfgs', less momentum or a larger beta."
                )
                break
            if callback is not None and callback(line):
                end = f"Stopped by the callback at step {line.step}."
                break
            if _settled(history, tol):
                reason = (
                    f"Converged: the objective fell by less than tol={tol:g} of itself over the "
                    f"last {WINDOW} of {line.step} steps."
                )
                break
        else:
            reason = (
                f"Reached max_iter={max_iter} steps in the last stage, {len(lines)} in all. If the "
                "objective in trace_ is still falling, a larger max_iter may help."
            )
        if end is not None:
            reason, state = end, best
        X, D = state.X(), state.D()
        if end is not None:
            break
        if between is not None:
            X, D = between(number, setting, X, D)
    return Result(
        X=X,
        D=D,
        settings=tuple(settings),
        objective=state.objective,
        n_iter=len(lines),
        stop_reason=reason,
        trace=np.array(lines, dtype=TRACE),
    )


def _settled(history: list[float], tol: float) -> bool:
    if tol <= 0 or len(history) <= WINDOW:
        return False
    return history[-1 - WINDOW] - history[-1] <= tol * abs(history[-1])


def _diverged(history: list[float]) -> bool:
    if not np.isfinite(history[-1]):
        return True
    recent = history[-PATIENCE:]
    return len(recent) == PATIENCE and min(recent) > history[0]
