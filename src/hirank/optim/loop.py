"""The loop that every solver runs under: stages, steps, trace, callbacks, stop reasons.

A solver makes a state from a starting point (``init``) and a better state from a state
(``step``). All else that a user sees of an optimization happens here, and only here: counting,
timing, calling back, stopping, and catching what is not finite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.core.objective import codes
from hirank.kernels import Kernel
from hirank.optim.path import Setting, Stage, settle
from hirank.optim.trace import NOTHING, TRACE, Callback, Recorder

WINDOW = 10
"""Steps over which progress is judged."""
PATIENCE = 25
"""Steps in a row with an objective above the first one that count as divergence."""


@dataclass(frozen=True)
class Options:
    """What a user may say about an optimization."""

    alpha: float = 0.0  # weight of the size of the dictionary
    max_iter: int = 100  # most steps in each stage
    tol: float = 0.0  # a stage ends when the objective fell by less than this part in WINDOW steps
    callback: Callback | None = None
    max_time: float | None = None  # seconds that all may take


Between = Callable[[int, Setting, Array, Array], tuple[Array, Array] | None]
"""Called with the number and setting of a stage that ended: where the next one starts, or None
to end the walk."""


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
    stopped_by_callback: bool = False

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
    options: Options,
    *,
    between: Between | None = None,
    after: Result | None = None,
    record: Recorder | None = None,
) -> Result:
    """Walk the stages; every one starts where the last ended.

    If the objective stops being finite, or stays above where it began, the walk ends
    with the best state so far. `after` is a walk that this one continues: steps, stages and
    seconds are counted on from it; so they are from `record`, if many walks share one.
    """
    if record is None:
        before = None if after is None else after.trace
        record = Recorder(options.callback, before, options.max_time)
    first = record.stages
    settings: list[Setting] = []
    for number, stage in enumerate(stages):
        setting = settle(stage, kernel, X, D, options.alpha)
        settings.append(setting)
        state = solver.init(setting, X, D)
        state, end = _walk(solver, state, first + number, record, options)
        X, D = state.X(), state.D()
        onward = None if end.final else (X, D)
        if onward is not None and between is not None:
            onward = between(number, setting, X, D)
        if onward is None:
            break
        X, D = onward
    return Result(
        X=X,
        D=D,
        settings=tuple(settings),
        objective=state.objective,
        n_iter=record.steps,
        stop_reason=end.reason,
        trace=record.trace,
        stopped_by_callback=end.by_callback,
    )


class _End(NamedTuple):
    reason: str
    final: bool = False  # of the whole walk, not only of the stage
    by_callback: bool = False


def _walk(
    solver: Solver[S],
    state: S,
    stage: int,
    record: Recorder,
    options: Options,
) -> tuple[S, _End]:
    """The steps of one stage; each is recorded."""
    best = state
    history = [state.objective]
    if not np.isfinite(state.objective):
        raise FloatingPointError(
            "The objective is not finite at the starting point. Use scale=True or a smaller degree."
        )
    for _ in range(options.max_iter):
        state = solver.step(state)
        history.append(state.objective)
        if state.objective < best.objective:
            best = state
        asked_to_stop = record(state.objective, stage)
        if _diverged(history):
            return best, _End(
                f"Diverged: the objective left its course at step {record.steps}. The best point "
                "before that was returned. Try solver='lbfgs' or a larger beta.",
                final=True,
            )
        if asked_to_stop:
            return best, _End(record.stopped(), True, by_callback=True)
        if _settled(history, options.tol):
            return state, _End(
                f"Converged: the objective fell by less than tol={options.tol:g} of itself over "
                f"the last {WINDOW} of {record.steps} steps."
            )
    return state, _End(record.exhausted(options.max_iter))


def _settled(history: list[float], tol: float) -> bool:
    if tol <= 0 or len(history) <= WINDOW:
        return False
    return history[-1 - WINDOW] - history[-1] <= tol * abs(history[-1])


def _diverged(history: list[float]) -> bool:
    if not np.isfinite(history[-1]):
        return True
    recent = history[-PATIENCE:]
    return len(recent) == PATIENCE and min(recent) > history[0]


def nothing_to_learn(X: Array, n_components: int) -> Result:
    """The result for samples without any feature that varies, n x 0."""
    return Result(
        X=X,
        D=np.zeros((n_components, X.shape[1])),
        settings=(),
        objective=0.0,
        n_iter=0,
        stop_reason=NOTHING,
        trace=np.zeros(0, TRACE),
    )
