"""Monitor of a fit: steps are counted, timed and kept, limits are enforced, events passed on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from time import perf_counter
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hirank._text import plural
from hirank._typing import Shape
from hirank.core.threads import position
from hirank.exceptions import StopReason

TRACE = np.dtype(
    [("step", np.int64), ("stage", np.int64), ("objective", np.float64), ("seconds", np.float64)]
)
SEARCH_SHARE = 0.6  # of max_time; the rest is for refitting what was selected


class Step(NamedTuple):
    """One step of an optimization: a line of the trace."""

    step: int  # from 1
    stage: int  # from 0
    objective: float
    seconds: float  # since the fit began, as in all events


class Phase(Enum):
    """A part of a fit that begins after the models have been compared."""

    REFIT = "refitting the selected models to all entries"
    OUT_OF_SAMPLE = "imputing the rows that were not fitted"


@dataclass(frozen=True)
class PhaseStarted:
    """A phase of a fit has begun; `n_rows` is the number of rows to impute, if it imputes any."""

    phase: Phase
    seconds: float
    n_rows: int | None = None

    def __str__(self) -> str:
        rows = "" if self.n_rows is None else f" ({plural(self.n_rows, 'row')})"
        return f"{self.phase.value}{rows}"


@dataclass(frozen=True)
class TrialFinished:
    """A candidate was scored; `label` describes it and `error` is that on held-out entries."""

    family: str
    label: str
    error: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.label}: error {self.error:.4g} on held-out entries"


@dataclass(frozen=True)
class RefitFailed:
    """A selected model could not be refitted to all entries; `problem` is the error's message."""

    family: str
    label: str
    problem: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.label} could not be refitted to all entries: {self.problem}"


ProgressEvent: TypeAlias = PhaseStarted | TrialFinished | RefitFailed
Callback: TypeAlias = Callable[[Step], bool | None]
"""Called after each step; a true return value stops the fit."""
Subscriber: TypeAlias = Callable[[ProgressEvent], None]


@dataclass(frozen=True)
class RunInfo:
    """How a fit went: what estimators publish as ``objective_``, ``n_iter_`` and so on."""

    objective: Annotated[float, Shape("", finite=False)]
    reason: StopReason
    stop_reason: str  # a sentence
    trace: Annotated[NDArray[np.void], TRACE]

    @property
    def n_iter(self) -> int:
        """Return the number of steps in all."""
        return len(self.trace)


class Monitor:
    """Counts and times the steps of a fit, keeps the trace, and stops the fit.

    Parameters
    ----------
    callback : function of a Step, optional
        Called after each step; a true return value stops the fit.
    max_time : float, optional
        Seconds after which the fit stops.
    subscriber : function of a ProgressEvent, optional
    began : float, optional
        When the fit began, by `perf_counter`; now by default.

    Notes
    -----
    Threads may share a monitor: the trace is in the order in which one thread would have taken the
    steps. Steps that are taken after the fit was stopped, to bring a method to an end, are not
    recorded.
    """

    def __init__(
        self,
        callback: Callback | None = None,
        *,
        max_time: float | None = None,
        subscriber: Subscriber | None = None,
        began: float | None = None,
    ) -> None:
        self.callback, self.max_time, self.subscriber = callback, max_time, subscriber
        self.reason: StopReason | None = None  # set once the fit has to stop
        self._lines: list[Step] = []
        self._positions: list[tuple[int, ...]] = []  # of the steps
        self._stages = 0
        self._shortened = False  # the time limit made the fit leave something out
        self._began = perf_counter() if began is None else began
        self._lock = Lock()

    def record(self, objective: float, stage: int = 0) -> StopReason | None:
        """Record a step; return MAX_TIME or CALLBACK if the fit has to stop, otherwise None."""
        with self._lock:
            if self.reason is not None:
                return self.reason
            line = Step(self.steps + 1, stage, float(objective), self.seconds)
            self._lines.append(line)
            self._stages = max(self._stages, stage + 1)
            self._positions.append(position())
            if self.max_time is not None and self.seconds > self.max_time:
                self.reason = StopReason.MAX_TIME
            if self.callback is not None and self.callback(line):
                self.reason = StopReason.CALLBACK
            return self.reason

    def notify(self, event: ProgressEvent) -> None:
        """Pass an event on to the subscriber."""
        if self.subscriber is not None:
            self.subscriber(event)

    @property
    def stopped(self) -> bool:
        """Return whether the callback or the time limit has stopped the fit."""
        return self.reason is not None

    @property
    def late(self) -> bool:
        """Return whether the search has to end, so that time is left to refit what it found.

        Who asks leaves the rest out if so: the fit then counts as ended by the time limit.
        """
        if self.max_time is not None and self.seconds > SEARCH_SHARE * self.max_time:
            self.shorten()
        return self.stopped or self._shortened

    def shorten(self) -> None:
        """Note that something was left out because of the time limit."""
        self._shortened = True

    @property
    def seconds(self) -> float:
        """Return the seconds since the fit began."""
        return perf_counter() - self._began

    @property
    def steps(self) -> int:
        """Return the number of steps so far."""
        return len(self._lines)

    @property
    def stages(self) -> int:
        """Return the number of stages begun so far."""
        return self._stages

    def begin_stage(self) -> int:
        """Return the number of a stage that begins."""
        with self._lock:
            self._stages += 1
            return self._stages - 1

    @property
    def trace(self) -> NDArray[np.void]:
        """Return all steps; columns step, stage, objective, seconds."""
        order = sorted(range(self.steps), key=self._positions.__getitem__)
        lines = np.array([self._lines[i] for i in order], dtype=TRACE)
        # Steps and stages are numbered again: threads took them in another order.
        begun = list(dict.fromkeys(lines["stage"].tolist()))
        numbers = dict(zip(begun, sorted(begun), strict=True))
        lines["step"] = np.arange(1, len(lines) + 1)
        lines["stage"] = [numbers[stage] for stage in lines["stage"].tolist()]
        return lines

    def finish_search(self, selected: str) -> RunInfo:
        """Return how a search went; `selected` describes what it has selected."""
        reason = self.reason or (StopReason.MAX_TIME if self._shortened else None)
        if reason is not None:
            stop = describe_stop(reason, steps=self.steps, max_time=self.max_time)
            selected = f"{stop} {selected}"
        return RunInfo(np.nan, reason or StopReason.CONVERGED, selected, self.trace)

    def finish(
        self, reason: StopReason, *, objective: float | None = None, **limits: Any
    ) -> RunInfo:
        """Return how the fit went; `limits` are further arguments of `describe_stop`.

        The objective is that of the last step if it is not given. A reason of the monitor's own,
        the callback or the time limit, comes first.
        """
        if objective is None:
            objective = self._lines[-1].objective if self._lines else 0.0
        reason = self.reason or reason
        sentence = describe_stop(reason, steps=self.steps, max_time=self.max_time, **limits)
        return RunInfo(objective, reason, sentence, self.trace)


def describe_stop(
    reason: StopReason,
    *,
    steps: int,
    tol: float = 0.0,
    max_iter: int = 0,
    max_time: float | None = None,
    quantity: str = "the objective",
    limit: str = "max_iter",
    stage: tuple[int, int] | None = None,
) -> str:
    """Return the sentence that estimators publish as ``stop_reason_``.

    Parameters
    ----------
    reason : StopReason
    steps : int
        Steps in all.
    tol, max_iter, max_time
        The limits of the fit.
    quantity : str
        What `tol` limits the change of.
    limit : str
        The parameter that `max_iter` is the value of.
    stage : tuple of two int, optional
        If the path ended early: the stage that held-out entries were recovered best at, from 1, and
        the number of stages.

    Examples
    --------
    >>> from hirank.exceptions import StopReason
    >>> describe_stop(StopReason.CONVERGED, steps=12, tol=1e-3)
    'Converged: the objective changed by less than tol=0.001 at step 12.'
    """
    sentences = {
        StopReason.CONVERGED: f"Converged: {quantity} changed by less than tol={tol:g} at step "
        f"{steps}.",
        StopReason.MAX_ITER: f"Reached {limit}={max_iter} ({plural(steps, 'step')} in all). If the "
        f"objective in trace_ is still falling, a larger {limit} may help.",
        StopReason.MAX_TIME: f"Ended by max_time={max_time or 0:g} seconds at step {steps}.",
        StopReason.CALLBACK: f"Stopped by the callback at step {steps}.",
        StopReason.DIVERGED: f"Diverged by step {steps}: the objective was not finite, or stayed "
        "above its start. The best point before that was returned. Scale the data; with KFMC, use "
        "solver='lbfgs' or a larger beta.",
        StopReason.NOTHING_TO_FIT: "Nothing to fit: no feature varies, or no entry is missing.",
    }
    if stage is None or reason not in (StopReason.CONVERGED, StopReason.MAX_ITER):
        return sentences[reason]
    reached, total = stage
    return (
        f"Held-out entries were recovered best at stage {reached} of {total}, so the path ends "
        f"there. {sentences[reason]}"
    )
