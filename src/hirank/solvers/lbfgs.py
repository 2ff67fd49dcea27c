"""The default: L-BFGS on the reduced objective, over missing entries and dictionary together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array
from hirank.model.objective import reduced_gradient
from hirank.model.workers import Workers
from hirank.solvers import quasi_newton as qn
from hirank.solvers.path import Setting


@dataclass(frozen=True)
class _Joint:
    """The variables of one stage as one vector: missing entries of X first, then D."""

    setting: Setting
    template: Array  # X with its observed entries, n x m
    missing: NDArray[np.intp]  # flat positions in X
    shape: tuple[int, int]  # of D

    def pack(self, X: Array, D: Array) -> Array:
        return np.concatenate([X.ravel()[self.missing], D.ravel()])

    def X(self, vector: Array) -> Array:
        if not len(self.missing):
            return self.template
        X = self.template.copy()
        X.ravel()[self.missing] = vector[: len(self.missing)]
        return X

    def D(self, vector: Array) -> Array:
        return vector[len(self.missing) :].reshape(self.shape)

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]:
        """F and its gradient; an infinite F where the dictionary has collapsed."""
        basis = self.setting.basis(self.D(vector))
        try:
            value, X, D = reduced_gradient(
                self.X(vector), basis, workers, wrt_X=len(self.missing) > 0
            )
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(vector)
        assert D is not None
        if X is None:
            return value, D.ravel()
        return value, self.pack(X, D)


@dataclass(frozen=True)
class LBFGSState:
    """Where the joint vector stands."""

    problem: _Joint
    rows: qn.Rows  # one row: the joint vector

    @property
    def objective(self) -> float:
        return float(self.rows.value[0])

    def X(self) -> Array:
        return self.problem.X(self.rows.x[0])

    def D(self) -> Array:
        return self.problem.D(self.rows.x[0])


@dataclass(frozen=True)
class LBFGS:
    """L-BFGS with a line search: within a stage the objective never rises.

    A step is one evaluation of the objective and its gradients.

    Parameters
    ----------
    observed : bool array, n x m
        True = known: these entries never change.
    workers : Workers
    memory : int
        Steps that shape the curvature.
    """

    observed: NDArray[np.bool_]
    workers: Workers
    memory: int = 10

    def init(self, setting: Setting, X: Array, D: Array) -> LBFGSState:
        problem = _Joint(setting, X, np.flatnonzero(~self.observed), D.shape)
        vector = problem.pack(X, D)
        value, gradient = problem.evaluate(vector, self.workers)
        return LBFGSState(
            problem, qn.begin(vector[None], np.array([value]), gradient[None], self.memory)
        )

    def step(self, state: LBFGSState) -> LBFGSState:
        point = qn.trial(state.rows)
        value, gradient = state.problem.evaluate(point[0], self.workers)
        rows = qn.update(state.rows, point, np.array([value]), gradient[None])
        return LBFGSState(state.problem, rows)
