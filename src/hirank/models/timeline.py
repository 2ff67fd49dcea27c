"""Rows that follow each other in time, in one group or in several, such as one for each device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array, BoolArray, IntArray

SHORTEST, LONGEST = 0.1, 1000.0
"""Limits of a step in usual ones: what was known before a gap of years does not count for less than
nothing, and the difference of two rows of nearly the same time is not a speed."""


class Steps(NamedTuple):
    """How far rows in order are from the row before, in usual steps."""

    length: Array  # n; 1 for the first row of a group
    linked: BoolArray  # n; whether there is a row before in the group
    twice: BoolArray  # n; whether that one has a row before, too

    @property
    def before(self) -> Array:
        """The length of the step before, n."""
        return shift(self.length, 1.0)

    @property
    def even(self) -> bool:
        """Whether all steps are usual ones."""
        return bool((self.length == 1).all())

    @property
    def typical(self) -> BoolArray:
        """The rows from which autocorrelations of steps can be estimated, n."""
        near = (self.length >= 0.5) & (self.length <= 2)
        return self.twice & near & shift(near, True)


def shift(X: Array, first: float = 0.0) -> Array:
    """Return the columns of X, ... x n, one later."""
    out = np.empty_like(X)
    out[..., 1:], out[..., :1] = X[..., :-1], first
    return out


@dataclass(frozen=True)
class Timeline:
    """The times of n rows in any order; rows of a group follow each other, groups do not."""

    times: Array  # n; different within a group
    group: IntArray | None = None  # n; None: all rows are one group

    @classmethod
    def counted(cls, n: int, group: IntArray | None = None) -> Timeline:
        """Return evenly spaced times of n rows, counted in each group."""
        times = np.arange(n, dtype=np.float64)
        if group is not None:
            order = np.argsort(group, kind="stable")
            _, first, count = np.unique(group[order], return_index=True, return_counts=True)
            times[order] = np.arange(n) - np.repeat(first, count)
        return cls(times, group)

    @classmethod
    def sorted(cls, times: ArrayLike | Timeline | None, n: int) -> Timeline:
        """Return the times of n rows in order; None counts the rows."""
        if isinstance(times, Timeline):
            return times
        if times is None:
            return cls.counted(n)
        checked = np.asarray(times, dtype=np.float64)
        if checked.shape != (n,):
            raise ValueError(
                f"times must have one number for each of {n} rows; got shape {checked.shape}."
            )
        if not np.isfinite(checked).all():
            raise ValueError("times must be finite. Drop the rows without a time.")
        back = np.flatnonzero(np.diff(checked) <= 0)
        if len(back):
            raise ValueError(
                f"times must increase, but row {back[0] + 1} is not later than row {back[0]}. "
                "Sort the rows by time, and drop rows with equal times."
            )
        return cls(checked)

    @property
    def order(self) -> IntArray:
        """The rows in order of time, one group after the other."""
        if self.group is None:
            return np.argsort(self.times, kind="stable")
        return np.lexsort((self.times, self.group))

    def take(self, rows: IntArray) -> Timeline:
        """Return some of the rows."""
        return Timeline(self.times[rows], None if self.group is None else self.group[rows])

    def middle(self, most: int) -> IntArray:
        """Return at most so many rows in order, from the middle of each group its share."""
        order, n = self.order, len(self.times)
        if n <= most:
            return order
        parts = []
        for span in self.take(order).spans():
            length = span.stop - span.start
            count = length * most // n
            first = span.start + (length - count) // 2
            parts.append(order[first : first + count])
        return np.concatenate(parts)

    def stretches(self, rows: IntArray) -> Timeline:
        """Return some rows of a timeline in order; only those next to each other are linked."""
        part = self.take(rows)
        apart = np.diff(rows, prepend=rows[:1]) > 1
        if part.group is not None:
            apart |= np.diff(part.group, prepend=part.group[:1]) != 0
        return Timeline(part.times, np.cumsum(apart))

    def spans(self) -> list[slice]:
        """Return the rows of each group; they must be in order."""
        n = len(self.times)
        if self.group is None:
            return [slice(0, n)]
        bounds = np.flatnonzero(np.diff(self.group)) + 1
        return [slice(a, b) for a, b in zip([0, *bounds], [*bounds, n], strict=True)]

    @property
    def unit(self) -> float:
        """The usual step of rows in order: the median."""
        steps = np.diff(self.times)[self._linked()[1:]]
        return float(np.median(steps)) if len(steps) else 1.0

    def steps(self, unit: float) -> Steps:
        """Return the steps between rows in order, in units of the usual one."""
        linked = self._linked()
        length = np.diff(self.times, prepend=self.times[:1]) / unit
        length = np.where(linked, np.clip(length, SHORTEST, LONGEST), 1.0)
        return Steps(length, linked, linked & shift(linked, False))

    def _linked(self) -> BoolArray:
        """Return whether there is a row before in the group, n."""
        linked = np.ones(len(self.times), bool)
        for span in self.spans():
            linked[span.start : span.start + 1] = False
        return linked
