"""The simplest methods for rows in order, and what is left of an online method without order."""

from __future__ import annotations

from typing import Any

import numpy as np

from hirank import OnlineKFMC
from hirank._typing import Array


class Interpolation:
    """Linear interpolation of each feature, in the order of the rows."""

    def fit_transform(self, X: Array) -> Array:
        """Impute X, n x m with NaN for missing entries; beyond the ends, by the nearest entry."""
        filled, rows = X.copy(), np.arange(len(X))
        for column in filled.T:
            observed = ~np.isnan(column)
            if observed.any():
                column[:] = np.interp(rows, rows[observed], column[observed])
            else:
                column[:] = 0.0
        return filled


class LastValue:
    """The last observed entry of each feature: the simplest method for a stream in order."""

    def fit_transform(self, X: Array) -> Array:
        """Impute X, n x m with NaN for missing entries; by 0 before the first entry."""
        rows = np.arange(len(X))[:, None]
        last = np.maximum.accumulate(np.where(np.isnan(X), -1, rows), axis=0)
        found = np.take_along_axis(X, np.maximum(last, 0), axis=0)
        return np.where(last < 0, 0.0, found)


class ShuffledOnlineKFMC(OnlineKFMC):
    """Algorithm 2 with the rows in random order: what it owes to their order is lost."""

    def fit_transform(self, X: Array, y: Any = None, **params: Any) -> Array:
        """Impute X, n x m with NaN for missing entries."""
        order = np.random.default_rng(self.random_state).permutation(len(X))
        filled = np.empty_like(X)
        filled[order] = super().fit_transform(X[order], y, **params)
        return filled
