"""What the observed values of features have in common: decimals, and limits that none crosses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.bounds import Bounds

MAX_DECIMALS = 6
"""Values with more are taken for measurements, which are not rounded."""
ROUNDING = 8
"""Units in the last place by which an observed value may differ from its decimals."""


@dataclass(frozen=True)
class ObservedValues:
    """How the observed values of k features look; imputed ones can be made to look the same.

    Limits are 0 for features that were never negative, or never positive, and 1 or 100 for those
    that were never negative and never larger.
    """

    decimals: Annotated[IntArray, Shape("k")]  # -1: more than are worth keeping
    limits: Bounds  # of k features

    @classmethod
    def measure(cls, X: Array, observed: BoolArray) -> ObservedValues:
        """Return how the observed values of a table, n x k, look; each feature has one at least."""
        columns = [x[known] for x, known in zip(X.T, observed.T, strict=True)]
        limits = np.array([_limits(x) for x in columns]).reshape(-1, 2)
        decimals = np.array([_decimals(x) for x in columns], dtype=np.int64)
        return cls(decimals, Bounds(limits[:, 0].copy(), limits[:, 1].copy()))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        k = len(self.decimals)
        if len(self.limits.lower) != k:
            raise ValueError("each feature must have decimals and limits")
        if k and (self.decimals.min() < -1 or self.decimals.max() > MAX_DECIMALS):
            raise ValueError(f"decimals must be between -1 and {MAX_DECIMALS}")


def _limits(x: Array) -> tuple[float, float]:
    low, high = float(x.min()), float(x.max())
    if low < 0:
        return -np.inf, 0.0 if high <= 0 else np.inf
    return 0.0, 1.0 if high <= 1 else 100.0 if high <= 100 else np.inf


def _decimals(x: Array) -> int:
    """Return the smallest number of decimals with which all values are as they are; -1 if many."""
    x = x.astype(x.dtype if x.dtype.kind == "f" else np.float64)
    error = ROUNDING * np.spacing(np.abs(x))
    for decimals in range(MAX_DECIMALS + 1):
        if (np.abs(np.round(x.astype(np.float64), decimals) - x) <= error).all():
            return decimals
    return -1
