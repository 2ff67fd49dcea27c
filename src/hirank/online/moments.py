"""Running means, units and autocorrelations of the features of a stream that is in order."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, Shape

FIRST_UNITS = 10
"""Rows after which units are measured for the first time; then whenever their number has doubled,
so that what is stored in them is rarely converted."""
MAX_DEVIATION = 20.0
"""Standard deviations to which a value counts: one outlier must not set the unit for good."""
MAX_SIZE = 1e100
"""Absolute value to which larger ones are clipped for learning: their squares would overflow."""
MIN_SUM = 1e-12
"""Added to the sums of squared steps, which are divided by."""


class Damping(NamedTuple):
    """How fast each feature returns to its mean, and how long its steps go on; m each."""

    level: Array  # lag-one autocorrelation of deviations from the mean
    step: Array  # lag-one autocorrelation of steps
    max_step: Array  # in units of the data; longer steps are not continued


@dataclass(frozen=True)
class RunningMoments:
    """Moments of the observed entries of m features so far.

    Autocorrelations are estimated from entries that were observed in two (levels) or three (steps)
    rows in a row; older rows count less and less.
    """

    count: Annotated[Array, Shape("m")]  # observed entries
    mean: Annotated[Array, Shape("m")]
    square: Annotated[Array, Shape("m")]  # sum of squared deviations from the mean
    unit: Annotated[Array, Shape("m")]  # standard deviations when they were last measured
    recent: Annotated[Array, Shape("2 m", finite=False)]  # the last row and the one before
    level: Annotated[Array, Shape("2 m")]  # sums of x x' and x'x', x' one row before, in units
    step: Annotated[Array, Shape("2 m")]  # the same of steps
    length: Annotated[Array, Shape("2 m")]  # sum of squared steps, and how many
    rows: int = 0

    @classmethod
    def empty(cls, m: int) -> RunningMoments:
        """Return the moments of no rows."""
        zeros, sums = np.zeros(m), np.zeros((2, m))
        recent = np.full((2, m), np.nan)
        return cls(zeros, zeros, zeros, np.ones(m), recent, sums, sums, sums + MIN_SUM)

    def add_features(self, count: int) -> RunningMoments:
        """Return the moments with so many features more, which have no values."""
        more = RunningMoments.empty(count)
        parts: dict[str, Any] = {
            f.name: np.concatenate([getattr(self, f.name), getattr(more, f.name)], axis=-1)
            for f in fields(self)
            if f.name != "rows"
        }
        return replace(self, **parts)

    def at(self, features: slice) -> RunningMoments:
        """Return the moments of some features."""
        parts: dict[str, Any] = {
            f.name: getattr(self, f.name)[..., features] for f in fields(self) if f.name != "rows"
        }
        return replace(self, **parts)

    def twice(self) -> RunningMoments:
        """Return the moments of a row and the one before, side by side."""
        parts: dict[str, Any] = {
            f.name: np.concatenate([getattr(self, f.name)] * 2, axis=-1)
            for f in fields(self)
            if f.name != "rows"
        }
        return replace(self, **parts)

    @property
    def known(self) -> BoolArray:
        """Which features had a value."""
        return self.count > 0

    @property
    def constant(self) -> BoolArray:
        """Which features had values that are all the same."""
        return self.known & (self.square == 0)

    @property
    def variance(self) -> Array:
        return self.square / np.maximum(self.count - 1, 1)

    @property
    def deviation(self) -> Array:
        """The standard deviations; 1 for features that do not vary."""
        return np.sqrt(np.where(self.square > 0, self.variance, 1))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if min(self.count.min(), self.square.min(), self.step[1].min(), self.level[1].min()) < 0:
            raise ValueError("counts and sums of squares must not be negative")
        if not (self.unit > 0).all() or not (self.length > 0).all():
            raise ValueError("units and lengths must be positive")
        if np.isinf(self.recent).any():
            raise ValueError("recent must not be infinite")

    def damping(self, max_level: float, max_step: float, reach: float) -> Damping:
        """Return the autocorrelations by feature, shrunk to those of all features together."""
        return Damping(
            np.clip(_shrunk_ratio(self.level, 1.0), 0, max_level),
            np.clip(_shrunk_ratio(self.step, 0.0), 0, max_step),
            reach * self.unit * np.sqrt(self.length[0] / self.length[1]),
        )

    def pooled_level(self) -> float:
        """Return the autocorrelation of all features together, from 0 to 1."""
        return float(np.clip(_pooled_ratio(self.level, 1.0), 0, 1))

    def add(
        self, y: Array, memory: float, *, follows: bool = True
    ) -> tuple[RunningMoments, Array | None]:
        """Return the moments after a row y, m, NaN where missing.

        Also return by what values in the old units are multiplied if units were measured again.
        Autocorrelations are learned from rows that `follow` the row before at the usual step.
        """
        after = self._add_means(y)._add_correlations(y, 1 - 1 / memory, follows)
        if after.rows < FIRST_UNITS or after.rows % FIRST_UNITS:
            return after, None
        doublings = after.rows // FIRST_UNITS
        if doublings & (doublings - 1):  # not a power of two
            return after, None
        deviation = np.sqrt(after.variance)
        unit = np.where(deviation > 0, deviation, after.unit)
        factor = after.unit / unit
        length = after.length * np.array([factor**2, np.ones_like(factor)])
        return replace(
            after,
            unit=unit,
            level=after.level * factor**2,
            step=after.step * factor**2,
            length=length,
        ), factor

    def _add_means(self, y: Array) -> RunningMoments:
        seen = ~np.isnan(y)
        count = self.count + seen
        away = np.where(seen, y - self.mean, 0)
        reach = MAX_DEVIATION * np.sqrt(self.variance)
        clipped = (self.count >= FIRST_UNITS) & (reach > 0)
        away = np.where(clipped, np.clip(away, -reach, reach), away)
        shift = away / np.maximum(count, 1)
        return replace(
            self,
            count=count,
            mean=self.mean + shift,
            square=self.square + away * (away - shift),
            rows=self.rows + 1,
        )

    def _add_correlations(self, y: Array, keep: float, follows: bool) -> RunningMoments:
        before, second = self.recent if follows else np.full_like(self.recent, np.nan)
        now, then = (y - self.mean) / self.unit, (before - self.mean) / self.unit
        step, last_step = (y - before) / self.unit, (before - second) / self.unit
        return replace(
            self,
            recent=np.array([y, before]),
            level=keep * self.level + _products(now, then),
            step=keep * self.step + _products(step, last_step),
            length=keep * self.length
            + np.array([_known(last_step**2, step), _known(np.ones_like(y), step + last_step)]),
        )


def _products(a: Array, b: Array) -> Array:
    """Return a b and b b, 2 x m, 0 where one of them is missing."""
    known = ~np.isnan(a + b)
    return np.where(known, [a * b, b * b], 0)


def _known(values: Array, where: Array) -> Array:
    return np.where(np.isnan(values + where), 0, values)


def _pooled_ratio(sums: Array, default: float) -> float:
    total = float(sums[1].sum())
    return float(sums[0].sum()) / total if total > 0 else default


def _shrunk_ratio(sums: Array, default: float) -> Array:
    """Return the ratio of sums, 2 x m, of each feature; the pooled one counts as a tenth."""
    pooled, prior = _pooled_ratio(sums, default), 0.1 * float(sums[1].mean())
    if prior <= 0:
        return np.full(sums.shape[1], pooled)
    return (sums[0] + prior * pooled) / (sums[1] + prior)
