"""The default: L-BFGS on the reduced objective, over missing entries and dictionary together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._compiled import core
from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, Box
from hirank.core.curvature import MAX_DENSE_FEATURES, inverse_curvature, is_dense
from hirank.core.objective import codes, reduced_gradient
from hirank.core.slices import count_work
from hirank.core.threads import Workers
from hirank.optim import quasi_newton as qn
from hirank.optim.descent import Descent, Problem, begin, compiled_kernel, compiled_limits
from hirank.optim.path import PathPoint, Setting, has_converged

MIN_USE = 1e-3  # of a point, in units of the mean, so that unused points do not jump


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

    @property
    def work(self) -> float:
        """The multiplications of a step: of an evaluation, and of the inverse curvature."""
        (n, m), r = self.template.shape, self.shape[0]
        return 1.0 * n * r * (m + r) + (n + r) * m * min(m, MAX_DENSE_FEATURES)

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition:
        """Return the inverse curvature of each sample and each point at X and D."""
        X, D = self.X(vector), self.D(vector)
        basis = self.setting.basis(D)
        k = len(self.missing)
        use = np.square(codes(X, basis)).sum(axis=0)  # diagonal of Z'Z
        use = np.maximum(use, MIN_USE * use.mean()) + np.finfo(use.dtype).tiny
        of_points = inverse_curvature(D, basis, workers)
        free = np.zeros(X.shape, bool)
        free.ravel()[self.missing] = True
        of_samples = inverse_curvature(X, basis, workers, free) if k else None

        def apply(vectors: Array) -> Array:
            out = np.empty_like(vectors)
            if of_samples is not None:
                full = np.zeros(X.shape, X.dtype)
                full.ravel()[self.missing] = vectors[0, :k]
                out[0, :k] = of_samples(full).ravel()[self.missing]
            points = vectors[0, k:].reshape(self.shape)
            out[0, k:] = (of_points(points) / use[:, None]).ravel()
            return out

        return apply

    def compiled(self, vector: Array, memory: int, workers: Workers) -> Descent | None:
        """Return the compiled form of the stage at a vector; None if there is none."""
        module, kernel = core(), compiled_kernel(self.setting.kernel)
        X, D = self.template, self.D(vector)
        dense = is_dense(*X.shape) and is_dense(*D.shape)
        if module is None or kernel is None or X.dtype != np.float64 or not dense:
            return None
        observed = np.ones(X.shape, bool)
        observed.ravel()[self.missing] = False
        state: Descent = module.begin_stage(
            np.ascontiguousarray(self.X(vector)),
            observed,
            np.ascontiguousarray(D),
            **kernel,
            beta=self.setting.beta,
            alpha=self.setting.alpha,
            **compiled_limits(self.box()),
            memory=memory,
            n_threads=workers.count(1.0 * len(X) * len(D) * (X.shape[1] + len(D))),
        )
        return state

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
    descent: Descent
    age: int  # steps since the curvature was measured

    @property
    def objective(self) -> float:
        return self.descent.value

    def X(self) -> Array:
        return self.problem.X(self.descent.x)

    def D(self) -> Array:
        return self.problem.D(self.descent.x)


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
        return self._begin(problem, problem.pack(X, D))

    def _begin(self, problem: Problem, vector: Array) -> LBFGSState:
        return LBFGSState(problem, begin(problem, vector, self.memory, self.workers), 0)

    def step(self, state: LBFGSState) -> LBFGSState:
        descent, age = state.descent, state.age
        if age >= self.renew:
            descent, age = descent.renew(), 0
        descent = descent.step()
        count_work(state.problem.work)
        return LBFGSState(state.problem, descent, age + 1)

    def terminate(self, state: LBFGSState, objectives: Sequence[float]) -> bool:
        return has_converged(objectives, self.tol)
