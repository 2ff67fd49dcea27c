"""Tables with holes (NaN): checked, and the mean and spread of their features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array


def as_table(X: ArrayLike) -> Array:
    """X as n x m floats; raise if it is no table or holds infinite values. NaN is fine."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"X must be a table, samples x features; got shape {X.shape}.")
    if np.isinf(X).any():
        raise ValueError("X holds infinite values. Replace them, by NaN if they are unknown.")
    return X


def moments(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature over entries that are not NaN; 0 without any."""
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    size = np.abs(np.where(known, X, 0)).max(axis=0)  # so that squares neither overflow nor vanish
    size[size == 0] = 1
    values = np.where(known, X, 0) / size
    mean = values.sum(axis=0) / count
    spread = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(axis=0) / count)
    spread[spread <= 10 * np.finfo(float).eps] = 0  # a spread in the last digits is rounding
    return mean * size, spread * size
