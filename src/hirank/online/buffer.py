"""What a window stream remembers, and what it has learned: records without any decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.kernels import Kernel
from hirank.models.row_models import Fitted
from hirank.optim.path import Stage

FAR = 10.0
"""Interquartile ranges beyond the quartiles where values are wild."""


@dataclass(frozen=True)
class Memory:
    """The last rows, in the units of the data, w x m."""

    rows: Array  # NaN where missing
    filled: Array  # completed
    guess: Array  # what hidden entries were taken for on arrival, else NaN

    @classmethod
    def of(cls, rows: Array) -> Memory:
        """Rows that nothing has been done with yet."""
        return cls(rows, rows, np.full(rows.shape, np.nan))

    def __len__(self) -> int:
        return len(self.rows)

    def limits(self) -> tuple[Array, Array]:
        """How low and how high the values of each feature may reasonably be, m and m."""
        low, high = np.full(self.rows.shape[1], -np.inf), np.full(self.rows.shape[1], np.inf)
        alive = (~np.isnan(self.rows)).sum(axis=0) > 0
        first, third = np.nanquantile(self.rows[:, alive], (0.25, 0.75), axis=0)
        with np.errstate(over="ignore"):
            reach = FAR * (third - first)
            # A feature that is nearly always the same may be far from it now and then.
            low[alive] = np.where(reach > 0, first - reach, -np.inf)
            high[alive] = np.where(reach > 0, third + reach, np.inf)
        return low, high

    def limited(self) -> Memory:
        """With wild values brought to their limits: one alone would stretch the kernel."""
        low, high = self.limits()
        return Memory(*(np.clip(a, low, high) for a in (self.rows, self.filled, self.guess)))

    def typical(self) -> Array:
        """The rows without wild values: one alone would spoil the scale of its feature."""
        low, high = self.limits()
        return np.where((self.rows < low) | (self.rows > high), np.nan, self.rows)

    def last(self, n: int) -> Memory:
        return Memory(self.rows[-n:], self.filled[-n:], self.guess[-n:])

    def joined(self, other: Memory) -> Memory:
        return Memory(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.filled, other.filled]),
            np.concatenate([self.guess, other.guess]),
        )

    def widened(self, count: int) -> Memory:
        return Memory(
            wider(self.rows, count, np.nan),
            wider(self.filled, count, 0.0),
            wider(self.guess, count, np.nan),
        )


@dataclass(frozen=True)
class Model:
    """What was learned, and what learning on needs."""

    fitted: Fitted
    stages: tuple[Stage, ...]  # those of fitted.settings
    end: int  # stages of the path that were walked
    unit: Array  # m: standard deviations; NaN for features that do not vary
    means: Array  # m: for features without a value in the window; NaN if never any
    low: Array  # m: values beyond low and high are wild
    high: Array

    @property
    def columns(self) -> IntArray:
        """The features that the dictionary is about."""
        return np.flatnonzero(self.fitted.nonempty)[self.fitted.scaling.varying]

    @property
    def kernel(self) -> Kernel | None:
        """That of the last stage; None if no feature varies."""
        settings = self.fitted.settings
        return settings[-1].kernel if settings else None

    def dictionary(self) -> Array:
        """In the units of the data, r x m."""
        D = np.zeros((len(self.fitted.D), len(self.means))) + np.nan_to_num(self.means)
        D[:, self.fitted.nonempty] = self.fitted.dictionary()
        return D

    def widened(self, count: int) -> Model:
        fitted = replace(self.fitted, nonempty=wider(self.fitted.nonempty, count, False))
        unit, means = (wider(a, count, np.nan) for a in (self.unit, self.means))
        low, high = wider(self.low, count, -np.inf), wider(self.high, count, np.inf)
        return replace(self, fitted=fitted, unit=unit, means=means, low=low, high=high)

    def told(self, rows: Array) -> BoolArray:
        """Which rows, n x m, have a value to go by."""
        known = ~np.isnan(rows[:, self.columns])
        return (known.sum(axis=1) > 0) | (len(self.columns) == 0)

    def complete(self, rows: Array) -> Array:
        """Fill rows, n x m, NaN = missing; 0 where a feature was never seen."""
        observed = ~np.isnan(rows)
        filled = np.where(observed, rows, np.nan_to_num(self.means)).astype(np.float64)
        tame = np.clip(rows, self.low, self.high)
        kept = self.fitted.nonempty
        done = self.fitted.complete(tame, observed, quiet=True)
        filled[:, kept] = np.where(observed[:, kept], filled[:, kept], done)
        return filled


def column_means(rows: Array) -> Array:
    """Of known values, n x m -> m; 0 without any."""
    known = ~np.isnan(rows)
    total: Array = np.where(known, rows, 0).sum(axis=0)
    return total / np.maximum(known.sum(axis=0), 1)


def wider(array: NDArray[Any], count: int, value: float) -> NDArray[Any]:
    """With so many columns more, or entries if there is one dimension, all of one value."""
    more = np.full((*array.shape[:-1], count), value, array.dtype)
    return np.concatenate([array, more], axis=-1)
