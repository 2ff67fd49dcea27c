"""Features brought to a common scale, from their observed entries, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array


@dataclass(frozen=True)
class Scaling:
    """Center and spread of each of m features.

    A feature whose observed entries are all equal has no spread. It tells nothing and needs no
    model: its value is known.
    """

    center: NDArray[np.float64]  # m; for a constant feature, its value
    spread: NDArray[np.float64]  # m; 0 for a constant feature
    mean: NDArray[np.float64]  # m

    @classmethod
    def measure(cls, X: Array, observed: NDArray[np.bool_], *, scale: bool) -> Scaling:
        """Mean and standard deviation of the observed entries of X, n x m, feature by feature.

        Every feature must have an observed entry. With scale=False, features that vary keep
        their units: center 0 and spread 1.
        """
        known = np.where(observed, X, np.nan).astype(np.float64)
        lowest, highest = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
        size = np.maximum(np.abs(lowest), np.abs(highest))
        size[size == 0] = 1
        known /= size  # so that squares can't overflow
        mean, spread = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        # A spread in the last digits of the values is rounding, not information.
        resolution = 4 * np.finfo(X.dtype).eps
        constant = (lowest == highest) | (spread <= resolution)
        mean, spread = mean * size, spread * size
        mean[lowest == highest] = lowest[lowest == highest]
        if scale:
            return cls(mean, np.where(constant, 0, spread), mean)
        return cls(np.where(constant, mean, 0), np.where(constant, 0, 1.0), mean)

    @property
    def varying(self) -> NDArray[np.bool_]:
        return self.spread > 0

    def forward(self, X: Array) -> Array:
        """The features that vary, n x m -> n x v, in units of their spread."""
        v = self.varying
        scaled = (X[:, v] - self.center[v].astype(X.dtype)) / self.spread[v].astype(X.dtype)
        return np.ascontiguousarray(scaled)

    def backward(self, scaled: Array) -> Array:
        """All features, n x v -> n x m; constant ones at their value."""
        X = np.empty((len(scaled), len(self.center)), scaled.dtype)
        X[:] = self.center
        v = self.varying
        X[:, v] += scaled * self.spread[v].astype(scaled.dtype)
        return X
