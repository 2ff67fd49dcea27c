"""Rows completed from a linear subspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape

CHUNK = 4_000_000
"""Numbers in the largest intermediate array."""


@dataclass(frozen=True)
class Subspace:
    """x ~ c B with codes c by ridge regression on the observed entries of x.

    If there is a constant, every x has a further entry of this value.
    """

    basis: Annotated[Array, Shape("r m")]  # B; if there is a constant, with one more column for it
    ridge: float
    constant: float | None = None

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.basis.shape[1] - (self.constant is not None)

    @property
    def work(self) -> float:
        """The multiplications of a row."""
        r, m = map(float, self.basis.shape)
        return r * r * m

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        r, m = self.basis.shape
        if self.width < 0 or not 0 < r <= max(1, m) or self.ridge < 0:
            raise ValueError(
                f"there must be a basis of 1 to {m} rows, and a ridge that is not negative"
            )

    def complete(self, X: Array, observed: BoolArray) -> Array:
        n, m = X.shape
        if self.constant is None:
            codes = self.codes(X, observed)
        else:
            X1 = np.column_stack([X, np.full(n, self.constant)])
            codes = self.codes(X1, np.column_stack([observed, np.ones(n, bool)]))
        return np.where(observed, X, codes @ self.basis[:, :m])

    def codes(self, X: Array, observed: BoolArray) -> Array:
        """Return codes of rows, n x m -> n x r; no row affects the result of another."""
        codes = np.zeros((len(X), len(self.basis)))
        for part, gram, right in self.systems(X, observed):
            codes[part] = np.linalg.solve(gram, right)[:, :, 0]
        return codes

    def systems(self, X: Array, observed: BoolArray) -> Iterator[tuple[slice, Array, Array]]:
        """Yield rows p of X, n x m, and the systems for their codes, p x r x r and p x r x 1."""
        B, (r, m) = self.basis, self.basis.shape
        size = max(1, CHUNK // max(1, r * m))
        for start in range(0, len(X), size):
            part = slice(start, start + size)
            seen = np.where(observed[part, None, :], B, 0)
            gram = seen @ B.T + self.ridge * np.eye(r)
            yield part, gram, seen @ np.where(observed[part], X[part], 0)[:, :, None]


def ridge_codes(X: Array, observed: BoolArray, basis: Array, ridge: float) -> Array:
    """Return the same codes by large matrix products, n x r; X must be 0 where not observed."""
    r, m = basis.shape
    outer = (basis[:, None, :] * basis[None, :, :]).reshape(r * r, m)
    codes = np.zeros((len(X), r))
    size = max(1, CHUNK // max(1, r * r))
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        gram = (observed[part].astype(np.float64) @ outer.T).reshape(-1, r, r)
        right = X[part] @ basis.T
        codes[part] = np.linalg.solve(gram + ridge * np.eye(r), right[:, :, None])[:, :, 0]
    return codes


def filled_codes(X: Array, basis: Array, ridge: float) -> Array:
    """Return ridge codes of complete rows, n x m -> n x r."""
    gram = basis @ basis.T + ridge * np.eye(len(basis))
    return np.linalg.solve(gram, basis @ X.T).T


def make_basis(X: Array) -> Array:
    """Return right singular vectors of X, n x m -> r x m, each times the root of its value.

    Directions of less than a millionth of the largest are taken for rounding.
    """
    _, s, Qt = np.linalg.svd(X, full_matrices=False)
    keep = s > 1e-6 * s[0] if s[0] > 0 else np.arange(len(s)) < 1
    return np.sqrt(s[keep, None]) * Qt[keep]


def check_rank(rank: int, shape: tuple[int, ...]) -> int:
    """Return the rank; raise ValueError if a table of this shape, n x m, does not allow it."""
    most = min(shape)
    if rank > most:
        raise ValueError(
            f"rank={rank} is more than the table allows: it has {shape[0]} samples with a value "
            f"(n_samples={shape[0]}) and {shape[1]} features that vary. Use at most {most}, or "
            "rank='auto' where there is one."
        )
    return rank
