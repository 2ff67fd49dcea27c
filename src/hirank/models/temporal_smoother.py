"""A smoother for rows in order of time: neighbors in time and other features impute a gap together.

Several models of change (`dynamics.py`) each complete the table. Another completion, the fill, is a
noisy measurement of every missing entry, with variance s_j. What they impute is mixed with weights
by feature and by the distance to the nearest observed entry, which held-out gaps determine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array, BoolArray, Shape
from hirank.models.dynamics import Dynamics
from hirank.models.gaps import interpolate
from hirank.models.smoothing import Quadratic
from hirank.models.time_mix import MixConfig, distance_classes
from hirank.models.timeline import Timeline

Times = ArrayLike | Timeline | None


@dataclass(frozen=True)
class SmootherConfig:
    """Constants of smoothing in time; measured in docs/notes/temporal.md."""

    mix: MixConfig = field(default_factory=MixConfig)
    tol: float = 3e-3  # relative error at which conjugate gradients end
    max_steps: int = 300  # of conjugate gradients


DEFAULTS = SmootherConfig()


@dataclass(frozen=True)
class Smoother:
    """One model of change, and how much it trusts the fill.

    Attributes
    ----------
    dynamics : Dynamics
    fill_variance : m
        Variance at which a fill counts, feature by feature; infinite: not at all.
    """

    dynamics: Dynamics
    fill_variance: Annotated[Array, Shape("m", finite=False)]

    @classmethod
    def alone(cls, dynamics: Dynamics) -> Smoother:
        """Return a smoother that does not use the fill."""
        return cls(dynamics, np.full(len(dynamics.damping), np.inf))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not (self.fill_variance > 0).all():
            raise ValueError("fill_variance must be positive")


@dataclass(frozen=True)
class TemporalSmoother:
    """Models of change, and the weights of what they impute.

    Attributes
    ----------
    mean : m
    unit : float
        The usual time between rows.
    smoothers : c records
    weights : classes x m x c
        Of the smoothers, by distance to the nearest observed entry and feature.
    """

    mean: Annotated[Array, Shape("m")]
    unit: float
    smoothers: tuple[Smoother, ...]
    weights: Annotated[Array, Shape("b m c")]

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        n_classes, m, c = len(MixConfig.edges) + 1, len(self.mean), len(self.smoothers)
        if not self.unit > 0:
            raise ValueError("unit must be positive")
        if self.weights.shape != (n_classes, m, c):
            raise ValueError(f"weights must have the shape {(n_classes, m, c)}")
        if (self.weights < 0).any() or abs(self.weights.sum(axis=2) - 1).max(initial=0) > 1e-6:
            raise ValueError("weights must be nonnegative and sum to 1")
        if any(len(one.dynamics.damping) != m for one in self.smoothers):
            raise ValueError(f"dynamics must describe {m} features")

    def combine(
        self,
        X: Array,
        observed: BoolArray,
        times: Times = None,
        fill: Array | None = None,
        config: SmootherConfig = DEFAULTS,
    ) -> Array:
        """Impute the missing entries of a table in order of time, n x m.

        Parameters
        ----------
        X : n x m
            Values at missing entries are not used.
        observed : bool array, n x m
        times : n or Timeline, optional
            Increasing; by default rows are evenly spaced.
        fill : n x m, optional
            Another completion; NaN where it has no value.
        config : SmootherConfig

        Returns
        -------
        completed : n x m
            Observed entries as they are.
        """
        timeline = Timeline.sorted(times, len(X))
        if observed.all():
            return np.array(X, dtype=np.float64)
        table = GapTable(X, observed, timeline, self.mean, self.unit, fill)
        classes = distance_classes(observed, timeline, self.unit, config.mix)
        weights = self.weights[classes, np.arange(X.shape[1])]  # n x m x c
        completed = np.zeros(X.shape)
        for one, weight in zip(self.smoothers, np.moveaxis(weights, 2, 0), strict=True):
            completed += weight * table.impute(one, config)
        return np.where(observed, X, completed)

    def combine_rows(self, X: Array, observed: BoolArray, timeline: Timeline, fill: Array) -> Array:
        """Impute a table as `combine` does whose rows are in any order."""
        order = timeline.order
        completed = np.empty(X.shape)
        completed[order] = self.combine(
            X[order], observed[order], timeline.take(order), fill[order]
        )
        return completed


class GapTable:
    """A table in order of time whose gaps are to be imputed."""

    def __init__(
        self,
        X: Array,
        observed: BoolArray,
        timeline: Timeline,
        mean: Array,
        unit: float,
        fill: Array | None,
    ) -> None:
        self.X, self.observed, self.mean = X, observed, mean
        self.steps = timeline.steps(unit)
        self.start = np.ascontiguousarray(interpolate(X - mean, observed, timeline).T)
        self.goal = np.full(X.T.shape, np.nan) if fill is None else fill.T - mean[:, None]

    def impute(self, smoother: Smoother, config: SmootherConfig) -> Array:
        """Return the table completed, n x m."""
        missing = ~self.observed.T
        known = missing & np.isfinite(self.goal)
        weight = np.where(known, 1 / smoother.fill_variance[:, None], 0)
        quadratic = Quadratic(missing, smoother.dynamics, self.steps, weight)
        right = weight * np.where(known, self.goal, 0)
        completed = quadratic.solve(self.start, right, config.tol, config.max_steps).T
        return np.where(self.observed, self.X, completed + self.mean)
