"""Synthetic tables: curved functions of a few latent variables, unions of them, and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hirank._checks import check_counts, number
from hirank._typing import Array, IntArray
from hirank.datasets.latent import Features, Monomials, Seed, Waves
from hirank.datasets.tables import check_table, measure_columns
from hirank.exceptions import ParameterError


def polynomial_manifolds(
    n_samples: int,
    n_features: int = 30,
    *,
    latent: int = 3,
    degree: int = 3,
    manifolds: int = 1,
    shuffle: bool = False,
    return_labels: bool = False,
    random_state: Seed = None,
) -> Any:
    """Sample x = P z(s), where z are the monomials of s ~ U(0, 1) of degree 1 to `degree`.

    There is no constant monomial, as in the paper's experiments: the rank of the table is
    min(n, m, u (C(d + p, p) - 1)) for d latent variables, degree p and u manifolds.

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
        Put the samples of all manifolds in random order.
    return_labels : bool, default=False
        Return the manifold of each sample as well.
    random_state : int, NumPy Generator or None

    Returns
    -------
    X : array, (manifolds * n_samples) x n_features
    labels : int array, manifolds * n_samples
        From 0 to manifolds - 1; only with return_labels=True.

    Examples
    --------
    The paper's three tables: one curved surface, three of them, ten linear subspaces.

    >>> import numpy as np
    >>> from hirank.datasets import polynomial_manifolds
    >>> for degree, manifolds in (3, 1), (3, 3), (1, 10):
    ...     X = polynomial_manifolds(100, degree=degree, manifolds=manifolds, random_state=0)
    ...     print(X.shape, np.linalg.matrix_rank(X))
    (100, 30) 19
    (300, 30) 30
    (1000, 30) 30
    """
    rng, monomials = np.random.default_rng(random_state), Monomials.make(latent, degree)
    X, labels = _sample(monomials, (manifolds, n_samples, n_features), rng, shuffle=shuffle)
    return (X, labels) if return_labels else X


def smooth_manifolds(
    n_samples: int,
    n_features: int = 30,
    *,
    latent: int = 3,
    frequency: float = 2.0,
    terms: int = 100,
    manifolds: int = 1,
    shuffle: bool = False,
    return_labels: bool = False,
    random_state: Seed = None,
) -> Any:
    """Sample x = P z(s) with z(s) = sqrt(2 / terms) sin(W s + b), which is not polynomial.

    The latent variables are s ~ U(0, 1); W ~ N(0, frequency^2) and b ~ U(0, 2 pi) are the same for
    all manifolds, P ~ N(0, 1) differs. A feature is then close to a draw from a Gaussian
    process with an RBF kernel of width 1 / frequency and variance 1.

    Parameters
    ----------
    n_samples : int
        Samples on each manifold.
    n_features : int, default=30
    latent : int, default=3
        Number of latent variables.
    frequency : float, default=2.0
        How curved the manifolds are: near 0 almost flat, at 10 several waves long.
    terms : int, default=100
        Number of waves in the sum.
    manifolds : int, default=1
    shuffle : bool, default=False
        Put the samples of all manifolds in random order.
    return_labels : bool, default=False
        Return the manifold of each sample as well.
    random_state : int, NumPy Generator or None

    Returns
    -------
    X : array, (manifolds * n_samples) x n_features
    labels : int array, manifolds * n_samples
        From 0 to manifolds - 1; only with return_labels=True.

    Examples
    --------
    >>> from hirank.datasets import smooth_manifolds
    >>> X, labels = smooth_manifolds(50, 8, manifolds=2, return_labels=True, random_state=0)
    >>> X.shape, labels[[0, -1]].tolist()
    ((100, 8), [0, 1])
    """
    rng = np.random.default_rng(random_state)
    waves = Waves.draw(latent, terms, frequency, rng)
    X, labels = _sample(waves, (manifolds, n_samples, n_features), rng, shuffle=shuffle)
    return (X, labels) if return_labels else X


def twisted_cubic(n_samples: int = 100, *, random_state: Seed = None) -> Array:
    """Sample (s, s^2, s^3) with s ~ U(-1, 1), a curve whose table has full rank 3.

    The first example of the paper's supplement, which removes one entry of each sample.

    Parameters
    ----------
    n_samples : int, default=100
    random_state : int, NumPy Generator or None

    Returns
    -------
    X : array, n_samples x 3

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.datasets import missing_per_sample, twisted_cubic
    >>> X = twisted_cubic(random_state=0)
    >>> X.shape, int(np.linalg.matrix_rank(X))
    ((100, 3), 3)
    >>> observed = missing_per_sample(X.shape, 1, random_state=0)
    """
    check_counts(n_samples=n_samples)
    s = np.random.default_rng(random_state).uniform(-1, 1, n_samples)
    return np.stack([s, s**2, s**3], axis=1)


def add_noise(
    X: ArrayLike, ratio: float, *, scale: ArrayLike | None = None, random_state: Seed = None
) -> Array:
    """Add Gaussian noise whose standard deviation is `ratio` times that of each feature.

    Parameters
    ----------
    X : n x m
        NaN stays NaN. A constant feature gets no noise.
    ratio : float
        0.1 gives noise with a tenth of the standard deviation of the feature.
    scale : m numbers, optional
        Standard deviations to use instead of those of X, such as those of the first samples of a
        stream, so that the noise is the same in every batch.
    random_state : int, NumPy Generator or None

    Returns
    -------
    noisy : array, n x m
        A new array.

    Examples
    --------
    >>> from hirank.datasets import add_noise, polynomial_manifolds
    >>> X = polynomial_manifolds(1000, random_state=0)
    >>> noise = add_noise(X, 0.1, random_state=1) - X
    >>> round(float(noise[:, 0].std() / X[:, 0].std()), 2)
    0.1
    """
    X = check_table(X)
    number(least=0)("ratio", ratio)
    if scale is None:
        _, spread = measure_columns(X)
    else:
        spread = np.asarray(scale, dtype=np.float64)
        if spread.shape != X.shape[1:] or not (np.isfinite(spread) & (spread >= 0)).all():
            raise ParameterError("scale", f"must be {X.shape[1]} numbers of at least 0.")
    rng = np.random.default_rng(random_state)
    return X + ratio * spread * rng.standard_normal(X.shape)


def _sample(
    z: Features, shape: tuple[int, int, int], rng: np.random.Generator, *, shuffle: bool
) -> tuple[Array, IntArray]:
    """Return samples on each manifold, and the manifold of each."""
    manifolds, n_samples, n_features = shape
    check_counts(n_samples=n_samples, n_features=n_features, manifolds=manifolds)
    parts = []
    for _ in range(manifolds):
        P = rng.standard_normal((n_features, z.size))
        parts.append(z(rng.random((n_samples, z.latent))) @ P.T)
    X, labels = np.concatenate(parts), np.repeat(np.arange(manifolds), n_samples)
    if shuffle:
        order = rng.permutation(len(X))
        X, labels = X[order], labels[order]
    return X, labels
