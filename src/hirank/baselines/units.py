"""Center and spread of the features of a stream, in which old rows fade."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling

MIN_MEMORY = 300  # rows: units must forget more slowly than the factors (docs/notes/baselines.md)
MAX_DEVIATION = 30.0  # standard deviations to which values are clipped before they are learned from


def measure_lasting_scale(X: Array, observed: BoolArray, *, scale: bool) -> Scaling:
    """Return the scaling of X, n x m, in which every feature varies.

    A feature that has not varied yet may do so later: its spread is taken for 1.
    """
    scaling = Scaling.measure(X, observed, scale=scale and "standard")
    return replace(scaling, spread=np.where(scaling.varying, scaling.spread, 1.0))


@dataclass(frozen=True)
class Units:
    """Sums over rows, per feature, of 1, x - origin and its square, in which old rows fade."""

    origin: Array  # m; so that a small spread keeps its digits beside large values
    sums: Array  # 3 x m
    scaling: Scaling

    @classmethod
    def measure(cls, X: Array, observed: BoolArray, memory: float | None) -> Units:
        """Return the units of X, n x m, with the weight of as many rows as are remembered."""
        scaling, m = measure_lasting_scale(X, observed, scale=True), X.shape[1]
        sums = np.stack([np.ones(m), np.zeros(m), scaling.spread**2])
        return cls(scaling.mean, max(memory or 0, MIN_MEMORY) * sums, scaling)

    def learn(self, rows: Array, memory: float) -> Units:
        """Return the units after rows, n x m, NaN = missing; those before fade in `memory` rows."""
        keep = float(np.exp(-1 / max(memory, MIN_MEMORY)))
        fading = keep ** np.arange(len(rows) - 1, -1, -1.0)
        known, values = ~np.isnan(rows), np.nan_to_num(rows - self.origin)
        new = np.stack([fading @ known, fading @ values, fading @ values**2])
        sums = keep ** len(rows) * self.sums + new
        mean = sums[1] / np.maximum(sums[0], np.finfo(float).tiny)
        variance = sums[2] / np.maximum(sums[0], np.finfo(float).tiny) - mean**2
        center = self.origin + mean
        # A spread in the last digits is rounding: then the one before stands.
        fine = variance > 1e-12 * np.maximum(mean**2, self.scaling.spread**2)
        spread = np.where(fine, np.sqrt(np.maximum(variance, 0)), self.scaling.spread)
        return replace(self, sums=sums, scaling=Scaling(center, spread, center))

    def clip(self, rows: Array) -> Array:
        """Clip values of rows, n x m, so that an outlier cannot destroy what was learned.

        If all values are far out, the units follow.
        """
        center, limit = self.scaling.center, MAX_DEVIATION * self.scaling.spread
        return np.clip(rows, center - limit, center + limit)
