"""Limits of what a missing entry may be, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest fill of each of v features; infinite where there is no limit.

    Only missing entries are bounded. An observed value beyond the limits stays what it is.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.bounds import Bounds
    >>> bounds = Bounds(np.array([0.0, -np.inf]), np.array([np.inf, 1.0]))
    >>> bounds.clip(np.full((1, 2), -2.0), np.zeros((1, 2), bool)).tolist()
    [[0.0, -2.0]]
    """

    lower: Array  # v
    upper: Array  # v

    def __post_init__(self) -> None:
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            raise ValueError(
                f"Bounds need one lower and one upper limit per feature, not arrays of shape "
                f"{self.lower.shape} and {self.upper.shape}."
            )
        wrong = np.flatnonzero(~(self.lower <= self.upper))
        if len(wrong):
            raise ValueError(
                f"The lower limit must not exceed the upper one, nor be NaN (features "
                f"{wrong.tolist()}). Use -inf and inf where there is no limit."
            )

    @property
    def limit(self) -> bool:
        """Whether there is any limit at all."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def scaled(self, scaling: Scaling) -> Bounds:
        """Limits in units of the data, k, as limits of the features that vary, v, when scaled."""
        v = scaling.varying
        lower, upper = (scaling.forward(limit[None])[0] for limit in (self.lower, self.upper))
        return Bounds(
            np.where(np.isfinite(self.lower[v]), lower, self.lower[v]),
            np.where(np.isfinite(self.upper[v]), upper, self.upper[v]),
        )

    def of_entries(self, free: BoolArray, dtype: np.dtype[np.floating]) -> Box:
        """Limits of every entry of an n x v table: those that are not free have none."""
        return Box(
            np.where(free, self.lower, -np.inf).astype(dtype),
            np.where(free, self.upper, np.inf).astype(dtype),
        )

    def clip(self, X: Array, observed: BoolArray) -> Array:
        """X, n x v, with every missing entry at the nearest value within the limits."""
        return self.of_entries(~observed, X.dtype).clip(X)


@dataclass(frozen=True)
class Box:
    """Limits of the variables of several problems side by side, b x N."""

    lower: Array
    upper: Array

    def clip(self, x: Array) -> Array:
        """The nearest points within the limits, b x N; NaN stays NaN."""
        return np.clip(x, self.lower, self.upper)

    def held(self, x: Array, gradient: Array) -> BoolArray:
        """Which variables, b x N, sit at a limit that descent would lead them across."""
        held: BoolArray = ((x <= self.lower) & (gradient > 0)) | (
            (x >= self.upper) & (gradient < 0)
        )
        return held


def clipped(bounds: Bounds | None, X: Array, observed: BoolArray) -> Array:
    """X, n x v, with its missing entries within the limits, if there are any."""
    return X if bounds is None or not bounds.limit else bounds.clip(X, observed)


def box_of(bounds: Bounds | None, observed: BoolArray, dtype: np.dtype[np.floating]) -> Box | None:
    """The limits of the entries of a table, n x v; None if there are none."""
    return None if bounds is None or not bounds.limit else bounds.of_entries(~observed, dtype)
