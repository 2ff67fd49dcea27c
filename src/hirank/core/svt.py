"""Singular value thresholding, the step of all methods with a nuclear norm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hirank._typing import Array

MAX_EXACT_SIDE = 300
"""Shorter side of a table up to which all singular values are computed."""
MAX_DECOMPOSED = 100_000
"""Entries of such a table up to which it is decomposed itself, and not its Gram matrix: that is a
tenth of the work for thousands of rows, and exact to 1e-8 only."""
SUBSPACE_STEPS, EXTRA_DIRECTIONS = 5, 8
"""Of subspace iteration. The values found are too small by less than a percent."""


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
    if min(X.shape) > MAX_EXACT_SIDE:
        return float(leading_singular(X, 1)[1][0])
    return float(np.sqrt(max(float(_gram_eigh(X)[0][-1]), 0.0)))


def leading_singular(X: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the k leading singular vectors and values of X, n x k, k and k x m.

    Of large tables they are approximate, from subspace iteration: a full decomposition is cubic in
    the shorter side.
    """
    if X.size > MAX_DECOMPOSED and min(X.shape) <= MAX_EXACT_SIDE:
        return _leading_by_gram(X, k)
    if min(X.shape) <= MAX_EXACT_SIDE or 4 * k > min(X.shape):
        P, s, Qt = np.linalg.svd(X, full_matrices=False)
        return P[:, :k], s[:k], Qt[:k]
    # A fixed start, so that the same table has the same result.
    Q = np.random.default_rng(0).standard_normal((X.shape[1], k + EXTRA_DIRECTIONS))
    for _ in range(SUBSPACE_STEPS):
        Q = np.linalg.qr(X @ Q)[0]
        Q = np.linalg.qr(X.T @ Q)[0]
    P, s, Rt = np.linalg.svd(X @ Q, full_matrices=False)
    return P[:, :k], s[:k], Rt[:k] @ Q.T


def _leading_by_gram(X: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the same from a Gram matrix: values below 1e-8 times the largest are lost."""
    n, m = X.shape
    squares, vectors = _gram_eigh(X)
    s, vectors = np.sqrt(np.maximum(squares[::-1][:k], 0)), vectors[:, ::-1][:, :k]
    across = (X @ vectors if m <= n else X.T @ vectors) / np.maximum(s, np.finfo(s.dtype).tiny)
    return (across, s, vectors.T) if m <= n else (vectors, s, across.T)


def _gram_eigh(X: Array) -> tuple[Array, Array]:
    """Return eigenvalues, rising, and eigenvectors of the smaller Gram matrix of X."""
    n, m = X.shape
    gram = X.T @ X if m <= n else X @ X.T
    return np.linalg.eigh(gram)
