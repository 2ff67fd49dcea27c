"""From codes to clusters: a graph of samples that use each other, and its spectral clustering."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import spectral_clustering

from hirank._typing import Array, IntArray

N_INIT = 20  # starts of k-means, as in the authors' code
TIES = 1e-3  # weight of the ties between samples that no code connects, as a share of all weight


def affinity_matrix(coefficients: Array, keep: float = 0.7) -> Array:
    """Return how strongly samples use each other: |C| + |C|', rows of C scaled to a maximum of 1.

    Parameters
    ----------
    coefficients : array, n x n
        Row i has the code of sample i.
    keep : float, default=0.7
        Of each row only the largest coefficients are used: as few as have this share of the sum
        of its absolute values. 1 uses all.

    Returns
    -------
    affinity : array, n x n
        Symmetric, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.cluster import affinity_matrix
    >>> C = np.array([[0.0, 0.5, 0.1], [2.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    >>> affinity_matrix(C)
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    size = np.abs(coefficients)
    if keep < 1:
        order = np.argsort(-size, axis=1, kind="stable")
        falling = np.take_along_axis(size, order, axis=1)
        before = np.cumsum(falling, axis=1) - falling
        falling[before >= keep * falling.sum(axis=1, keepdims=True)] = 0
        np.put_along_axis(size, order, falling, axis=1)
    largest = size.max(axis=1, keepdims=True)
    size /= np.where(largest > 0, largest, 1)
    return size + size.T


def cut(
    affinity: Array, points: Array, n_clusters: int, random_state: np.random.RandomState
) -> IntArray:
    """Return labels of n samples by normalized spectral clustering.

    A graph in several pieces has no unique embedding if there are more pieces than clusters.
    Weak ties by the angle between `points`, n x D, decide then which pieces belong together.
    """
    n = len(affinity)
    if n_clusters == 1:
        return np.zeros(n, np.intp)
    if n_clusters == n:
        return np.arange(n)
    if connected_components(affinity, directed=False, return_labels=False) > 1:
        affinity = affinity + _ties(points) * (TIES * affinity.mean())
    return spectral_clustering(
        affinity,
        n_clusters=n_clusters,
        n_init=N_INIT,
        random_state=random_state,
        assign_labels="kmeans",
    ).astype(np.intp)


def _ties(points: Array) -> Array:
    """Return |cos| of the angles between samples, with a mean of 1; zeros are tied to all."""
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    directions = points / np.where(norms > 0, norms, 1)
    ties = np.abs(directions @ directions.T) + 0.01
    return ties / ties.mean()
