"""Tables with missing values (NaN): their check, and the mean and spread of their columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array
from hirank.exceptions import InputError


def check_table(X: ArrayLike) -> Array:
    """Return X as n x m floats; raise InputError if it is not a table or has infinite values."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size:
        raise InputError(f"X must be a table, n_samples x n_features; got shape {X.shape}.")
    if np.isinf(X).any():
        raise InputError("X has infinite values. Replace them, by NaN if they are not known.")
    return X


def measure_columns(X: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column, ignoring NaN; 0 for an empty column."""
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    size = np.abs(np.where(known, X, 0)).max(axis=0)  # so that squares neither overflow nor vanish
    size[size == 0] = 1
    values = np.where(known, X, 0) / size
    mean = values.sum(axis=0) / count
    spread = np.sqrt((np.where(known, values - mean, 0) ** 2).sum(axis=0) / count)
    spread[spread <= 10 * np.finfo(float).eps] = 0  # a spread in the last digits is rounding
    return mean * size, spread * size
