"""Endless streams of samples on manifolds, without change or with an abrupt or gradual one.

A stream that changes goes from one set of manifolds, P, to another, Q. The share of the second
grows from 0 to 1 between two samples, and with angle = share * pi / 2

    x = z(s) (cos(angle) P + sin(angle) Q),

so that the entries of the matrix are N(0, 1) throughout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hirank._checks import check_counts, count
from hirank._typing import Array, IntArray
from hirank.datasets.latent import Features, Monomials, Seed, Waves
from hirank.exceptions import ParameterError

Change = tuple[int, int]


@dataclass(eq=False)
class ManifoldStream:
    """An endless stream of samples, made by `polynomial_stream` or `smooth_stream`.

    The samples do not depend on the sizes of the batches in which they are taken, up to rounding.

    Parameters
    ----------
    features : features of the latent variables
    n_features : int
    manifolds : int
        A sample is from any of them with equal probability.
    change : (int, int) or None
        Samples at which a change begins and is complete; for an abrupt change, twice the same.
    random_state : int, NumPy Generator or None

    Attributes
    ----------
    n_taken : int
        The number of samples taken so far.

    Examples
    --------
    >>> from hirank.datasets import polynomial_stream
    >>> stream = polynomial_stream(8, latent=2, change=(100, 100), random_state=0)
    >>> before, after = stream.take(100), stream.take(50)
    >>> before.shape, after.shape, stream.n_taken
    ((100, 8), (50, 8), 150)
    """

    features: Features
    n_features: int
    manifolds: int
    change: Change | None
    random_state: Seed

    def __post_init__(self) -> None:
        check_counts(n_features=self.n_features, manifolds=self.manifolds)
        _check_change(self.change)
        self.n_taken = 0
        self._rng = np.random.default_rng(self.random_state)
        shape = 1 + (self.change is not None), self.manifolds, self.features.size, self.n_features
        self._P = self._rng.standard_normal(shape)

    def take(self, n_samples: int, *, return_labels: bool = False) -> Any:
        """Return the next samples, n_samples x n_features, and on request their manifolds."""
        check_counts(n_samples=n_samples)
        latent, union = self.features.latent, self.manifolds > 1
        # One more number per sample selects the manifold, so that batches of any size agree.
        draws = self._rng.random((n_samples, latent + union))
        labels = np.zeros(n_samples, dtype=np.intp)
        if union:
            labels = (draws[:, latent] * self.manifolds).astype(np.intp)
            labels = np.minimum(labels, self.manifolds - 1)  # the product may round up
        z = self.features(draws[:, :latent])
        X = np.empty((n_samples, self._P.shape[-1]))
        for label in range(self.manifolds):
            rows = labels == label
            X[rows] = self._image(z[rows], label, self.n_taken + np.flatnonzero(rows))
        self.n_taken += n_samples
        return (X, labels) if return_labels else X

    def batches(self, n_samples: int, size: int = 50) -> Iterator[Array]:
        """Yield the next `n_samples` samples in batches of `size`; the last may be smaller."""
        check_counts(n_samples=n_samples, size=size)
        return (self.take(min(size, n_samples - low)) for low in range(0, n_samples, size))

    def _image(self, z: Array, label: int, index: IntArray) -> Array:
        """Return z P, with the matrix P at the time of each sample."""
        if self.change is None:
            return z @ self._P[0, label]
        begin, end = self.change
        share = np.clip((index - begin) / (end - begin), 0, 1) if end > begin else index >= begin
        angle = share[:, None] * np.pi / 2
        return np.cos(angle) * (z @ self._P[0, label]) + np.sin(angle) * (z @ self._P[1, label])


def polynomial_stream(
    n_features: int = 30,
    *,
    latent: int = 3,
    degree: int = 3,
    manifolds: int = 1,
    change: Change | None = None,
    random_state: Seed = None,
) -> ManifoldStream:
    """Return a stream of samples on polynomial manifolds, as of `polynomial_manifolds`.

    Parameters
    ----------
    n_features : int, default=30
    latent, degree : int, default=3
        Number of latent variables and degree of the polynomials.
    manifolds : int, default=1
        A sample is from any of them with equal probability.
    change : (begin, end) or None, default=None
        The manifolds change into others from sample `begin` to sample `end`: (2000, 2000) is an
        abrupt change, (1000, 3000) a gradual one.
    random_state : int, NumPy Generator or None

    Returns
    -------
    stream : ManifoldStream
        `stream.take(n)` returns the next n samples.

    Examples
    --------
    >>> from hirank.datasets import polynomial_stream
    >>> stream = polynomial_stream(12, manifolds=3, change=(400, 600), random_state=0)
    >>> sum(len(batch) for batch in stream.batches(1000, size=64))
    1000
    """
    monomials = Monomials.make(latent, degree)
    return ManifoldStream(monomials, n_features, manifolds, change, random_state)


def smooth_stream(
    n_features: int = 30,
    *,
    latent: int = 3,
    frequency: float = 2.0,
    terms: int = 100,
    manifolds: int = 1,
    change: Change | None = None,
    random_state: Seed = None,
) -> ManifoldStream:
    """Return a stream of samples on smooth manifolds, as of `smooth_manifolds`.

    Parameters
    ----------
    n_features : int, default=30
    latent : int, default=3
        Number of latent variables.
    frequency : float, default=2.0
        How curved the manifolds are.
    terms : int, default=100
        Number of waves in the sum.
    manifolds : int, default=1
        A sample is from any of them with equal probability.
    change : (begin, end) or None, default=None
        As in `polynomial_stream`.
    random_state : int, NumPy Generator or None

    Returns
    -------
    stream : ManifoldStream
        `stream.take(n)` returns the next n samples.

    Examples
    --------
    >>> from hirank.datasets import smooth_stream
    >>> X, labels = smooth_stream(5, manifolds=2, random_state=0).take(3, return_labels=True)
    >>> X.shape, labels.shape
    ((3, 5), (3,))
    """
    rng = np.random.default_rng(random_state)
    waves = Waves.draw(latent, terms, frequency, rng)
    return ManifoldStream(waves, n_features, manifolds, change, rng)


def _check_change(change: Change | None) -> None:
    if change is None:
        return
    if not isinstance(change, tuple) or len(change) != 2:
        raise ParameterError(
            "change", f"must be (begin, end), two numbers of samples, or None; got {change!r}."
        )
    count(0)("The beginning of change", change[0])
    count(int(change[0]))("The end of change", change[1])
