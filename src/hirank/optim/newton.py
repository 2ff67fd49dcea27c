"""The paper's Algorithm 1: relaxed Newton steps with momentum, in D and then in X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, Box, make_box
from hirank.core.objective import Basis, codes, objective, pull_samples
from hirank.optim.path import PathPoint, Setting, has_converged

MOMENTUM, RELAXATION = 0.5, 1.1
"""eta of all experiments of the paper, and tau of the authors' code: the paper gives no value."""


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
    momentum: float = MOMENTUM
    relaxation: float = RELAXATION
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

        basis = state.setting.basis(D)
        P = Z * basis.bound.rows(X)[1]
        box = make_box(self.bounds, self.observed, X.dtype)
        moved, step_X = step_samples(
            X, P, basis, state.last_X, self.observed, box, self.momentum, self.relaxation
        )
        return _state(state.setting, moved, D, step_X, step_D)


def step_samples(
    X: Array,
    P: Array,
    basis: Basis,
    last: Array,
    observed: BoolArray,
    box: Box | None,
    momentum: float,
    relaxation: float,
) -> tuple[Array, Array]:
    """Return samples after a relaxed Newton step of their missing entries, and the step.

    It is the step of Algorithms 1 and 3. X is n x m, P = Z * S is n x r for codes Z and the slope S
    of k(X, D), and `last` is the step before; also stacks, ... x n x m. Samples without curvature
    keep their momentum only.
    """
    gradient = pull_samples(P, X, basis)
    curvature = relaxation * basis.kernel.sample_curvature(-P, X)[..., None]
    delta = np.divide(gradient, curvature, out=np.zeros_like(gradient), where=curvature != 0)
    step = (momentum * last + delta).astype(X.dtype, copy=False)
    moved = np.where(observed, X, X - step)
    if box is not None:
        moved = box.clip(moved)
        step = X - moved  # momentum must not push on against a limit
    return moved, step


def _state(setting: Setting, X: Array, D: Array, last_X: Array, last_D: Array) -> NewtonState:
    basis = setting.basis(D)
    Z = codes(X, basis)
    return NewtonState(setting, X, basis, Z, objective(X, Z, basis), last_X, last_D)


def _without_step(state: NewtonState) -> NewtonState:
    """Return the state with an infinite objective: the loop ends, since no step was possible."""
    return NewtonState(
        state.setting, state.samples, state.basis, state.Z, np.inf, state.last_X, state.last_D
    )
