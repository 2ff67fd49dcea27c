"""Forecasts: the next rows if nothing arrives, judged by the rows that came.

The running means, the level filter and the trend filter go on without observed entries. One
forecast is open at any time; when 1, 2, 4, ..., 64 steps have passed it is compared with the row
that came, then it starts anew. Weights and intervals by feature and horizon are learned from these
errors: on arrival, where other entries of a row are known, they are far smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np

from hirank._typing import Array, Shape
from hirank.online.clock import Pace
from hirank.online.filter_bank import FilterBank
from hirank.online.filters import FilterConfig, trend_steps
from hirank.online.intervals import AdaptiveQuantiles, IntervalConfig
from hirank.online.mixing import MixConfig, PredictionMix, quadratic
from hirank.online.moments import RunningMoments

LAST_DUE = 64.0
"""Steps after which a forecast starts anew."""


class Forecast(NamedTuple):
    """What is expected of the next h rows, h x m."""

    values: Array  # NaN: the feature never had a value
    half_widths: Array  # of intervals


class Path(NamedTuple):
    """Where the filters are, m each, in units of the data; NaN for features without a value."""

    level: Array
    trend: Array
    before: Array  # the row before on the path of the trend filter

    @classmethod
    def start(cls, filters: FilterBank, moments: RunningMoments) -> Path:
        """Return the path from the last row on."""
        (level, _), trend, known = filters.last("level"), filters.last("trend"), moments.known
        return cls(*(np.where(known, x, np.nan) for x in (level, *trend)))

    def advance(
        self, moments: RunningMoments, pace: Pace, config: FilterConfig, count: int = 1
    ) -> Path:
        """Return the path one step further, or `count` steps of the same length."""
        mean, a = moments.mean, moments.pooled_level() ** (count * pace.step)
        step, (level, trend, before) = trend_steps(moments, pace, config), self
        for _ in range(count):
            last = trend - np.minimum(np.maximum(trend - before, -step.reach), step.reach)
            trend, before = mean + step.c1 * (trend - mean) + step.c2 * (last - mean), trend
        return Path(mean + a * (level - mean), trend, before)

    def predictions(self, moments: RunningMoments) -> Array:
        """Return what means, level and trend expect, 3 x m."""
        mean = np.where(np.isnan(self.level), np.nan, moments.mean)
        return np.array([mean, self.level, self.trend])


@dataclass(frozen=True)
class Outlook:
    """The open forecast, and what the errors of those before it have shown."""

    mix: PredictionMix  # of means, level and trend, by horizon
    quantiles: AdaptiveQuantiles
    path: Annotated[Array, Shape("3 m", finite=False)]  # of the open forecast, when last compared
    horizon: float = 0.0  # usual steps since it was made
    compared: float = 0.0  # horizon at which it was last compared
    due: float = 1.0  # horizon at which it is compared

    @classmethod
    def empty(cls, m: int) -> Outlook:
        """Return that nothing is known, of m features."""
        mix = PredictionMix.start(m, np.ones(3))
        return cls(mix, AdaptiveQuantiles.start(), np.full((3, m), np.nan))

    def add_features(self, count: int) -> Outlook:
        """Return the outlook with so many features more, which have no values."""
        path = np.hstack([self.path, np.full((3, count), np.nan)])
        return replace(self, mix=self.mix.add_features(count), path=path)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self.mix.prior) != 3 or len(self.mix.entries) != self.path.shape[1]:
            raise ValueError("the mix must be that of three forecasts")
        if np.isinf(self.path).any() or not self.horizon >= 0 or not 1 <= self.due <= LAST_DUE:
            raise ValueError("the open forecast must be finite and due within 64 steps")

    def append(
        self,
        y: Array,
        pace: Pace,
        moments: RunningMoments,
        least_unit: float,
        filters: FilterConfig,
        mix: MixConfig,
    ) -> Outlook:
        """Return the outlook after a row y, m; `moments` are those before it."""
        horizon = self.horizon + pace.step
        if horizon < self.due:
            return replace(self, horizon=horizon)
        count = max(1, min(round(horizon - self.compared), int(LAST_DUE)))
        path = Path(*self.path).advance(moments, Pace(), filters, count)
        each = path.predictions(moments)
        at = np.flatnonzero(~np.isnan(y) & ~np.isnan(each[0]) & ~moments.constant)
        unit, ages = _unit(moments, least_unit)[at], np.full(len(at), horizon)
        weights, squares = self.mix.weights(at, ages, unit, mix)
        errors = each[:, at] - y[at]
        sizes = unit * np.sqrt(quadratic(weights, squares))
        scores = np.abs((weights * errors.T).sum(axis=1)) / sizes
        return replace(
            self,
            path=np.array(path),
            horizon=horizon,
            compared=horizon,
            mix=self.mix.score(errors, at, ages, unit, mix),
            quantiles=self.quantiles.add(scores, ages, IntervalConfig()),
            due=min(2 * self.due, LAST_DUE),
        )

    def restart(self, path: Path) -> Outlook:
        """Return the outlook with a forecast from the last row on, after the open one has ended."""
        return replace(self, path=np.array(path), horizon=0.0, compared=0.0, due=1.0)

    def forecast(
        self,
        h: int,
        coverage: float,
        path: Path,
        moments: RunningMoments,
        pace: Pace,
        least_unit: float,
        filters: FilterConfig,
        mix: MixConfig,
    ) -> Forecast:
        """Return what is expected of the next h rows, at the usual step."""
        m = len(moments.mean)
        values, half = np.empty((h, m)), np.empty((h, m))
        unit = _unit(moments, least_unit)
        for k in range(h):
            path = path.advance(moments, pace if k == 0 else Pace(), filters)
            ages = np.full(m, k + 1.0)
            weights, squares = self.mix.weights(np.arange(m), ages, unit, mix)
            values[k] = (weights.T * path.predictions(moments)).sum(axis=0)
            sizes = unit * np.sqrt(quadratic(weights, squares))
            half[k] = self.quantiles.half_width(sizes, ages, coverage)
        constant = moments.constant
        return Forecast(
            np.where(constant, moments.mean, values), np.where(constant, 0, half) + 0 * values
        )


def _unit(moments: RunningMoments, least: float) -> Array:
    """Return the sizes of errors by which those of features are compared, m."""
    length = moments.unit * np.sqrt(moments.length[0] / moments.length[1])
    return np.asarray(np.maximum(length, least * moments.deviation))
