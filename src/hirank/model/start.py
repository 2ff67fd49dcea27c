"""Starting points: a linear completion of the table, and rows of it as the dictionary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array

THRESHOLDS = 12
"""Steps of the soft-impute path."""


def soft_impute(X: Array, observed: NDArray[np.bool_], *, sweeps: int = 10) -> Array:
    """Linear completion of X, n x m, by a path of singular value thresholds.

    Entries of X where `observed` is False are ignored. The threshold falls from just below the
    largest singular value of the zero-filled table to a thousandth of it; each of its steps
    starts from the last. The singular vectors come from the m x m (or n x n, if smaller) Gram
    matrix, so the cost is linear in the longer side.
    """
    filled = np.where(observed, X, 0).astype(X.dtype, copy=False)
    if observed.all() or not observed.any():
        return filled
    largest = np.sqrt(max(float(_gram_eigh(filled)[0][-1]), 0.0))
    missing = ~observed
    for threshold in largest * np.geomspace(0.5, 1e-3, THRESHOLDS):
        for _ in range(sweeps):
            low_rank = _shrunk(filled, threshold)
            change = low_rank[missing] - filled[missing]
            filled[missing] += change
            if np.linalg.norm(change) <= 1e-3 * np.linalg.norm(filled[missing]):
                break
    return filled


def _gram_eigh(X: Array) -> tuple[Array, Array]:
    n, m = X.shape
    gram = X.T @ X if m <= n else X @ X.T
    return np.linalg.eigh(gram)


def _shrunk(X: Array, threshold: float) -> Array:
    """X with its singular values reduced by `threshold`."""
    n, m = X.shape
    squares, vectors = _gram_eigh(X)
    values = np.sqrt(np.maximum(squares, 0))
    keep = values > threshold
    vectors = vectors[:, keep]
    factors = (1 - threshold / values[keep]).astype(X.dtype, copy=False)
    if m <= n:
        return (X @ vectors) * factors @ vectors.T
    return (vectors * factors) @ (vectors.T @ X)


def most_observed(
    observed: NDArray[np.bool_], r: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The r rows with the most observed entries, ties at random, of n x m."""
    return np.sort(np.argsort(-observed.sum(axis=1) - rng.random(len(observed)))[:r])
