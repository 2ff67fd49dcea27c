"""The default: L-BFGS on the reduced objective, over missing entries and dictionary together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, Box
from hirank.core.curvature import inverse_curvature
from hirank.core.objective import codes, reduced_gradient
from hirank.core.threads import Workers, row_blocks
from hirank.optim import quasi_newton as qn
from hirank.optim.path import PathPoint, Setting, has_converged

MAX_CURVATURE = 250_000_000  # entries of the n x m x m curvature, one gigabyte: beyond, do without
MIN_USE = 1e-3  # of a point, in units of the mean, so that unused points do not jump


class Problem(Protocol):
    """An objective of one vector, which consists of the missing entries of X and perhaps more."""

    def X(self, vector: Array) -> Array: ...

    def D(self, vector: Array) -> Array: ...  # the dictionary, r x m

    def box(self) -> Box | None: ...  # the limits of the vector, 1 x N

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]: ...

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition | None: ...


@dataclass(frozen=True)
class _Joint:
    """The variables of one stage as one vector: missing entries of X first, then D."""

    setting: Setting
    template: Array  # X with its observed entries, n x m
    missing: IntArray  # flat positions in X
    shape: tuple[int, int]  # of D
    bounds: Bounds | None = None  # of the missing entries; D has none

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

    def box(self) -> Box | None:
        """Return the limits of the vector, 1 x N."""
        if self.bounds is None or not self.bounds.bounded:
            return None
        feature, size = self.missing % self.template.shape[1], self.shape[0] * self.shape[1]
        limits = [
            np.append(self.bounds.lower[feature], np.full(size, -np.inf)),
            np.append(self.bounds.upper[feature], np.full(size, np.inf)),
        ]
        lower, upper = (limit.astype(self.template.dtype)[None] for limit in limits)
        return Box(lower, upper)

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition:
        """Return the inverse curvature of each sample and each point at X and D."""
        X, D = self.X(vector), self.D(vector)
        basis = self.setting.basis(D)
        k = len(self.missing)
        use = np.square(codes(X, basis)).sum(axis=0)  # diagonal of Z'Z
        use = np.maximum(use, MIN_USE * use.mean()) + np.finfo(use.dtype).tiny
        of_points, point_unit = inverse_curvature(D, basis, workers)
        of_points /= use[:, None, None].astype(np.float32)
        of_samples = None
        if k and X.size * X.shape[1] <= MAX_CURVATURE:
            free = np.zeros(X.shape, bool)
            free.ravel()[self.missing] = True
            of_samples, unit = inverse_curvature(X, basis, workers, free)

        def apply(vectors: Array) -> Array:
            out = np.empty_like(vectors)
            if of_samples is None:
                out[0, :k] = vectors[0, :k]
            else:
                full = np.zeros(X.shape, X.dtype)
                full.ravel()[self.missing] = vectors[0, :k]
                moves = _row_products(of_samples, full, workers).ravel()[self.missing]
                np.divide(moves, unit, out=out[0, :k])
            points = vectors[0, k:].reshape(self.shape)
            moves = _row_products(of_points, points, workers).ravel()
            np.divide(moves, point_unit, out=out[0, k:])
            return out

        return apply

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]:
        """Return F and its gradient; F is infinite where the dictionary has collapsed."""
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
    """Where the vector of a problem stands."""

    problem: Problem
    rows: qn.Rows  # one row: the vector of the problem
    age: int  # steps since the curvature was measured

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
        Observed entries never change.
    workers : Workers
    memory : int
        Steps that shape the curvature.
    renew : int
        Steps after which the curvature of samples and points is measured again.
    bounds : Bounds, optional
        Limits of the entries that are not observed; those of the starting point must be within.
    tol : float
        A stage ends when the objective fell by less than this part of itself over ten steps.
    """

    observed: BoolArray
    workers: Workers
    memory: int = 10
    renew: int = 150
    bounds: Bounds | None = None
    tol: float = 0.0
    monotone: ClassVar[bool] = True

    def init(self, start: PathPoint) -> LBFGSState:
        setting, X, D = start
        problem = _Joint(setting, X, np.flatnonzero(~self.observed), D.shape, self.bounds)
        return self._evaluate(problem, problem.pack(X, D))

    def _evaluate(self, problem: Problem, vector: Array) -> LBFGSState:
        value, gradient = problem.evaluate(vector, self.workers)
        return self._begin(problem, vector[None], np.array([value]), gradient[None])

    def _begin(self, problem: Problem, vector: Array, value: Array, gradient: Array) -> LBFGSState:
        guide = problem.precondition(vector[0], self.workers)
        rows = qn.begin(vector, value, gradient, self.memory, guide, problem.box())
        return LBFGSState(problem, rows, 0)

    def step(self, state: LBFGSState) -> LBFGSState:
        if state.age >= self.renew:
            rows = state.rows
            state = self._begin(state.problem, rows.x, rows.value, rows.gradient)
        point = qn.trial(state.rows)
        value, gradient = state.problem.evaluate(point[0], self.workers)
        rows = qn.update(state.rows, point, np.array([value]), gradient[None])
        return LBFGSState(state.problem, rows, state.age + 1)

    def terminate(self, state: LBFGSState, objectives: Sequence[float]) -> bool:
        return has_converged(objectives, self.tol)


def _row_products(matrices: Array, rows: Array, workers: Workers) -> Array:
    """Return each matrix times its row, b x m x m and b x m -> b x m, by single precision."""
    size = np.abs(rows).max(initial=0) or 1.0
    rows = (rows / size).astype(np.float32)
    out = np.empty_like(rows)

    def block(part: slice) -> None:
        np.matmul(matrices[part], rows[part, :, None], out=out[part, :, None])

    # Reading the matrices takes about ten times as long as multiplying.
    cost = 10.0 * matrices.size
    for _ in workers.map(block, row_blocks(len(rows), matrices[0].nbytes, cost), cost):
        pass
    return out * size
