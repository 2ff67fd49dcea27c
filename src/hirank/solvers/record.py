"""What happened in an optimization: counted, timed, kept, and told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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


class Recorder:
    """The lines of a trace, one per step. `after` is a trace that this one continues."""

    def __init__(
        self, callback: Callback | None = None, after: NDArray[np.void] | None = None
    ) -> None:
        self.callback = callback
        self.lines = [] if after is None else [Progress(*line) for line in after.tolist()]
        self.began = perf_counter() - (self.lines[-1].seconds if self.lines else 0.0)

    def __call__(self, objective: float, stage: int = 0) -> bool:
        """Record a step; true if the callback asks to stop."""
        line = Progress(self.steps + 1, stage, float(objective), perf_counter() - self.began)
        self.lines.append(line)
        return self.callback is not None and bool(self.callback(line))

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

    def stopped(self) -> str:
        """The reason to give when the callback has ended the optimization."""
        return f"Stopped by the callback at step {self.steps}."
