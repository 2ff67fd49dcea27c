"""Features brought to comparable units, and back: plain, or proof against wild values and tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hirank._typing import Array, BoolArray

SCALES = ("auto", "robust", "standard")
"""Names of the ways to scale; True stands for the first."""
QUANTILES = ((25, 75, 1.349), (10, 90, 2.563), (5, 95, 3.290), (1, 99, 4.653))
"""Percentiles between which a normal distribution has so many standard deviations."""
FAR = 8.0
"""Robust standard deviations within which a feature has no tails: clean tables stay below."""
GAP = 20.0
"""Times the distance of all before: a value so far out is wild, not the end of a tail."""
MOST_WILD = 0.05
"""Part of the values of a feature up to which they can be wild: more are a pattern."""
FEW, MOST_FEW = 3, 0.1
"""So many can be wild by chance even so, unless they are more than this part."""
HEAVY = 2.5
"""Standard over robust standard deviation from which amounts are bent (docs/notes/scaling.md)."""
NEAR = 3.0
"""Robust standard deviations from 0 to the median up to which values from 0 on are amounts."""
CUT = 3.0
"""Robust standard deviations beyond which tails don't count in mean and standard deviation."""
LARGEST = 1e150
"""Largest scaled value where there are wild ones: its square does not overflow."""

Numbers: TypeAlias = Array


@dataclass(frozen=True)
class Bend:
    """What is special about features with long tails or wild values, m of them.

    In units z of the spread, a bent feature is t = arcsinh(z): linear in the bulk, logarithmic in
    the tails. Beyond the ends of what was measured it goes on as a straight line, so that neither a
    fill nor a new value explodes on its way back or forth.
    """

    bent: BoolArray  # m
    lower: Numbers  # m, in units of z: the ends of the tails of bent features
    upper: Numbers
    least: Numbers  # m, in units of the data; values beyond are wild; infinite where none were
    most: Numbers


@dataclass(frozen=True)
class Scaling:
    """Center and spread of each of m features.

    A feature whose observed entries are all equal has no spread. It tells nothing and needs no
    model: its value is known.

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

    center: Numbers  # m; for a constant feature, its value
    spread: Numbers  # m; 0 for a constant feature
    mean: Numbers  # m
    bend: Bend | None = None  # None if all features are straight and all values believable

    @classmethod
    def measure(cls, X: Array, observed: BoolArray, *, scale: bool | str) -> Scaling:
        """Measure the observed entries of X, n x m, feature by feature.

        Every feature must have an observed entry. The ways to scale:

        - ``"standard"``: mean 0 and standard deviation 1.
        - ``"auto"`` or True: the same, but wild values (see :meth:`believable`) don't count, and
          amounts (values from 0 on, many of them near 0) with heavy tails are bent: in mean and
          standard deviation, what is beyond 3 robust ones counts for 3, and tails are compressed.
        - ``"robust"``: every feature with values beyond 8 robust standard deviations is bent.
        - False: features that vary keep their units: center 0 and spread 1.
        """
        if not isinstance(scale, bool | np.bool_) and scale not in SCALES:
            raise ValueError(f"scale must be one of {SCALES}, True or False, not {scale!r}.")
        known = np.where(observed, X, np.nan).astype(np.float64)
        if scale == "standard" or not scale:
            return _standard(known, X.dtype, scale=bool(scale))
        middle, unit = _robust(known)
        far = _far(known, middle, unit)
        if not far.any():
            return _standard(known, X.dtype, scale=True)
        least, most = np.full(len(far), -np.inf), np.full(len(far), np.inf)
        for j in np.flatnonzero(far):
            reach = _reach(known[:, j], middle[j], unit[j])
            least[j], most[j] = middle[j] - reach, middle[j] + reach
        known[(known < least) | (known > most)] = np.nan
        middle, unit = _robust(known)
        plain, bent = _standard(known, X.dtype, scale=True), _far(known, middle, unit)
        if scale != "robust":
            amounts = (np.nanmin(known, axis=0) >= 0) & (middle <= NEAR * unit)
            bent &= amounts & (plain.spread > HEAVY * unit)
        bent &= plain.varying
        if not bent.any():
            return _with_bend(plain, plain.mean, bent, known, least, most)
        cut = np.where(bent, np.clip(known, middle - CUT * unit, middle + CUT * unit), known)
        tame = _standard(cut, X.dtype, scale=True)
        return _with_bend(tame, plain.mean, bent, known, least, most)

    @property
    def varying(self) -> BoolArray:
        return self.spread > 0

    def believable(self, X: Array) -> BoolArray:
        """Which entries of the features that vary are not wild, n x m -> n x v.

        Wild are values that lay at least 20 times as far out as all others of their feature when it
        was measured, if they were few, and new values as far out. They are no evidence: who
        completes a table does best to treat them as if they were missing. NaN is believable.
        """
        v = self.varying
        if self.bend is None:
            return np.ones((len(X), int(v.sum())), bool)
        wild = (X[:, v] < self.bend.least[v]) | (X[:, v] > self.bend.most[v])
        return np.asarray(~wild)

    def forward(self, X: Array) -> Array:
        """The features that vary, n x m -> n x v, in units of their spread."""
        v = self.varying
        with np.errstate(over=None if self.bend is None else "ignore"):
            scaled = (X[:, v] - self.center[v].astype(X.dtype)) / self.spread[v].astype(X.dtype)
        if self.bend is not None and self.bend.bent.any():
            bent, lower, upper = self._bent(X.dtype)
            z = scaled[:, bent]
            end = np.clip(z, lower, upper)
            scaled[:, bent] = np.arcsinh(end) + (z - end) / np.hypot(1, end)
        if self.bend is not None and np.isfinite(self.bend.most).any():
            most = min(LARGEST, float(np.finfo(scaled.dtype).max))
            np.clip(scaled, -most, most, out=scaled)
        return np.ascontiguousarray(scaled)

    def backward(self, scaled: Array) -> Array:
        """All features, n x v -> n x m; constant ones at their value."""
        if self.bend is not None and self.bend.bent.any():
            scaled = scaled.copy()
            bent, lower, upper = self._bent(scaled.dtype)
            t = scaled[:, bent]
            end = np.clip(t, np.arcsinh(lower), np.arcsinh(upper))
            scaled[:, bent] = np.sinh(end) + (t - end) * np.cosh(end)
        X = np.empty((len(scaled), len(self.center)), scaled.dtype)
        X[:] = self.center
        v = self.varying
        X[:, v] += scaled * self.spread[v].astype(scaled.dtype)
        return X

    def _bent(self, dtype: np.dtype[np.floating]) -> tuple[BoolArray, Array, Array]:
        """Which of the v features are bent, and the ends of those that are."""
        assert self.bend is not None
        bend, v = self.bend, self.varying
        bent = bend.bent & v
        return bend.bent[v], bend.lower[bent].astype(dtype), bend.upper[bent].astype(dtype)


def _standard(known: Numbers, dtype: np.dtype[np.floating], *, scale: bool) -> Scaling:
    """Mean and standard deviation of values with NaN in their holes, n x m."""
    lowest, highest = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    size = np.maximum(np.abs(lowest), np.abs(highest))
    size[size == 0] = 1
    known = known / size  # so that squares can't overflow
    mean, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
    # A spread in the last digits of the values is rounding, not information.
    resolution = 4 * np.finfo(dtype).eps
    constant = (lowest == highest) | (spread <= resolution)
    mean, spread = mean * size, spread * size
    mean[lowest == highest] = lowest[lowest == highest]
    if scale:
        return Scaling(mean, np.where(constant, 0, spread), mean)
    return Scaling(np.where(constant, mean, 0), np.where(constant, 0, 1.0), mean)


def _with_bend(
    plain: Scaling,
    mean: Numbers,
    bent: BoolArray,
    known: Numbers,
    least: Numbers,
    most: Numbers,
) -> Scaling:
    """The scaling with long tails and wild values taken care of. `known` is without the latter."""
    if not bent.any() and not np.isfinite(most).any():
        return plain
    spread = np.where(plain.varying, plain.spread, 1)
    lower = (np.nanmin(known, axis=0) - plain.center) / spread
    upper = (np.nanmax(known, axis=0) - plain.center) / spread
    bend = Bend(bent, np.where(bent, lower, 0), np.where(bent, upper, 0), least, most)
    return Scaling(plain.center, plain.spread, mean, bend)


def _far(known: Numbers, middle: Numbers, unit: Numbers) -> BoolArray:
    """Which features have values beyond `FAR` robust standard deviations, n x m -> m."""
    with np.errstate(over="ignore"):
        up, down = np.nanmax(known, axis=0) - middle, middle - np.nanmin(known, axis=0)
        far: BoolArray = (np.maximum(up, down) > FAR * unit) & (unit > 0)
    return far


def _robust(known: Numbers) -> tuple[Numbers, Numbers]:
    """Median and robust standard deviation of each feature, n x m -> m.

    Where the middle half of the values are equal, wider percentiles are taken; 0 if they are
    equal too.
    """
    wanted = [50.0, *(p for low, high, _ in QUANTILES for p in (low, high))]
    middle, *ends = np.nanpercentile(known, wanted, axis=0)
    unit = np.zeros_like(middle)
    for low, high, (_, _, deviations) in zip(ends[::2], ends[1::2], QUANTILES, strict=True):
        unit = np.where(unit > 0, unit, (high - low) / deviations)
    return middle, unit


def _reach(values: Numbers, middle: float, unit: float) -> float:
    """How far from the middle values of a feature are believable: infinitely if none are wild."""
    with np.errstate(over="ignore"):
        distance = np.sort(np.abs(values[~np.isnan(values)] - middle))
    n = len(distance)
    outer = max(1, n - max(int(MOST_WILD * n), min(FEW, int(MOST_FEW * n))))
    before, after = np.maximum(distance[outer - 1 : -1], FAR * unit / 2), distance[outer:]
    jumps = np.flatnonzero(after > GAP * before)
    return float(GAP * before[jumps[0]]) if len(jumps) else np.inf
