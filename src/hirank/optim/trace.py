"""What happened in an optimization: counted, timed, kept, and told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array


class Progress(NamedTuple):
    """One line of the trace."""

    step: int
    stage: int
    objective: float
    seconds: float


class News(NamedTuple):
    """What is being done, for people who wait."""

    sentence: str
    seconds: float
    error: float | None = None  # at hidden entries, if a candidate was tried


TRACE = np.dtype(
    [("step", np.int64), ("stage", np.int64), ("objective", np.float64), ("seconds", np.float64)]
)

LATE = 0.6
"""Part of the time after which a search ends, so that its result can be put to use."""

Callback = Callable[[Progress], bool | None]
"""Called after each step; a true answer ends the optimization."""


@dataclass(frozen=True)
class Completed:
    """A table as completed, and how it came to be."""

    X: Array  # n x m
    objective: float
    n_iter: int
    stop_reason: str
    trace: NDArray[np.void]  # columns step, stage, objective, seconds
    details: dict[str, Any]  # what else a method tells of its fit, by name


class Recorder:
    """The lines of a trace, one per step.

    `after` is a trace that this one continues, `max_time` the seconds that all may take; `tell`
    gets news of what is being done. Threads may share a recorder.
    """

    def __init__(
        self,
        callback: Callback | None = None,
        after: NDArray[np.void] | None = None,
        max_time: float | None = None,
        tell: Callable[[News], None] | None = None,
    ) -> None:
        self.callback, self.max_time, self.tell = callback, max_time, tell
        self.lines = [] if after is None else [Progress(*line) for line in after.tolist()]
        self.began = perf_counter() - (self.lines[-1].seconds if self.lines else 0.0)
        self.over = False  # whether the callback has asked to stop, or the time is up
        self.out_of_time = False
        self._lock = Lock()

    def __call__(self, objective: float, stage: int = 0) -> bool:
        """Record a step; true if the callback asks, or has asked, to stop, or the time is up.

        What a method still does after that to come to an end is nobody's business.
        """
        with self._lock:
            if self.over:
                return True
            line = Progress(self.steps + 1, stage, float(objective), self.seconds)
            self.lines.append(line)
            self.out_of_time = self.max_time is not None and self.seconds > self.max_time
            self.over = self.out_of_time
            if self.callback is not None and self.callback(line):
                self.over, self.out_of_time = True, False
            return self.over

    def say(self, sentence: str, error: float | None = None) -> None:
        """Tell whoever listens what is being done."""
        if self.tell is not None:
            self.tell(News(sentence, self.seconds, error))

    @property
    def seconds(self) -> float:
        """Since the first step."""
        return perf_counter() - self.began

    @property
    def late(self) -> bool:
        """Whether nothing new should be begun: what there is has to be brought to an end."""
        late = self.max_time is not None and self.seconds > LATE * self.max_time
        return self.over or late

    @property
    def steps(self) -> int:
        return len(self.lines)

    @property
    def stages(self) -> int:
        """Stages begun so far, if they were numbered from 0."""
        return self.lines[-1].stage + 1 if self.lines else 0

    @property
    def trace(self) -> NDArray[np.void]:
        """All lines; columns step, stage, objective, seconds."""
        return np.array(self.lines, dtype=TRACE)

    def finish(self, X: Array, stop_reason: str, **details: Any) -> Completed:
        """The table that the last step led to, n x m, with all that was recorded."""
        objective = self.lines[-1].objective if self.lines else 0.0
        return Completed(X, objective, self.steps, stop_reason, self.trace, details)

    def stopped(self) -> str:
        """The reason to give when the callback, or the clock, has ended the optimization."""
        if self.out_of_time:
            return f"Stopped at step {self.steps}: max_time={self.max_time:g} seconds were over."
        return f"Stopped by the callback at step {self.steps}."

    def converged(self, tol: float, what: str) -> str:
        """The reason to give when `what` changed by less than `tol`."""
        return f"Converged: {what} changed by less than tol={tol:g} at step {self.steps}."

    def exhausted(self, max_iter: int) -> str:
        """The reason to give when there were no steps left."""
        return (
            f"Reached max_iter={max_iter} steps, {self.steps} in all. If the objective in trace_ "
            "is still falling, a larger max_iter may help."
        )


NOTHING = "Nothing to learn: no feature varies."
"""The reason to give when there was no work."""
