"""Linear completion at many ranks and strengths of regularization, cheaply."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array

PENALTIES = (1e-3, 0.1, 1.0, 3.0, 10.0, 30.0)
"""For standardized features: from exact low rank to strong noise."""
RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25)
SWEEPS = 30
"""Most alternations for each rank; a warm start needs a few."""


def linear_completions(X: Array, seen: NDArray[np.bool_]) -> Iterator[Array]:
    """Completions U V' of standardized X, n x m, one for each penalty and rank.

    Each minimizes |X - U V'|^2 over the seen entries + penalty (|U|^2 + |V|^2) by alternating least
    squares, started from the one of the rank below. A penalty with enough columns in U acts as a
    threshold on singular values does (soft-impute); without much of it, the rank is what
    regularizes. Which of the two is better depends on the noise, so both are tried. A constant
    feature is added, because the mean of the seen entries is not quite the mean.
    """
    n, m = X.shape
    known = np.hstack([np.where(seen, X, 0.0), np.ones((n, 1))])
    weights = np.hstack([seen, np.ones((n, 1))])
    most = min(n, m + 1)
    ranks = sorted({rank for rank in RANKS if rank < most} | {min(most, RANKS[-1])})
    for penalty in PENALTIES:
        U, V = np.zeros((n, 0)), np.zeros((m + 1, 0))
        for rank in ranks:
            V = _with_more_columns(known - weights * (U @ V.T), V, rank)
            U, V = _alternate(known, weights, V, penalty)
            yield U @ V[:m].T


def _with_more_columns(residual: Array, V: Array, rank: int) -> Array:
    """V, m x k, and the leading directions of what it leaves: m x rank."""
    _, sizes, directions = np.linalg.svd(residual, full_matrices=False)
    new = rank - V.shape[1]
    return np.hstack([V, directions[:new].T * np.sqrt(sizes[:new])])


def _alternate(known: Array, weights: Array, V: Array, penalty: float) -> tuple[Array, Array]:
    last = np.inf
    for _ in range(SWEEPS):
        U = _ridge(known, weights, V, penalty)
        V = _ridge(known.T, weights.T, U, penalty)
        error = np.sum((known - weights * (U @ V.T)) ** 2)
        value = float(error + penalty * (np.sum(U**2) + np.sum(V**2)))
        if value > 0.99 * last:
            break
        last = value
    return U, V


def _ridge(known: Array, weights: Array, V: Array, penalty: float) -> Array:
    """Coefficients of each row of `known`, n x m, on the columns of V, m x k, where seen."""
    k = V.shape[1]
    products = (V[:, :, None] * V[:, None, :]).reshape(len(V), k * k)
    normal = (weights @ products).reshape(-1, k, k)
    diagonal = np.arange(k)
    # The trace keeps the system solvable where a row sees fewer entries than it has coefficients.
    normal[:, diagonal, diagonal] += (
        penalty + 1e-12 * (1 + np.trace(normal, axis1=1, axis2=2))[:, None]
    )
    return np.linalg.solve(normal, (known @ V)[:, :, None])[:, :, 0]
