"""Factor analysis: one Gaussian whose covariance has low rank but for its diagonal.

It takes the place of a Gaussian with any covariance where a table is wide: its parameters, and the
work of a row, are linear in the number of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeAlias

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.models.low_rank import Subspace
from hirank.models.mixture import Mixture

MAX_VALUE, MIN_NOISE = 1e100, 1e-100
"""Of a model file: products of larger and smaller numbers overflow."""
MAX_RATIO = 1e13
"""Of all squared loadings to noise: beyond it, the systems of rows are singular up to rounding."""


@dataclass(frozen=True)
class FactorAnalyzer:
    """x = mean + z W + e with z ~ N(0, I) and e ~ N(0, diag(noise)): a `RowModel`.

    The covariance of x is W' W + diag(noise). Given the observed entries of a row, z has the mean
    of a ridge regression of x - mean on W with features in units of their noise, and the
    covariance C = (I + W_o diag(1 / noise_o) W_o')^-1.
    """

    mean: Annotated[Array, Shape("v")]
    loadings: Annotated[Array, Shape("r v")]  # W
    noise: Annotated[Array, Shape("v")]  # variances

    @property
    def width(self) -> int:
        """The number of features v."""
        return len(self.mean)

    @property
    def work(self) -> float:
        """The multiplications of a row."""
        r, v = map(float, self.loadings.shape)
        return r * r * (r + v)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        r, v = self.loadings.shape
        if r > v:
            raise ValueError(f"there must be at most {v} factors; got {r}")
        largest = max(np.abs(part).max(initial=0.0) for part in (self.mean, self.loadings))
        if largest > MAX_VALUE or not ((self.noise >= MIN_NOISE) & (self.noise < MAX_VALUE)).all():
            raise ValueError(f"noise must be positive, and all numbers within {MAX_VALUE:g}")
        if np.sum(self.loadings**2 / self.noise) > MAX_RATIO:
            raise ValueError("loadings must not be too large for the noise")

    @cached_property
    def _regression(self) -> Subspace:
        """The regression of rows in units of the noise."""
        return Subspace(self.loadings / np.sqrt(self.noise), 1.0)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        z = self._regression.codes((X - self.mean) / np.sqrt(self.noise), observed)
        return np.where(observed, X, self._means(z))

    def conditional(self, X: Array, observed: BoolArray) -> tuple[Array, Array]:
        """Return conditional means and standard deviations, n x v each; X and 0 if observed."""
        means, deviations = np.array(X, np.float64), np.zeros(X.shape)
        scaled = (X - self.mean) / np.sqrt(self.noise)
        for part, gram, right in self._regression.systems(scaled, observed):
            missing = ~observed[part]
            z = np.linalg.solve(gram, right)[:, :, 0]
            means[part][missing] = self._means(z)[missing]
            # With C = L^-T L^-1, w' C w = |L^-1 w|^2.
            half = np.linalg.solve(np.linalg.cholesky(gram), self.loadings[None])
            variances = np.einsum("nrv,nrv->nv", half, half) + self.noise
            deviations[part][missing] = np.sqrt(variances)[missing]
        return means, deviations

    def draw(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> Array:
        """Draw the missing entries of each row jointly from their conditional distribution."""
        n, r = len(X), len(self.loadings)
        drawn = np.array(X, np.float64)
        factors, noise = rng.standard_normal((n, r)), rng.standard_normal(X.shape)
        scaled = (X - self.mean) / np.sqrt(self.noise)
        for part, gram, right in self._regression.systems(scaled, observed):
            upper = np.linalg.cholesky(gram).transpose(0, 2, 1)
            z = np.linalg.solve(gram, right) + np.linalg.solve(upper, factors[part][:, :, None])
            drawn[part] = self._means(z[:, :, 0]) + np.sqrt(self.noise) * noise[part]
        return np.where(observed, X, drawn)

    def _means(self, z: Array) -> Array:
        """Return the rows of factors z, n x r -> n x v, each by a product of its own.

        A product of all rows would round a row differently in batches of different sizes.
        """
        return self.mean + (z[:, None, :] @ self.loadings)[:, 0]


GaussianModel: TypeAlias = Mixture | FactorAnalyzer
"""Models with a conditional distribution of the missing entries of a row."""
