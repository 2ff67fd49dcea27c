"""The radial basis function kernel and the paper's bandwidth rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hirank._typing import Array
from hirank.kernels.base import BoundKernel, Kernel

MAX_ROWS = 500
"""Rows to measure the mean distance on, if there are more."""


@dataclass(frozen=True)
class RBF(Kernel):
    """k(x, y) = exp(-|x - y|^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float, optional
        Length scale. None takes a multiple of the mean pairwise distance of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import RBF
    >>> RBF(sigma=1.0).matrix(np.zeros((1, 2)), np.ones((1, 2))).round(4)
    array([[0.3679]])
    """

    sigma: float | None = None
    fixed_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.sigma is not None and not 0 < self.sigma < np.inf:
            raise ValueError(f"sigma must be a positive number or None; got {self.sigma!r}.")

    def bind(self, D: Array) -> BoundRBF:
        return BoundRBF(D, self._inverse_square())

    def diag(self, X: Array) -> Array:
        return np.ones(X.shape[:-1], X.dtype)

    def diag_gradient(self, X: Array) -> None:
        return None

    def metric(self, X: Array) -> Array:
        n, m = X.shape
        return np.broadcast_to(self._inverse_square() * np.eye(m, dtype=X.dtype), (n, m, m))

    def metric_parts(self, X: Array) -> tuple[Array, Array]:
        own = np.full(len(X), self._inverse_square(), X.dtype)
        return own, np.zeros_like(own)

    def dictionary_curvature(self, P: Array, Q: Array) -> Array:
        H = 2 * Q
        H[np.diag_indices_from(H)] -= P.sum(axis=0) + 2 * Q.sum(axis=1)
        return H * self._inverse_square()

    def sample_curvature(self, P: Array, X: Array) -> Array:
        return -P.sum(axis=-1) * self._inverse_square()

    def resolve(self, X: Array, bandwidth: float) -> RBF:
        if self.sigma is not None:
            return self
        # Rows that are all equal have no distance, and any length scale fits them.
        return RBF(bandwidth * (mean_distance(X) or 1.0))

    def _inverse_square(self) -> float:
        if self.sigma is None:
            raise ValueError("The RBF kernel has no sigma. Call resolve(X, bandwidth) first.")
        return self.sigma**-2


class BoundRBF(BoundKernel):
    """RBF against fixed points D, r x m. Its slope is K itself."""

    def __init__(self, D: Array, inverse_square: float) -> None:
        r, m = D.shape
        self.inverse_square = inverse_square
        # Distances do not depend on the origin, but their rounding does: it is put amid the points.
        self.center = D.mean(axis=0)
        self.points = D - self.center
        # -|x - d|^2 / (2 sigma^2) as one product: [x, -|x|^2/2, 1] . [d, 1, -|d|^2/2] / sigma^2
        self.exponent = np.empty((r, m + 2), D.dtype)
        self.exponent[:, :m] = self.points
        self.exponent[:, m] = 1
        self.exponent[:, m + 1] = -np.einsum("ij,ij->i", self.points, self.points) / 2
        self.exponent *= inverse_square
        # P [D, 1] gives P D and the row sums of P together.
        self.points_and_one = np.ones((r, m + 1), D.dtype)
        self.points_and_one[:, :m] = D
        self.points_and_one *= inverse_square

    def rows(self, X: Array, out: Array | None = None) -> tuple[Array, Array]:
        m = X.shape[-1]
        extended = np.empty((*X.shape[:-1], m + 2), X.dtype)
        x = np.subtract(X, self.center, out=extended[..., :m])
        extended[..., m] = np.einsum("...j,...j->...", x, x)
        extended[..., m] *= -0.5
        extended[..., m + 1] = 1
        K = np.matmul(extended, self.exponent.T, out=out)
        np.exp(K, out=K)
        return K, K

    def pull_rows(self, P: Array, X: Array) -> Array:
        m = X.shape[-1]
        product = P @ self.points_and_one
        gradient = product[..., m:] * X
        return np.subtract(product[..., :m], gradient, out=gradient)

    def jacobian(self, X: Array) -> Array:
        K = self.rows(X)[0] * X.dtype.type(self.inverse_square)
        return (self.points - (X - self.center)[:, None]) * K[:, :, None]

    def pull_points(self, P: Array, X: Array) -> Array:
        gradient = P.T @ X
        gradient -= P.sum(axis=0)[:, None] * (self.points + self.center)
        gradient *= self.inverse_square
        return gradient


def mean_distance(X: Array) -> float:
    """Return the mean Euclidean distance between two different rows of X, n x m.

    Of more than `MAX_ROWS` rows, so many evenly spaced ones are used. A single row gives 0.0.
    """
    n = len(X)
    if n > MAX_ROWS:
        X = X[np.linspace(0, n - 1, MAX_ROWS).astype(int)]
        n = MAX_ROWS
    if n < 2:
        return 0.0
    centered = X - X.mean(axis=0)  # keeps digits when the data are far from zero
    squares = np.einsum("ij,ij->i", centered, centered)
    squared = squares[:, None] + squares - 2 * (centered @ centered.T)
    np.fill_diagonal(squared, 0)
    return float(np.sqrt(np.maximum(squared, 0)).sum(dtype=np.float64) / (n * (n - 1)))
