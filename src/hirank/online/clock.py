"""The clock of a stream: times of rows as steps, in units of the usual step."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

import numpy as np

from hirank._typing import Array, Shape

USUAL_STEPS = 101
"""First steps whose median is the usual one; all later ones are measured by it, unless the median
of as many differs by a factor of `CHANGED`."""
CHANGED = 10.0
SHORTEST, LONGEST = 0.1, 1000.0
"""Limits of a step in usual ones: rows of the same time differ all the same, and what was known
before a gap of years is not worth less than nothing."""
EVEN = 2.0
"""Factor by which a step may differ from the usual one and still show how rows follow each other.
"""


class Pace(NamedTuple):
    """The step to a row and the one before, in usual steps."""

    step: float = 1.0
    before: float = 1.0

    @property
    def even(self) -> bool:
        """Whether both steps are usual ones, to the bit."""
        return self.step == 1 and self.before == 1

    @property
    def typical(self) -> bool:
        """Whether autocorrelations may be estimated from these steps."""
        return 1 / EVEN <= self.step <= EVEN


class TimeCounts(NamedTuple):
    """Rows whose times could not be used as they are."""

    missing: int = 0  # counted as one usual step after the row before
    backward: int = 0  # earlier than the row before; the same
    repeated: int = 0  # the time of the row before; a tenth of a usual step
    far: int = 0  # more than 1000 usual steps after the row before; as 1000 steps


@dataclass(frozen=True)
class Clock:
    """The time of the last row, and the steps between the last rows."""

    last: float | None  # None before the first time
    steps: Annotated[Array, Shape("k")]  # positive, the newest last
    usual: float | None = None  # the usual step
    pace: float = 1.0  # the last step, in usual ones
    counts: TimeCounts = field(default_factory=TimeCounts)

    @classmethod
    def start(cls) -> Clock:
        """Return a clock that has seen no row."""
        return cls(None, np.zeros(0))

    def read(self, time: float | None) -> tuple[Clock, Pace]:
        """Return the clock after a row, and the steps to it; without a time rows are even."""
        if time is None:
            return self, Pace(1.0, self.pace)
        usual = self.usual
        step, relative, problem, last = 0.0, 1.0, None, self.last
        if last is not None:
            step = time - last
        if np.isnan(time):
            problem = "missing"
            last = last if last is None or usual is None else last + usual
            return self._advance(last, relative, problem), Pace(relative, self.pace)
        if last is None:
            pass
        elif step < 0:
            problem = "backward"
        elif step == 0:
            problem, relative = "repeated", SHORTEST
        elif usual is not None:
            relative = float(np.clip(step / usual, SHORTEST, LONGEST))
            problem = "far" if step > LONGEST * usual else None
        clock = self._advance(float(time), relative, problem)
        if 0 < step < np.inf:
            clock = clock._add_step(step)
        return clock, Pace(relative, self.pace)

    def _add_step(self, step: float) -> Clock:
        steps, usual = np.append(self.steps, step)[-USUAL_STEPS:], self.usual
        median = float(np.median(steps))
        changed = usual is not None and not 1 / CHANGED <= median / usual <= CHANGED
        if len(self.steps) < USUAL_STEPS or changed:
            usual = median
        return replace(self, steps=steps, usual=usual)

    def _advance(self, last: float | None, pace: float, problem: str | None) -> Clock:
        counts = self.counts
        if problem is not None:
            counts = counts._replace(**{problem: getattr(counts, problem) + 1})
        return replace(self, last=last, pace=pace, counts=counts)

    def next_times(self, h: int) -> Array:
        """Return the times of the next h rows, at the usual step; NaN if it is not known."""
        if self.last is None or self.usual is None:
            return np.full(h, np.nan)
        return self.last + self.usual * np.arange(1.0, h + 1)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if (
            not (self.steps > 0).all()
            or len(self.steps) > USUAL_STEPS
            or not np.isfinite(self.last or 0)
        ):
            raise ValueError("steps must be positive, and the last time finite")
        if self.usual is not None and not 0 < self.usual < np.inf:
            raise ValueError("the usual step must be positive")
        if not SHORTEST <= self.pace <= LONGEST or min(self.counts) < 0:
            raise ValueError("the pace must be within its limits, and counts not negative")


def growth_of_level(level: float, step: float) -> float:
    """Return the variance that is added in a step, over that of a usual step."""
    if step == 1:
        return 1.0
    if level >= 1:
        return step
    if level <= 0:
        return 1.0
    rate = np.log(level)
    return float(np.expm1(2 * step * rate) / np.expm1(2 * rate))


def growth_of_trend(f: Array, step: float) -> Array:
    """Return the same if steps have the autocorrelation f, m: their noise adds up."""
    if step == 1:
        return np.ones_like(f)
    once, twice = (-np.expm1(step * k * np.log(np.maximum(f, 1e-12))) for k in (1, 2))
    total = step - 2 * f * once / (1 - f) + f**2 * twice / (1 - f**2)
    # The formula is exact for whole steps; a part of one adds in proportion, at least.
    return np.maximum(total / (1 - f) ** 2, min(step, 1.0) ** 2)


def continuation(f: Array, pace: Pace) -> Array:
    """Return how often the last step, with autocorrelation f, m, is repeated in the next one."""
    if pace.even:
        return f
    fades: Array = f * (1 - f**pace.step) / (1 - f)
    return fades / pace.before
