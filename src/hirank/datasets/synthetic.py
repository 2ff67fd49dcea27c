"""The paper's synthetic data: polynomial images of a few latent variables, alone or in unions."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray


def polynomial_manifolds(
    n_samples: int,
    n_features: int = 30,
    *,
    latent: int = 3,
    degree: int = 3,
    manifolds: int = 1,
    shuffle: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.float64]:
    """Samples x = P z(s): z holds the monomials of s ~ U(0, 1) of degree 1 to `degree`.

    Parameters
    ----------
    n_samples : int
        Samples on each manifold.
    n_features : int, default=30
    latent, degree : int, default=3
        Number of latent variables and degree of the polynomials. Degree 1 gives linear subspaces.
    manifolds : int, default=1
        Each has a matrix P ~ N(0, 1) of its own.
    shuffle : bool, default=False
        Mix the samples of the manifolds, as a stream would bring them.
    random_state : int, numpy Generator or None

    Returns
    -------
    X : array, (manifolds * n_samples) x n_features

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.datasets import polynomial_manifolds
    >>> X = polynomial_manifolds(100, manifolds=3, random_state=0)
    >>> X.shape, int(np.linalg.matrix_rank(X))
    ((300, 30), 30)
    """
    rng = np.random.default_rng(random_state)
    monomials = [
        powers
        for order in range(1, degree + 1)
        for powers in combinations_with_replacement(range(latent), order)
    ]
    parts = []
    for _ in range(manifolds):
        P = rng.standard_normal((n_features, len(monomials)))
        s = rng.random((n_samples, latent))
        z = np.stack([s[:, powers].prod(axis=1) for powers in monomials], axis=1)
        parts.append(z @ P.T)
    X = np.concatenate(parts)
    return rng.permutation(X) if shuffle else X
