"""Scale columns to comparable units and back, with little influence of outliers and long tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape

SCALES = ("auto", "robust", "standard")
"""Ways to scale; True stands for the first."""

# The limits below were set on tables with and without outliers: docs/notes/scaling.md.

QUANTILES = ((25, 75, 1.349), (10, 90, 2.563), (5, 95, 3.290), (1, 99, 4.653))
"""Percentiles, and the standard deviations of a normal distribution between them."""
MIN_TAIL = 8.0
"""Robust standard deviations beyond which a column has a tail; clean tables stay below."""
OUTLIER_RATIO = 20.0
"""Times the distance of all values before: a value so far out is an outlier, not part of a tail."""
MAX_OUTLIER_SHARE = 0.05
"""Share of the values of a column that can be outliers; more of them are a pattern."""
MIN_OUTLIERS, MAX_SMALL_SHARE = 3, 0.1
"""In a short column so many values can be outliers, unless they are more than this share."""
MIN_HEAVY = 2.5
"""Standard over robust standard deviation from which the tails of amounts are compressed."""
MAX_OFFSET = 3.0
"""Robust standard deviations from 0 to the median up to which nonnegative values are amounts."""
CLIP = 3.0
"""Robust standard deviations that values count for at most in the scale of compressed columns."""
MAX_SCALED = 1e150
"""Largest scaled value of a table with outliers, so that squares do not overflow."""

MIN_RELATIVE_SPREAD = 1e-16
"""Part of its center that the spread of a column exceeds; otherwise it counts as constant."""

MAX_SPREAD = 1e300
"""Largest spread in a model file: imputed values of such columns would overflow."""


@dataclass(frozen=True)
class TailCompression:
    """Limits of columns that have long tails or outliers, for m columns.

    In units z of the spread, a compressed column is arcsinh(z): linear near 0, logarithmic in the
    tails. Beyond the ends of the measured values it continues as a straight line, so that neither
    an imputed nor a new value becomes huge.
    """

    compressed: Annotated[BoolArray, Shape("m")]
    lower: Annotated[Array, Shape("m")]  # in units of z: the ends of the tails
    upper: Annotated[Array, Shape("m")]
    min_inlier: Annotated[Array, Shape("m", finite=False)]  # in units of the data; infinite in
    max_inlier: Annotated[Array, Shape("m", finite=False)]  # columns without outliers
    deviation: Annotated[Array, Shape("m")]  # standard deviation of inliers, in units of the data

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        ordered = (self.lower <= self.upper).all() and (self.min_inlier <= self.max_inlier).all()
        if not ordered:
            raise ValueError("lower limits must not exceed upper ones")
        if not (self.deviation[self.compressed] > 0).all():
            raise ValueError("deviation must be positive")


@dataclass(frozen=True)
class Scaling:
    """Center and spread of each of m columns.

    A column whose observed values are all equal has a spread of 0. It carries no information on
    others and needs no model.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.scaling import Scaling
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> scaling = Scaling.measure(X, np.ones((2, 2), bool), scale="standard")
    >>> scaling.forward(X).tolist()
    [[-1.0], [1.0]]
    >>> bool((scaling.backward(scaling.forward(X)) == X).all())
    True
    """

    center: Annotated[Array, Shape("m")]  # for a constant column, its value
    spread: Annotated[Array, Shape("m")]  # 0 for a constant column
    mean: Annotated[Array, Shape("m")]
    tails: TailCompression | None = None  # None if there are neither long tails nor outliers

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        varying = self.varying
        tiny = MIN_RELATIVE_SPREAD * np.abs(self.center[varying])
        if (self.spread < 0).any() or (self.spread[varying] < tiny).any():
            raise ValueError("spread must be 0 or positive, and not negligible")
        if (self.spread > MAX_SPREAD).any():
            raise ValueError(f"spread must be at most {MAX_SPREAD:g}")
        if self.tails is not None and len(self.tails.compressed) != len(self.center):
            raise ValueError("tails must describe the same columns")

    @classmethod
    def measure(cls, X: Array, observed: BoolArray, *, scale: bool | str) -> Scaling:
        """Measure the observed entries of X, n x m, column by column.

        Every column must have an observed entry. The ways to scale:

        - ``"standard"``: mean 0 and standard deviation 1.
        - ``"auto"`` or True: the same, but outliers (see :meth:`inliers`) are ignored, and the
          tails of amounts (nonnegative values, many of them near 0) are compressed if they are
          heavy: in mean and standard deviation, values beyond 3 robust ones are clipped.
        - ``"robust"``: every column with values beyond 8 robust standard deviations is compressed.
        - False: columns that vary keep their units: center 0 and spread 1.
        """
        if not isinstance(scale, bool | np.bool_) and scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, True or False; got {scale!r}.")
        known = np.where(observed, X, np.nan).astype(np.float64)
        if scale == "standard" or not scale:
            return _measure_standard(known, X.dtype, scale=bool(scale))
        median, unit = _measure_robust(known)
        far = _find_tails(known, median, unit)
        if not far.any():
            return _measure_standard(known, X.dtype, scale=True)
        low, high = np.full(len(far), -np.inf), np.full(len(far), np.inf)
        for j in np.flatnonzero(far):
            reach = _inlier_distance(known[:, j], median[j], unit[j])
            low[j], high[j] = median[j] - reach, median[j] + reach
        known[(known < low) | (known > high)] = np.nan
        median, unit = _measure_robust(known)
        plain = _measure_standard(known, X.dtype, scale=True)
        compressed = _find_tails(known, median, unit)
        if scale != "robust":
            amounts = (np.nanmin(known, axis=0) >= 0) & (median <= MAX_OFFSET * unit)
            compressed &= amounts & (plain.spread > MIN_HEAVY * unit)
        compressed &= plain.varying
        if not compressed.any():
            return _add_tails(plain, plain, compressed, known, low, high)
        near = np.clip(known, median - CLIP * unit, median + CLIP * unit)
        clipped = _measure_standard(np.where(compressed, near, known), X.dtype, scale=True)
        return _add_tails(clipped, plain, compressed, known, low, high)

    @property
    def varying(self) -> BoolArray:
        """Which of the m columns vary."""
        return self.spread > 0

    @property
    def deviation(self) -> Array:
        """Standard deviations of the columns that vary, in units of the data, v."""
        v = self.varying
        if self.tails is None:
            return self.spread[v]
        return np.where(self.tails.compressed, self.tails.deviation, self.spread)[v]

    def inliers(self, X: Array) -> BoolArray:
        """Return which entries of the columns that vary are not outliers, n x m -> n x v.

        Outliers are values at least 20 times as far out as all others of their column when it was
        measured, if they were few, and new values as far out. They should be treated as if they
        were missing. NaN is an inlier.
        """
        v = self.varying
        if self.tails is None:
            return np.ones((len(X), int(v.sum())), bool)
        outliers = (X[:, v] < self.tails.min_inlier[v]) | (X[:, v] > self.tails.max_inlier[v])
        return np.asarray(~outliers)

    def forward(self, X: Array) -> Array:
        """Scale the columns that vary to units of their spread, n x m -> n x v."""
        v = self.varying
        with np.errstate(over=None if self.tails is None else "ignore"):
            scaled = (X[:, v] - self.center[v].astype(X.dtype)) / self.spread[v].astype(X.dtype)
        if self.tails is not None and self.tails.compressed.any():
            compressed, lower, upper = self._compressed(X.dtype)
            z = scaled[:, compressed]
            end = np.clip(z, lower, upper)
            scaled[:, compressed] = np.arcsinh(end) + (z - end) / np.hypot(1, end)
        if self.tails is not None and np.isfinite(self.tails.max_inlier).any():
            largest = min(MAX_SCALED, float(np.finfo(scaled.dtype).max))
            np.clip(scaled, -largest, largest, out=scaled)
        return np.ascontiguousarray(scaled)

    def backward(self, scaled: Array) -> Array:
        """Return all columns in units of the data, n x v -> n x m; constant ones at their value."""
        if self.tails is not None and self.tails.compressed.any():
            scaled = scaled.copy()
            compressed, lower, upper = self._compressed(scaled.dtype)
            t = scaled[:, compressed]
            end = np.clip(t, np.arcsinh(lower), np.arcsinh(upper))
            scaled[:, compressed] = np.sinh(end) + (t - end) * np.cosh(end)
        X = np.empty((len(scaled), len(self.center)), scaled.dtype)
        X[:] = self.center
        v = self.varying
        X[:, v] += scaled * self.spread[v].astype(scaled.dtype)
        return X

    def _compressed(self, dtype: np.dtype[np.floating]) -> tuple[BoolArray, Array, Array]:
        """Return which of the v columns are compressed, and the ends of their tails."""
        assert self.tails is not None
        tails, v = self.tails, self.varying
        both = tails.compressed & v
        return tails.compressed[v], tails.lower[both].astype(dtype), tails.upper[both].astype(dtype)


def _measure_standard(known: Array, dtype: np.dtype[np.floating], *, scale: bool) -> Scaling:
    """Return mean and standard deviation of values, n x m, where NaN is missing."""
    lowest, highest = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    size = np.maximum(np.abs(lowest), np.abs(highest))
    size[size == 0] = 1
    known = known / size  # so that squares do not overflow
    mean, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    # A spread in the last digits of the values is rounding, not information.
    resolution = 4 * np.finfo(dtype).eps
    constant = (lowest == highest) | (spread <= resolution)
    mean, spread = mean * size, spread * size
    mean[lowest == highest] = lowest[lowest == highest]
    if scale:
        return Scaling(mean, np.where(constant, 0, spread), mean)
    return Scaling(np.where(constant, mean, 0), np.where(constant, 0, 1.0), mean)


def _add_tails(
    scaling: Scaling, plain: Scaling, compressed: BoolArray, known: Array, low: Array, high: Array
) -> Scaling:
    """Return a scaling with the limits of tails and inliers; `plain` is that without tails.

    `known` is without outliers.
    """
    if not compressed.any() and not np.isfinite(high).any():
        return scaling
    spread = np.where(scaling.varying, scaling.spread, 1)
    lower = (np.nanmin(known, axis=0) - scaling.center) / spread
    upper = (np.nanmax(known, axis=0) - scaling.center) / spread
    lower, upper = np.where(compressed, lower, 0), np.where(compressed, upper, 0)
    tails = TailCompression(compressed, lower, upper, low, high, plain.spread)
    return Scaling(scaling.center, scaling.spread, plain.mean, tails)


def _find_tails(known: Array, median: Array, unit: Array) -> BoolArray:
    """Return which columns have values beyond `MIN_TAIL` standard deviations, n x m -> m."""
    with np.errstate(over="ignore"):
        up, down = np.nanmax(known, axis=0) - median, median - np.nanmin(known, axis=0)
        far: BoolArray = (np.maximum(up, down) > MIN_TAIL * unit) & (unit > 0)
    return far


def _measure_robust(known: Array) -> tuple[Array, Array]:
    """Return median and robust standard deviation of each column, n x m -> m.

    Where the middle half of the values are equal, wider percentiles are used; the deviation is 0
    if they are equal too.
    """
    wanted = [50.0, *(p for low, high, _ in QUANTILES for p in (low, high))]
    median, *ends = np.nanpercentile(known, wanted, axis=0)
    unit = np.zeros_like(median)
    for low, high, (_, _, deviations) in zip(ends[::2], ends[1::2], QUANTILES, strict=True):
        unit = np.where(unit > 0, unit, (high - low) / deviations)
    return median, unit


def _inlier_distance(values: Array, median: float, unit: float) -> float:
    """Return how far from the median inliers of a column can be; infinity without outliers."""
    with np.errstate(over="ignore"):
        distance = np.sort(np.abs(values[~np.isnan(values)] - median))
    n = len(distance)
    n_outliers = max(int(MAX_OUTLIER_SHARE * n), min(MIN_OUTLIERS, int(MAX_SMALL_SHARE * n)))
    first = max(1, n - n_outliers)
    before, after = np.maximum(distance[first - 1 : -1], MIN_TAIL * unit / 2), distance[first:]
    jumps = np.flatnonzero(after > OUTLIER_RATIO * before)
    return float(OUTLIER_RATIO * before[jumps[0]]) if len(jumps) else np.inf
