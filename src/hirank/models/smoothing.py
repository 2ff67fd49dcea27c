"""Missing entries given their neighbors in time: a sparse quadratic, solved by conjugate gradients.

With e the residuals of dynamics, and deviations x_t from the mean, the completed table minimizes

    sum_t e_t' Q^-1 e_t + level sum_t x_t' C^-1 x_t + sum over missing (x_tj - fill_tj)^2 / s_j.

Time and memory are linear in the number of rows. Arrays are m x n.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from hirank._typing import Array, BoolArray
from hirank.models.dynamics import Dynamics, Operator
from hirank.models.timeline import Steps

MIN_NOISE, MIN_SPREAD = 1e-5, 1e-2
"""What is added to the diagonals of Q and C, in units of their means."""


class Quadratic:
    """The quadratic of a table with given missing entries, m x n."""

    def __init__(
        self, missing: BoolArray, dynamics: Dynamics, steps: Steps, weight: Array | float = 0.0
    ) -> None:
        self.missing, self.weight = missing, weight
        self.operator = Operator(dynamics.damping, dynamics.coupling, steps)
        self.of_noise = np.linalg.inv(add_ridge(dynamics.noise, MIN_NOISE))
        self.of_levels = dynamics.level * np.linalg.inv(add_ridge(dynamics.spread, MIN_SPREAD))
        self.guide = cholesky_banded(self._bands().reshape(3, -1), check_finite=False)

    def _bands(self) -> Array:
        """Return each feature alone, a pentadiagonal system that guides conjugate gradients."""
        missing = self.missing
        now, last, second = self.operator.bands()
        main = now**2
        main[:, :-1] += last[:, 1:] ** 2
        main[:, :-2] += second[:, 2:] ** 2
        beside, across = now[:, 1:] * last[:, 1:], now[:, 2:] * second[:, 2:]
        beside[:, :-1] += last[:, 2:] * second[:, 2:]
        own = self.of_noise.diagonal()[:, None]
        main = own * main + self.of_levels.diagonal()[:, None] + self.weight
        bands = np.zeros((3, *missing.shape))
        bands[2] = np.where(missing, main, 1)
        bands[1, :, 1:] = np.where(missing[:, 1:] & missing[:, :-1], own * beside, 0)
        bands[0, :, 2:] = np.where(missing[:, 2:] & missing[:, :-2], own * across, 0)
        return bands

    def product(self, X: Array) -> Array:
        """Return the matrix of the quadratic times X, m x n, at missing entries."""
        out = self.operator.transposed(self.of_noise @ self.operator.residuals(X))
        out += self.of_levels @ X
        out += self.weight * X
        out *= self.missing
        return out

    def noise(self, rng: np.random.Generator) -> Array:
        """Return a right-hand side, m x n, that makes the solution a draw from the model."""
        shape = self.missing.shape
        e = np.linalg.cholesky(self.of_noise) @ rng.standard_normal(shape)
        levels = np.linalg.cholesky(self.of_levels) @ rng.standard_normal(shape)
        return self.operator.transposed(e) + levels

    def solve(self, start: Array, right: Array, tol: float, max_steps: int) -> Array:
        """Solve by conjugate gradients from `start`, m x n, whose observed entries stay."""
        X = start.copy()
        residual = np.where(self.missing, right, 0) - self.product(X)
        direction, last, first = np.zeros_like(X), np.inf, 0.0
        for step in range(max_steps):
            guided = cho_solve_banded((self.guide, False), residual.ravel(), check_finite=False)
            guided = guided.reshape(X.shape)
            size = float(np.vdot(residual, guided))
            first = first if step else size
            if size <= tol**2 * first:
                break
            direction = guided + size / last * direction
            moved = self.product(direction)
            length = size / float(np.vdot(direction, moved))
            X += length * direction
            residual -= length * moved
            last = size
        return X


def add_ridge(covariance: Array, least: float) -> Array:
    """Return a covariance that is not singular."""
    added = least * covariance.diagonal().mean() + np.finfo(np.float64).tiny ** 0.5
    return covariance + added * np.eye(len(covariance))
