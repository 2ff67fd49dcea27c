"""The paper's Algorithm 1: relaxed Newton steps with momentum, in D and then in X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, clip_missing
from hirank.core.objective import Basis, codes, objective
from hirank.optim.path import PathPoint, Setting, has_converged


@dataclass(frozen=True)
class NewtonState:
    """X is n x m, D is r x m; the buffers hold the last steps."""

    setting: Setting
    samples: Array
    basis: Basis
    Z: Array  # the best codes of samples and basis, n x r
    objective: float
    last_X: Array
    last_D: Array

    def X(self) -> Array:
        return self.samples

    def D(self) -> Array:
        return self.basis.D


@dataclass(frozen=True)
class Newton:
    """Algorithm 1 of the paper.

    Parameters
    ----------
    observed : bool array, n x m
        Observed entries never change.
    momentum : float
        eta of the paper: the part of the last step that is added to the next.
    relaxation : float
        tau of the paper, above 1: how much the curvature is overstated.
    bounds : Bounds, optional
        Limits of the entries that are not observed: each step is projected onto them.
    tol : float
        A stage ends when the objective fell by less than this part of itself over ten steps.
    """

    observed: BoolArray
    momentum: float = 0.5
    relaxation: float = 1.1
    bounds: Bounds | None = None
    tol: float = 0.0
    monotone: ClassVar[bool] = True  # as a rule: where it is not, the loop returns the best point

    def init(self, start: PathPoint) -> NewtonState:
        setting, X, D = start
        return _state(setting, X, D, np.zeros_like(X), np.zeros_like(D))

    def step(self, state: NewtonState) -> NewtonState:
        with np.errstate(all="ignore"):  # the loop ends at numbers that are not finite
            try:
                return self._step(state)
            except np.linalg.LinAlgError:
                return _without_step(state)

    def terminate(self, state: NewtonState, objectives: Sequence[float]) -> bool:
        return has_converged(objectives, self.tol)

    def _step(self, state: NewtonState) -> NewtonState:
        X, Z, basis, kernel = state.samples, state.Z, state.basis, state.setting.kernel
        P = -Z * basis.bound.rows(X)[1]
        Q = Z.T @ Z
        Q[np.diag_indices_from(Q)] += state.setting.alpha
        Q *= basis.gram[1] / 2
        gradient = basis.bound.pull_points(P, X) + 2 * basis.bound.pull_rows(Q, basis.D)
        delta = np.linalg.solve(kernel.dictionary_curvature(P, Q), gradient) / self.relaxation
        step_D = (self.momentum * state.last_D + delta).astype(X.dtype, copy=False)
        D = basis.D - step_D
        if self.observed.all():
            return _state(state.setting, X, D, state.last_X, step_D)

        bound = kernel.bind(D)
        P = -Z * bound.rows(X)[1]
        gradient = bound.pull_rows(P, X)
        own = kernel.diag_gradient(X)
        if own is not None:
            gradient += own
        delta = gradient / (self.relaxation * kernel.sample_curvature(P, X)[:, None])
        step_X = (self.momentum * state.last_X + delta).astype(X.dtype, copy=False)
        moved = np.where(self.observed, X, X - step_X)
        if self.bounds is not None and self.bounds.bounded:
            moved = clip_missing(self.bounds, moved, self.observed)
            step_X = X - moved  # momentum must not push on against a limit
        return _state(state.setting, moved, D, step_X, step_D)


def _state(setting: Setting, X: Array, D: Array, last_X: Array, last_D: Array) -> NewtonState:
    basis = setting.basis(D)
    Z = codes(X, basis)
    return NewtonState(setting, X, basis, Z, objective(X, Z, basis), last_X, last_D)


def _without_step(state: NewtonState) -> NewtonState:
    """Return the state with an infinite objective: the loop ends, since no step was possible."""
    return NewtonState(
        state.setting, state.samples, state.basis, state.Z, np.inf, state.last_X, state.last_D
    )
