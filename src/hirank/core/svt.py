"""Singular value thresholding, the step of all methods with a nuclear norm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hirank._typing import Array


class Shrunk(NamedTuple):
    """A table with smaller singular values."""

    X: Array  # n x m
    nuclear: float  # sum of its singular values


def shrink(X: Array, threshold: float) -> Shrunk:
    """Reduce the singular values of X, n x m, by `threshold`; those below it become 0.

    The singular vectors come from the m x m (or n x n, if smaller) Gram matrix, so the cost is
    linear in the longer side.
    """
    n, m = X.shape
    squares, vectors = _gram_eigh(X)
    values = np.sqrt(np.maximum(squares, 0))
    keep = values > threshold
    vectors, values = vectors[:, keep], values[keep]
    factors = (1 - threshold / values).astype(X.dtype, copy=False)
    nuclear = float(np.sum(values - threshold))
    if m <= n:
        return Shrunk((X @ vectors) * factors @ vectors.T, nuclear)
    return Shrunk((vectors * factors) @ (vectors.T @ X), nuclear)


def spectral_norm(X: Array) -> float:
    """Return the largest singular value of X, n x m."""
    return float(np.sqrt(max(float(_gram_eigh(X)[0][-1]), 0.0)))


def _gram_eigh(X: Array) -> tuple[Array, Array]:
    """Return eigenvalues, rising, and eigenvectors of the smaller Gram matrix of X."""
    n, m = X.shape
    gram = X.T @ X if m <= n else X @ X.T
    return np.linalg.eigh(gram)
