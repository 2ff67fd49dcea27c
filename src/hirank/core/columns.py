"""The columns of a fit: which have values, their scaling, and the limits of imputed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from hirank._text import abbreviated, plural
from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.bounds import Bounds
from hirank.core.plausible import ObservedValues
from hirank.core.scaling import Scaling
from hirank.exceptions import InputError


class ScaledTable(NamedTuple):
    """A table in scaled units, as models use it."""

    X: Array  # n x v; values at missing entries are not used
    observed: BoolArray  # n x v; outliers are not used, so they count as missing

    @property
    def empty(self) -> BoolArray:
        """The rows without any value that a model can use."""
        return self.observed.sum(axis=1) == 0


@dataclass(frozen=True)
class Columns:
    """The columns of a fit. Of m input features, k have values and v of these vary."""

    has_values: Annotated[BoolArray, Shape("m")]
    scaling: Scaling  # k features
    bounds: Bounds | None  # of imputed values, k features in the units of the data
    integers: Annotated[BoolArray, Shape("k")]  # features whose imputed values are rounded
    indicated: Annotated[BoolArray, Shape("m")] | None = None  # features with an indicator column
    imitated: ObservedValues | None = None  # k features, which imputed values are to look like

    @classmethod
    def measure(cls, X: Array, observed: BoolArray, *, scale: bool | str) -> Columns:
        """Return the columns of a table, n x m, without limits of imputed values."""
        has_values = observed.sum(axis=0) > 0
        scaling = Scaling.measure(X[:, has_values], observed[:, has_values], scale=scale)
        return cls(has_values, scaling, None, np.zeros(int(has_values.sum()), bool))

    @property
    def varying(self) -> BoolArray:
        """The input features that vary, m."""
        varying = self.has_values.copy()
        varying[self.has_values] = self.scaling.varying
        return varying

    @property
    def means(self) -> Array:
        """The column means of the m input features; 0 for those without values."""
        means = np.zeros(len(self.has_values))
        means[self.has_values] = self.scaling.mean
        return means

    @property
    def scaled_means(self) -> Array:
        """The column means of the v features that vary, in scaled units."""
        return np.asarray(self.scaling.forward(self.scaling.mean[None])[0])

    @property
    def scaled_bounds(self) -> Bounds | None:
        """The bounds of the v features that vary, in scaled units."""
        return None if self.bounds is None else self.bounds.scale(self.scaling)

    def keep(self, X: Array, observed: BoolArray) -> tuple[Array, BoolArray]:
        """Return the features that have values, n x k."""
        return X[:, self.has_values], observed[:, self.has_values]

    def scale(self, X: Array, observed: BoolArray) -> ScaledTable:
        """Return a table, n x m, in scaled units, n x v."""
        kept, seen = self.keep(X, observed)
        scaled = self.scaling.forward(np.where(seen, kept, 0).astype(np.float64))
        return ScaledTable(scaled, seen[:, self.scaling.varying] & self.scaling.inliers(kept))

    @property
    def limits(self) -> Bounds | None:
        """The limits of imputed values, k: the bounds, and otherwise those of observed values."""
        if self.imitated is None or self.bounds is None:
            return self.bounds if self.imitated is None else self.imitated.limits
        lower, upper = self.bounds.lower, self.bounds.upper
        own = self.imitated.limits
        return Bounds(
            np.where(np.isfinite(lower), lower, np.minimum(own.lower, upper)),
            np.where(np.isfinite(upper), upper, np.maximum(own.upper, lower)),
        )

    @property
    def decimals(self) -> IntArray:
        """The decimals to which imputed values are rounded, k; -1 where they are not."""
        decimals = (
            np.full(len(self.integers), -1) if self.imitated is None else self.imitated.decimals
        )
        return np.where(self.integers, 0, decimals)

    def unscale(self, filled: Array, empty: BoolArray) -> Array:
        """Return imputed rows, n x v, in the units of the data, n x k; column means if empty."""
        values = self.scaling.backward(filled)
        if self.scaling.varying.any():
            values[empty] = self.scaling.mean
        return self.constrain(values, rounded=True)

    def unscale_entries(self, values: Array, columns: IntArray) -> Array:
        """Return single entries, h, of some of the v features that vary, in units of the data."""
        kept = np.flatnonzero(self.scaling.varying)
        count = np.bincount(columns, minlength=len(kept))
        # Entry number i of each column goes to row i: a row per entry would take h x v numbers.
        row = np.empty(len(values), np.intp)
        starts = np.repeat(np.cumsum(count) - count, count)
        row[np.argsort(columns, kind="stable")] = np.arange(len(values)) - starts
        table = np.zeros((count.max(initial=0), len(kept)))
        table[row, columns] = values
        return self.scaling.backward(table)[row, kept[columns]]

    def constrain(self, values: Array, *, rounded: bool = False) -> Array:
        """Return values, n x k, within the limits, and rounded if asked for."""
        values, limits, decimals = values.copy(), self.limits, self.decimals
        if limits is not None:
            values = np.clip(values, limits.lower, limits.upper).astype(values.dtype)
        for d in np.unique(decimals[decimals >= 0]).tolist() if rounded else ():
            some = decimals == d
            values[:, some] = np.round(values[:, some], d)
            if limits is not None:
                lower = np.ceil(limits.lower[some] * 10**d) / 10**d
                upper = np.floor(limits.upper[some] * 10**d) / 10**d
                fits = lower <= upper  # otherwise no number with these decimals is allowed
                lower, upper = np.where(fits, lower, -np.inf), np.where(fits, upper, np.inf)
                values[:, some] = np.clip(values[:, some], lower, upper)
        return values

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        k = int(self.has_values.sum())
        if not k:
            raise ValueError("at least one feature must have values")
        if len(self.scaling.center) != k or len(self.integers) != k:
            raise ValueError(f"scaling and integers must describe {k} features")
        if self.bounds is not None and len(self.bounds.lower) != k:
            raise ValueError(f"bounds must describe {k} features")
        if self.imitated is not None and len(self.imitated.decimals) != k:
            raise ValueError(f"observed values must describe {k} features")


def check_finite(values: Array, observed: BoolArray) -> None:
    """Raise InputError if an imputed value of a table, n x k, is not finite."""
    lost = np.flatnonzero((~np.isfinite(values) & ~observed).any(axis=1))
    if len(lost):
        rows, positions = plural(len(lost), "row"), abbreviated(lost.tolist())
        raise InputError(
            f"Imputed values of {rows} are not finite (positions {positions}): some observed "
            "values are far outside the range of the fit. Check these rows, or leave them out."
        )
