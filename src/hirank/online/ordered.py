"""Rows that follow each other in time: imputed on arrival by a mix of Gaussian filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.online.clock import Clock, Pace
from hirank.online.filter_bank import BankStep, FilterBank
from hirank.online.filters import KINDS, FilterConfig
from hirank.online.mixing import MixConfig, PredictionMix, quadratic
from hirank.online.moments import FIRST_UNITS, MAX_SIZE, RunningMoments
from hirank.online.outlook import LAST_DUE, Forecast, Outlook, Path

MAX_AGE = 1e9
"""Usual steps since the last value of a feature, up to which they are counted."""


@dataclass(frozen=True)
class OrderedConfig:
    """Constants of a stream in order (docs/notes/ordered_streams.md)."""

    filters: FilterConfig = field(default_factory=FilterConfig)
    mix: MixConfig = field(default_factory=MixConfig)
    n_warmup: int = 40  # rows after which units are known well enough to score predictions
    min_unit: float = 0.05  # of the errors of a mix, in standard deviations of the feature
    max_jump: float = 20.0  # standard deviations from the last value beyond which a value is an
    # outlier, which is not learned from
    volatility_memory: float = 20.0  # rows
    max_ratio: float = 25.0  # of a squared error over the expected one
    min_volatility: float = 0.25
    max_outliers: int = 3  # in a row, after which the feature has changed and they are accepted


class Expected(NamedTuple):
    """What the filters expected of p rows, of each entry given the other observed ones."""

    imputed: Annotated[Array, Shape("p m", finite=False)]  # NaN: the feature never had a value
    error: Annotated[Array, Shape("p m", finite=False)]  # size of the errors of these
    unit: Annotated[Array, Shape("p m")]  # size of the errors that the level filter expects
    ages: Annotated[Array, Shape("p m")]  # usual steps since the last value of the feature
    volatility: Annotated[Array, Shape("p m")]  # size of recent errors over what was expected

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Expected:
        """Return that nothing is expected of rows."""
        return cls(np.full(shape, np.nan), *(np.ones(shape) for _ in range(4)))

    @classmethod
    def join(cls, parts: Sequence[Expected]) -> Expected:
        """Return what was expected of several stretches of rows, one after the other."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def add_features(self, count: int) -> Expected:
        """Return what was expected with so many features more, which have no values."""
        more = Expected.nothing((len(self.ages), count))
        return Expected(*(np.hstack(arrays) for arrays in zip(self, more, strict=True)))

    def at(self, rows: Array | slice) -> Expected:
        """Return what was expected of some of the rows."""
        return Expected(*(array[rows] for array in self))


@dataclass(frozen=True)
class OrderedState:
    """What the filters know after the rows so far."""

    moments: RunningMoments
    filters: FilterBank
    mix: PredictionMix
    ages: Annotated[Array, Shape("m")]  # usual steps from the last value of each feature to the
    # last row
    clock: Clock
    volatility: float  # mean square of recent errors over what was expected
    outlook: Outlook
    outliers: Annotated[IntArray, Shape("m")]  # that each feature had in a row
    last: Annotated[Array, Shape("m", finite=False)]  # the last row as completed; NaN where unknown

    @classmethod
    def empty(cls, m: int, config: OrderedConfig) -> OrderedState:
        """Return the state before the first row."""
        filters = FilterBank.start(m, config.filters)
        mix = PredictionMix.start(m, np.ones(len(KINDS)))
        moments, clock = RunningMoments.empty(m), Clock.start()
        return cls(
            moments,
            filters,
            mix,
            np.zeros(m),
            clock,
            1.0,
            Outlook.empty(m),
            np.zeros(m, np.intp),
            np.full(m, np.nan),
        )

    def add_features(self, count: int, config: OrderedConfig) -> OrderedState:
        """Return the state with so many features more, which have no values."""
        return OrderedState(
            self.moments.add_features(count),
            self.filters.add_features(count, config.filters),
            self.mix.add_features(count),
            np.append(self.ages, np.zeros(count)),
            self.clock,
            self.volatility,
            self.outlook.add_features(count),
            np.append(self.outliers, np.zeros(count, np.intp)),
            np.append(self.last, np.full(count, np.nan)),
        )

    def complete(self, rows: Array, times: Array | None, config: OrderedConfig) -> Expected:
        """Return what is expected of rows, n x m, each as if it were the next; learn nothing."""
        rows = np.where(self._is_outlier(rows, config), np.nan, rows)
        paces = [self.clock.read(time)[1] for time in _each(times, rows)]
        parts = [
            self._mix(self._step(y, pace, config, learn=False), pace, config)
            for y, pace in zip(rows, paces, strict=True)
        ]
        return Expected.join([Expected.nothing((0, rows.shape[1])), *parts])

    def append(
        self, rows: Array, times: Array | None, config: OrderedConfig
    ) -> tuple[OrderedState, Expected]:
        """Return the state after rows, n x m, and what was expected of each when it came.

        Without times, n, they follow each other at the usual step.
        """
        state, parts = self, [Expected.nothing((0, rows.shape[1]))]
        for y, time in zip(rows, _each(times, rows), strict=True):
            clock, pace = state.clock.read(time)
            outlier = state._is_outlier(y, config)
            values = np.clip(np.where(outlier, np.nan, y), -MAX_SIZE, MAX_SIZE)
            after, expected = state._append(values, pace, config)
            outliers = np.where(np.isnan(y), state.outliers, (state.outliers + 1) * outlier)
            state = replace(after, outliers=outliers, clock=clock)
            parts.append(expected)
        return state, Expected.join(parts)

    def _append(self, y: Array, pace: Pace, config: OrderedConfig) -> tuple[OrderedState, Expected]:
        row = self._step(y, pace, config, learn=True)
        expected, each = self._mix(row, pace, config), row.imputed
        filters = row.after or self.filters
        mix, volatility = self.mix, self.volatility
        at = np.flatnonzero(self.moments.known & ~np.isnan(y))
        if self.moments.rows >= config.n_warmup:
            errors, size = each[:, at] - y[at], expected.unit[0, at]
            mix = mix.score(errors, at, expected.ages[0, at], size, config.mix)
            volatility = self._judge(expected, y, config)
        moments, factor = self.moments.add(y, config.filters.memory, follows=pace.typical)
        if factor is not None:
            first = moments.rows == FIRST_UNITS
            filters = filters.rescale(factor, first, config.filters)
        ages = np.where(np.isnan(y), np.minimum(self.ages + pace.step, MAX_AGE), 0)
        last = np.where(np.isnan(y), expected.imputed[0], y)
        state = replace(self, moments=moments, filters=filters, mix=mix, ages=ages, last=last)
        outlook = self.outlook
        if self.moments.rows >= config.n_warmup:
            outlook = outlook.append(
                y, pace, self.moments, config.min_unit, config.filters, config.mix
            )
        if not 0 < outlook.horizon < LAST_DUE:
            outlook = outlook.restart(Path.start(filters, moments))
        return replace(state, volatility=volatility, outlook=outlook), expected

    def forecast(self, h: int, coverage: float, config: OrderedConfig) -> Forecast:
        """Return what is expected of the next h rows if nothing arrives."""
        path, pace = Path.start(self.filters, self.moments), Pace(1.0, self.clock.pace)
        return self.outlook.forecast(
            h, coverage, path, self.moments, pace, config.min_unit, config.filters, config.mix
        )

    def _judge(self, expected: Expected, y: Array, config: OrderedConfig) -> float:
        """Return the volatility after a row: all features err more at once when a stream changes.

        The sizes of errors by feature and age follow far more slowly.
        """
        error = expected.error[0]
        at = ~np.isnan(y - expected.imputed[0]) & (error > 0)  # not the first value of a feature
        if not at.any():
            return self.volatility
        with np.errstate(over="ignore"):
            squares = ((expected.imputed[0] - y)[at] / error[at]) ** 2
        recent = float(np.minimum(squares, config.max_ratio).mean())
        share = 1 / config.volatility_memory
        return (1 - share) * self.volatility + share * recent

    def _is_outlier(self, y: Array, config: OrderedConfig) -> BoolArray:
        """Return which values, ... x m, are outliers: a single one must not be the last value.

        Where a feature had several in a row, it has changed.
        """
        moments = self.moments
        if moments.rows < config.n_warmup:
            return np.zeros(y.shape, bool)
        judged = (moments.count >= config.n_warmup) & (moments.square > 0)
        judged &= self.outliers < config.max_outliers
        last, _ = self.filters.last("level")
        with np.errstate(invalid="ignore", over="ignore"):
            far = np.abs(y - last) > config.max_jump * moments.deviation
        return far & judged

    def _step(self, y: Array, pace: Pace, config: OrderedConfig, *, learn: bool) -> BankStep:
        # After an unusual step the row before says something else.
        last = self.last if pace.typical else np.full_like(self.last, np.nan)
        return self.filters.step(y, last, self.moments, pace, config.filters, learn=learn)

    def _mix(self, row: BankStep, pace: Pace, config: OrderedConfig) -> Expected:
        """Return what is expected of a row."""
        moments = self.moments
        least = config.min_unit * moments.deviation
        unit = np.maximum(np.sqrt(row.variance), least)
        features, ages = np.arange(len(unit)), self.ages + pace.step
        weights, squares = self.mix.weights(features, ages, unit, config.mix)
        imputed = np.einsum("jk,kj->j", weights, row.imputed)
        error = unit * np.sqrt(quadratic(weights, squares))
        imputed = np.where(moments.constant, moments.mean, imputed)  # that constant to the bit
        imputed = np.where(moments.known, imputed, np.nan)
        # Before errors are scored, what the level filter expects.
        error = error if moments.rows > config.n_warmup else unit
        few = moments.count < FIRST_UNITS  # of which it is not known whether they vary
        error = np.where(moments.constant, np.where(few, np.nan, 0), error)
        volatility = np.full((1, len(unit)), np.sqrt(max(self.volatility, config.min_volatility)))
        return Expected(imputed[None], error[None], unit[None], ages[None], volatility)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        m = len(self.ages)
        widths = {
            self.outlook.path.shape[1],
            len(self.moments.count),
            len(self.mix.entries),
            len(self.outliers),
            len(self.last),
        }
        widths.add(self.filters.width)
        if widths != {m} or self.mix.pooled.shape[1] != len(KINDS):
            raise ValueError(f"moments, filters and mix must describe {m} features")
        if np.isinf(self.last).any():
            raise ValueError("the last row must not be infinite")
        if m and self.outliers.min() < 0:
            raise ValueError("outliers must not be negative")
        if not 0 <= self.volatility < np.inf:
            raise ValueError("volatility must not be negative")
        if m and not 0 <= self.ages.min() <= self.ages.max() <= MAX_AGE:
            raise ValueError(f"ages must be from 0 to {MAX_AGE:g}")


def _each(times: Array | None, rows: Array) -> list[float | None]:
    """Return the time of each row."""
    return [None] * len(rows) if times is None else times.tolist()
