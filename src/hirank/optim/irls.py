"""Iteratively reweighted least squares for the Schatten-p penalty of one stage.

The gradient of the penalty is that of the least squares with the weights of the moment, so weights
are renewed with every step; the curvature of the least squares, sample by sample, guides the steps
(L-BFGS with a line search: within a stage the penalty cannot rise).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hirank._compiled import core
from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, Box
from hirank.core.curvature import MAX_DENSE_FEATURES, inverse_curvature, is_dense
from hirank.core.schatten import Penalty
from hirank.core.threads import Workers
from hirank.optim import quasi_newton as qn
from hirank.optim.descent import Descent, compiled_kernel, compiled_limits
from hirank.optim.lbfgs import LBFGS, LBFGSState
from hirank.optim.loop import has_stalled
from hirank.optim.path import WINDOW, PathPoint


@dataclass(frozen=True)
class IRLS(LBFGS):
    """L-BFGS on the penalty of one stage, guided by the curvature of the least squares."""

    renew: int = 40
    power: float = 0.5
    landmarks: IntArray | None = None
    window: int = WINDOW  # steps over which a stage is judged

    def problem(self, start: PathPoint) -> FreeEntries:
        """Return the objective of the stage of a starting point."""
        penalty = Penalty(start.setting.kernel, start.setting.beta, self.power)
        return FreeEntries(start.X, ~self.observed, penalty, self.landmarks, self.bounds)

    def init(self, start: PathPoint) -> LBFGSState:
        # With an age of 1, curvature is renewed at every step whose number `renew` divides.
        return replace(self._begin(self.problem(start), start.X[~self.observed]), age=1)

    def terminate(self, state: LBFGSState, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol, self.window)


@dataclass(frozen=True)
class FreeEntries:
    """The penalty as a function of the entries of a table that are not fixed."""

    table: Array  # n x m
    free: BoolArray
    penalty: Penalty
    landmarks: IntArray | None
    bounds: Bounds | None = None  # of the free entries

    @property
    def work(self) -> float:
        """The multiplications of a step: of an evaluation, and of the inverse curvature."""
        n, m = self.table.shape
        r = n if self.landmarks is None else len(self.landmarks)
        return 2.0 * n * r * (m + r) + n * m * min(m, MAX_DENSE_FEATURES)

    def X(self, vector: Array) -> Array:
        X = self.table.copy()
        X[self.free] = vector
        return X

    def D(self, vector: Array) -> Array:
        return self.X(vector)[slice(None) if self.landmarks is None else self.landmarks]

    def box(self) -> Box | None:
        """Return the limits of the vector, 1 x N."""
        if self.bounds is None or not self.bounds.bounded:
            return None
        feature = np.nonzero(self.free)[1]
        return Box(self.bounds.lower[feature][None], self.bounds.upper[feature][None])

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]:
        """Return value and gradient at a point; an infinite value where it is out of range."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.penalty(self.X(vector), self.landmarks, workers)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(vector)
        if not np.isfinite(at.value):
            return np.inf, np.zeros_like(vector)
        return at.value, at.gradient[self.free]

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition:
        """Return the inverse curvature of the least squares in each sample."""
        X, free = self.X(vector), self.free
        basis = self.penalty(X, self.landmarks, workers).basis
        inverse = inverse_curvature(X, basis, workers, free)

        def apply(vectors: Array) -> Array:
            full = np.zeros(X.shape, X.dtype)
            full[free] = vectors[0]
            return inverse(full)[free][None]

        return apply

    def compiled(self, vector: Array, memory: int, workers: Workers) -> Descent | None:
        """Return the compiled form of the stage at a vector; None if there is none."""
        module, penalty = core(), self.penalty
        kernel, X = compiled_kernel(penalty.kernel), self.table
        if module is None or kernel is None or X.dtype != np.float64 or not is_dense(*X.shape):
            return None
        state: Descent = module.begin_penalty(
            np.ascontiguousarray(self.X(vector)),
            np.ascontiguousarray(~self.free),
            [] if self.landmarks is None else self.landmarks.tolist(),
            **kernel,
            gamma=penalty.gamma,
            power=penalty.power,
            **compiled_limits(self.box()),
            memory=memory,
        )
        return state
