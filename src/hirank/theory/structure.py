"""Latent dimension, rank, and rank in feature space of an imputed table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from hirank._typing import Array
from hirank.kernels import Poly

N_NEIGHBORS = 12
LOCAL_SHARE = 0.95
"""Share of the variance around a sample that its tangent directions must explain."""
KERNEL_DEGREE = 2


@dataclass(frozen=True)
class Structure:
    """Estimates, up to the error of the imputed values."""

    latent_dimension: int
    linear_rank: int
    feature_rank: int


def measure_structure(completed: Array, error: float, rng: np.random.Generator) -> Structure:
    """Estimate the structure of a standardized, imputed table, n x m.

    `error` is the root mean square error of its entries, in standard deviations. Parts of the
    spectrum that are smaller cannot be distinguished from noise.
    """
    X = completed - completed.mean(axis=0)
    rank = max(1, _count_rank(np.linalg.svd(X, compute_uv=False) ** 2, error**2 * X.size))
    kernel = Poly(KERNEL_DEGREE, 1.0)
    wrong = X + error * rng.standard_normal(X.shape)
    across = (np.einsum("ij,ij->i", X, wrong) + 1) ** KERNEL_DEGREE
    # |phi(x + e) - phi(x)|^2, summed: the size of the errors in feature space
    noise = float(np.sum(kernel.diag(wrong) + kernel.diag(X) - 2 * across))
    spectrum = np.linalg.eigvalsh(kernel.matrix(X, X))[::-1]
    feature_rank = max(rank, _count_rank(np.maximum(spectrum, 0), noise))
    # A surface has at least as many dimensions as its tangents, and at most those that it spans.
    return Structure(min(local_dimension(X, error), rank), rank, feature_rank)


def local_dimension(X: Array, error: float = 0.0) -> int:
    """Return the dimension of a table, n x m, around a sample: the median over samples.

    A sample and its nearest neighbors span mostly the tangent space there. The principal directions
    that explain 95 % of their variance are counted, unless their variance is less than that of
    noise of size `error` in its largest direction, error^2 (1 + sqrt(m / neighbors))^2. As only
    neighbors are used, the samples may lie on one curved surface or on several.

    With 12 neighbors, dimensions above 8 or so are underestimated.
    """
    count = min(N_NEIGHBORS, len(X) - 1)
    nearest = NearestNeighbors(n_neighbors=count + 1).fit(X)
    patches = X[nearest.kneighbors(X, return_distance=False)]
    patches = patches - patches.mean(axis=1, keepdims=True)
    variances = np.linalg.svd(patches, compute_uv=False) ** 2 / count
    total = variances.sum(axis=1, keepdims=True)
    enough = (np.cumsum(variances, axis=1) < LOCAL_SHARE * total).sum(axis=1) + 1
    noise = error**2 * (1 + np.sqrt(X.shape[1] / count)) ** 2
    return max(1, int(np.median(np.minimum(enough, (variances > noise).sum(axis=1)))))


def _count_rank(spectrum: Array, noise: float) -> int:
    """Return how many leading values of a falling spectrum leave no more than `noise`."""
    left = np.cumsum(spectrum[::-1])[::-1]
    resolution = len(spectrum) * np.finfo(np.float64).eps * left[0]
    return int(np.sum(left > max(noise, resolution)))
