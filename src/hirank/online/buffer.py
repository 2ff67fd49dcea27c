"""The rows that a stream keeps, and the model that was fitted to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.columns import Columns, check_finite
from hirank.kernels import Kernel
from hirank.models.dictionary import Dictionary, complete_rows
from hirank.online.low_rank import Landmarks
from hirank.optim.path import Stage

FAR = 10.0
"""Interquartile ranges beyond the quartiles from which a value is an outlier."""


@dataclass(frozen=True)
class Buffer:
    """The last rows, in the units of the data, w x m."""

    rows: Annotated[Array, Shape("w m", finite=False)]  # NaN where missing
    filled: Annotated[Array, Shape("w m", finite=False)]  # imputed
    predicted: Annotated[Array, Shape("w m", finite=False)]  # of held-out entries, otherwise NaN

    @classmethod
    def from_rows(cls, rows: Array) -> Buffer:
        """Return a buffer of rows that were not imputed yet."""
        return cls(rows, rows, np.full(rows.shape, np.nan))

    def __len__(self) -> int:
        return len(self.rows)

    def limits(self) -> tuple[Array, Array]:
        """Return the lowest and highest value of each feature that is not an outlier, m and m."""
        low, high = np.full(self.rows.shape[1], -np.inf), np.full(self.rows.shape[1], np.inf)
        alive = (~np.isnan(self.rows)).sum(axis=0) > 0
        first, third = np.nanquantile(self.rows[:, alive], (0.25, 0.75), axis=0)
        with np.errstate(over="ignore"):
            reach = FAR * (third - first)
            # A feature that is nearly always the same may be far from that value now and then.
            low[alive] = np.where(reach > 0, first - reach, -np.inf)
            high[alive] = np.where(reach > 0, third + reach, np.inf)
        return low, high

    def clip_outliers(self) -> Buffer:
        """Return the rows with outliers at the limits: a single one would stretch the kernel."""
        low, high = self.limits()
        return Buffer(*(np.clip(a, low, high) for a in (self.rows, self.filled, self.predicted)))

    def inliers(self) -> Array:
        """Return the rows without outliers: a single one would distort the scale of its feature."""
        low, high = self.limits()
        return np.where((self.rows < low) | (self.rows > high), np.nan, self.rows)

    def last(self, n: int) -> Buffer:
        """Return the last n rows."""
        return Buffer(self.rows[-n:], self.filled[-n:], self.predicted[-n:])

    def extend(self, other: Buffer) -> Buffer:
        """Return these rows and then those of another buffer."""
        return Buffer(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.filled, other.filled]),
            np.concatenate([self.predicted, other.predicted]),
        )

    def add_features(self, count: int) -> Buffer:
        """Return the rows with so many features more, which have no values."""
        return Buffer(
            pad_features(self.rows, count, np.nan),
            pad_features(self.filled, count, 0.0),
            pad_features(self.predicted, count, np.nan),
        )

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        known = ~np.isnan(self.rows)
        if any(np.isinf(part).any() for part in (self.rows, self.filled, self.predicted)):
            raise ValueError("values must not be infinite")
        same = (self.rows[known] == self.filled[known]).all()
        if not same or np.isnan(self.filled).any():
            raise ValueError("filled must be complete and agree with the observed values")


@dataclass(frozen=True)
class WindowModel:
    """A dictionary fitted to the window, and what further updates need."""

    columns: Columns
    dictionary: Dictionary | Landmarks
    stages: tuple[Stage, ...]  # those of the dictionary's settings
    n_stages: int  # stages of the path that were fitted
    unit: Annotated[Array, Shape("m", finite=False)]  # standard deviations; NaN if constant
    means: Annotated[Array, Shape("m", finite=False)]  # also of features without a value in the
    # window; NaN if there never was one
    low: Annotated[Array, Shape("m", finite=False)]  # values below low or above high are outliers
    high: Annotated[Array, Shape("m", finite=False)]

    @property
    def features(self) -> IntArray:
        """The positions of the features that the dictionary describes."""
        return np.flatnonzero(self.columns.varying)

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the last stage; None if no feature varies."""
        settings = self.dictionary.settings
        return settings[-1].kernel if settings else None

    @property
    def work(self) -> float:
        """The multiplications of a block of rows."""
        return self.dictionary.work

    def points(self) -> Array:
        """Return the dictionary in the units of the data, r x m."""
        D = np.zeros((len(self.dictionary.D), len(self.means))) + np.nan_to_num(self.means)
        D[:, self.columns.has_values] = self.columns.scaling.backward(self.dictionary.D)
        return D

    def add_features(self, count: int) -> WindowModel:
        """Return the model with so many features more, which have no values."""
        has_values = pad_features(self.columns.has_values, count, False)
        unit, means = (pad_features(a, count, np.nan) for a in (self.unit, self.means))
        low, high = pad_features(self.low, count, -np.inf), pad_features(self.high, count, np.inf)
        columns = replace(self.columns, has_values=has_values)
        return replace(self, columns=columns, unit=unit, means=means, low=low, high=high)

    def has_observed(self, rows: Array) -> BoolArray:
        """Return which rows, n x m, have a value that the model can use."""
        known = ~np.isnan(rows[:, self.features])
        return (known.sum(axis=1) > 0) | (len(self.features) == 0)

    def complete(self, rows: Array) -> Array:
        """Impute rows, n x m, NaN = missing; 0 for features that never had a value."""
        observed = ~np.isnan(rows)
        filled = np.where(observed, rows, np.nan_to_num(self.means)).astype(np.float64)
        table = self.columns.scale(np.clip(rows, self.low, self.high), observed)
        values = self.columns.unscale(complete_rows(self.dictionary, table), table.empty)
        kept = self.columns.has_values
        check_finite(values, observed[:, kept])
        filled[:, kept] = np.where(observed[:, kept], filled[:, kept], values)
        return filled

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self.columns.has_values) != len(self.unit):
            raise ValueError("columns and unit must describe the same features")
        if self.dictionary.width != len(self.features):
            raise ValueError("the dictionary must describe the features that vary")
        settings = self.dictionary.settings
        if len(self.stages) != len(settings) or not len(self.stages) <= self.n_stages:
            raise ValueError("stages must be those of the dictionary")
        if (self.unit < 0).any() or np.isinf(self.unit).any() or np.isinf(self.means).any():
            raise ValueError("unit must not be negative, and no mean infinite")
        if np.isnan(self.means[self.columns.has_values]).any():
            raise ValueError("features with values must have a mean")
        if not (self.low <= self.high).all():
            raise ValueError("low must not exceed high")


def column_means(rows: Array) -> Array:
    """Return the means of known values, n x m -> m; NaN without any.

    The mean of equal values is that value to the bit, which a sum over their number may not be.
    """
    known = ~np.isnan(rows)
    count = known.sum(axis=0)
    means: Array = np.where(known, rows, 0).sum(axis=0) / np.maximum(count, 1)
    lowest = np.where(known, rows, np.inf).min(axis=0, initial=np.inf)
    highest = np.where(known, rows, -np.inf).max(axis=0, initial=-np.inf)
    return np.where(count > 0, np.clip(means, lowest, highest), np.nan)


def pad_features(array: NDArray[Any], count: int, value: float) -> NDArray[Any]:
    """Return an array with `count` entries of one value appended along its last axis."""
    more = np.full((*array.shape[:-1], count), value, array.dtype)
    return np.concatenate([array, more], axis=-1)
