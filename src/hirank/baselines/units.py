"""Center and spread of the features of a stream, which forget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling

Numbers = Array


def measure_lasting_scale(X: Array, observed: BoolArray, *, scale: bool) -> Scaling:
    """The scaling of X, n x m, in which every feature varies.

    One that has not done so yet may later: its spread is taken for 1.
    """
    scaling = Scaling.measure(X, observed, scale=scale and "standard")
    return replace(scaling, spread=np.where(scaling.varying, scaling.spread, 1.0))


@dataclass(frozen=True)
class Units:
    """Sums over rows, per feature, of 1, x - origin and its square, in which old rows fade."""

    origin: Numbers  # m; so that large values do not hide a small spread
    sums: Numbers  # 3 x m
    scaling: Scaling

    @classmethod
    def start(cls, scaling: Scaling, weight: float) -> Units:
        """Units that begin with a scaling, as if measured on so many rows."""
        m = len(scaling.mean)
        sums = weight * np.stack([np.ones(m), np.zeros(m), scaling.spread**2])
        return cls(scaling.mean, sums, scaling)

    def learn(self, rows: Numbers, keep: float) -> Units:
        """The units after rows with NaN in their holes, n x m; each fades those before by keep."""
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
