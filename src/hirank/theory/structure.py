"""How rich a completed table is: latent dimension, rank, and rank in feature space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from hirank._typing import Array
from hirank.kernels import Poly

NEIGHBORS = 12
LOCAL_SHARE = 0.95
"""Part of the variance around a sample that its tangent directions must explain."""
KERNEL_DEGREE = 2


@dataclass(frozen=True)
class Structure:
    """Estimates, each to the accuracy with which the table could be completed."""

    latent_dimension: int
    linear_rank: int
    feature_rank: int


def measure(completed: Array, error: float, rng: np.random.Generator) -> Structure:
    """Estimate the structure of a standardized, completed table, n x m.

    `error` is the root mean square of what is wrong with its entries, in standard deviations. What
    is smaller than that in the spectrum is not told from noise.
    """
    X = completed - completed.mean(axis=0)
    rank = max(1, _rank(np.linalg.svd(X, compute_uv=False) ** 2, error**2 * X.size))
    kernel = Poly(KERNEL_DEGREE, 1.0)
    wrong = X + error * rng.standard_normal(X.shape)
    across = (np.einsum("ij,ij->i", X, wrong) + 1) ** KERNEL_DEGREE
    # |phi(x + e) - phi(x)|^2, summed: what the errors amount to in feature space
    noise = float(np.sum(kernel.diag(wrong) + kernel.diag(X) - 2 * across))
    spectrum = np.linalg.eigvalsh(kernel.matrix(X, X))[::-1]
    # A surface has at least as many dimensions as its tangents, and at most those that it spans.
    return Structure(
        min(local_dimension(X, error), rank), rank, max(rank, _rank(np.maximum(spectrum, 0), noise))
    )


def local_dimension(X: Array, error: float = 0.0) -> int:
    """Directions that a table, n x m, extends in, as seen from a sample: the median over samples.

    Each sample and its nearest neighbors span mostly the tangent space there: as many principal
    directions count as explain 95 % of their variance. Those count only whose variance is more than
    noise of size `error` would show in its largest direction, error^2 (1 + sqrt(m / neighbors))^2.
    Looking at neighbors only, it does not matter if the samples lie on one curved surface or on
    several.

    With 12 neighbors, more than about 8 dimensions can't be told apart.
    """
    count = min(NEIGHBORS, len(X) - 1)
    nearest = NearestNeighbors(n_neighbors=count + 1).fit(X)
    patches = X[nearest.kneighbors(X, return_distance=False)]
    patches = patches - patches.mean(axis=1, keepdims=True)
    variances = np.linalg.svd(patches, compute_uv=False) ** 2 / count
    total = variances.sum(axis=1, keepdims=True)
    enough = (np.cumsum(variances, axis=1) < LOCAL_SHARE * total).sum(axis=1) + 1
    noise = error**2 * (1 + np.sqrt(X.shape[1] / count)) ** 2
    return max(1, int(np.median(np.minimum(enough, (variances > noise).sum(axis=1)))))


def _rank(spectrum: Array, noise: float) -> int:
    """Leading values to keep so that no more than `noise` is left, of a falling spectrum."""
    left = np.cumsum(spectrum[::-1])[::-1]
    resolution = len(spectrum) * np.finfo(np.float64).eps * left[0]
    return int(np.sum(left > max(noise, resolution)))
