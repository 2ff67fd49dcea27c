"""Bounds of imputed values, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.core.scaling import Scaling


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest imputed value of each of v columns; infinite without a bound.

    Only missing entries are bounded. An observed value beyond the bounds stays as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.bounds import Bounds
    >>> bounds = Bounds(np.array([0.0, -np.inf]), np.array([np.inf, 1.0]))
    >>> bounds.clip(np.full((1, 2), -2.0), np.zeros((1, 2), bool)).tolist()
    [[0.0, -2.0]]
    """

    lower: Annotated[Array, Shape("v", finite=False)]
    upper: Annotated[Array, Shape("v", finite=False)]

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise ValueError(
                "lower and upper must have one bound per column; got arrays of shape "
                f"{self.lower.shape} and {self.upper.shape}."
            )
        wrong = np.flatnonzero(~(self.lower <= self.upper))
        if len(wrong):
            raise ValueError(
                "The lower bound must not exceed the upper one, and neither may be NaN (columns "
                f"{wrong.tolist()}). Use -inf and inf where there is no bound."
            )

    @property
    def bounded(self) -> bool:
        """Whether any column has a bound."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def scale(self, scaling: Scaling) -> Bounds:
        """Return bounds in units of the data, m, as those of the scaled columns that vary, v."""
        v = scaling.varying
        lower, upper = (scaling.forward(bound[None])[0] for bound in (self.lower, self.upper))
        return Bounds(
            np.where(np.isfinite(self.lower[v]), lower, self.lower[v]),
            np.where(np.isfinite(self.upper[v]), upper, self.upper[v]),
        )

    def clip(self, X: Array, observed: BoolArray) -> Array:
        """Move the missing entries of X, n x v, to the nearest values within the bounds."""
        return self.make_box(observed, X.dtype).clip(X)

    def make_box(self, observed: BoolArray, dtype: np.dtype[np.floating]) -> Box:
        """Return the bounds of every entry of a table, n x v; observed ones have none."""
        return Box(
            np.where(observed, -np.inf, self.lower).astype(dtype),
            np.where(observed, np.inf, self.upper).astype(dtype),
        )


@dataclass(frozen=True)
class Box:
    """Bounds of the variables of several problems side by side, b x N."""

    lower: Array
    upper: Array

    def clip(self, x: Array) -> Array:
        """Return the nearest points within the bounds, b x N; NaN stays NaN."""
        return np.clip(x, self.lower, self.upper)

    def held(self, x: Array, gradient: Array) -> BoolArray:
        """Return which variables, b x N, are at a bound that descent would cross."""
        held: BoolArray = ((x <= self.lower) & (gradient > 0)) | (
            (x >= self.upper) & (gradient < 0)
        )
        return held


def clip_missing(bounds: Bounds | None, X: Array, observed: BoolArray) -> Array:
    """Return X, n x v, with its missing entries within the bounds, if there are any."""
    return X if bounds is None or not bounds.bounded else bounds.clip(X, observed)


def make_box(
    bounds: Bounds | None, observed: BoolArray, dtype: np.dtype[np.floating]
) -> Box | None:
    """Return the bounds of the entries of a table, n x v; None if there are none."""
    return None if bounds is None or not bounds.bounded else bounds.make_box(observed, dtype)
