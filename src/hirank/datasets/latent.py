"""Curved functions z(s) of latent variables s; a manifold is x = z(s) P with its own matrix P."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple, TypeAlias

import numpy as np

from hirank._checks import check_counts, number
from hirank._typing import Array

Seed: TypeAlias = int | np.random.Generator | None


class Monomials(NamedTuple):
    """z(s): the monomials of degree 1 to `degree`, C(latent + degree, degree) - 1 of them."""

    latent: int
    degree: int

    @classmethod
    def make(cls, latent: int, degree: int) -> Monomials:
        """Return the monomials; raise ParameterError if the numbers cannot be used."""
        check_counts(latent=latent, degree=degree)
        return cls(latent, degree)

    @property
    def powers(self) -> list[tuple[int, ...]]:
        """The latent variables that each monomial multiplies."""
        return [
            powers
            for order in range(1, self.degree + 1)
            for powers in combinations_with_replacement(range(self.latent), order)
        ]

    @property
    def size(self) -> int:
        """The number of monomials."""
        return len(self.powers)

    def __call__(self, s: Array) -> Array:
        return np.stack([s[:, powers].prod(axis=1) for powers in self.powers], axis=1)


class Waves(NamedTuple):
    """z(s) = sqrt(2 / terms) sin(s W + b): random waves, the same for all manifolds.

    With P ~ N(0, 1) a feature of z P has variance about 1 and covariance
    exp(-frequency^2 |s - t|^2 / 2) between latent points s and t, in the limit of many terms.
    """

    W: Array  # latent x terms
    b: Array  # terms

    @classmethod
    def draw(cls, latent: int, terms: int, frequency: float, rng: np.random.Generator) -> Waves:
        """Draw W ~ N(0, frequency^2) and b ~ U(0, 2 pi)."""
        check_counts(latent=latent, terms=terms)
        number(above=0)("frequency", frequency)
        W = frequency * rng.standard_normal((latent, terms))
        return cls(W, 2 * np.pi * rng.random(terms))

    @property
    def latent(self) -> int:
        """The number of latent variables."""
        return len(self.W)

    @property
    def size(self) -> int:
        """The number of waves."""
        return len(self.b)

    def __call__(self, s: Array) -> Array:
        return np.sqrt(2 / self.size) * np.sin(s @ self.W + self.b)


Features: TypeAlias = Monomials | Waves
