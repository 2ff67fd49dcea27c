"""Features of latent variables. Every manifold here is x = z(s) P: z curved, P its own matrix."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from hirank._typing import Array


class Monomials(NamedTuple):
    """z(s): the monomials of degree 1 to `degree`, C(latent + degree, degree) - 1 of them."""

    latent: int
    degree: int

    @property
    def powers(self) -> list[tuple[int, ...]]:
        """Which latent variables each monomial multiplies."""
        return [
            powers
            for order in range(1, self.degree + 1)
            for powers in combinations_with_replacement(range(self.latent), order)
        ]

    @property
    def size(self) -> int:
        return len(self.powers)

    def __call__(self, s: Array) -> Array:
        return np.stack([s[:, powers].prod(axis=1) for powers in self.powers], axis=1)


class Waves(NamedTuple):
    """z(s) = sqrt(2 / terms) sin(s W + b): random waves, the same for all manifolds.

    With P ~ N(0, 1) a feature of z P has variance about 1 and covariance
    exp(-frequency^2 |s - t|^2 / 2) between latent points s and t, as the terms become many.
    """

    W: Array  # latent x terms
    b: Array  # terms

    @classmethod
    def draw(cls, latent: int, terms: int, frequency: float, rng: np.random.Generator) -> Waves:
        """W ~ N(0, frequency^2), b ~ U(0, 2 pi)."""
        W = frequency * rng.standard_normal((latent, terms))
        return cls(W, 2 * np.pi * rng.random(terms))

    @property
    def latent(self) -> int:
        return len(self.W)

    @property
    def size(self) -> int:
        return len(self.b)

    def __call__(self, s: Array) -> Array:
        return np.sqrt(2 / self.size) * np.sin(s @ self.W + self.b)


Features = Monomials | Waves
