"""The polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from hirank._typing import Array
from hirank.exceptions import ParameterError
from hirank.kernels.base import BoundKernel, Kernel

MAX_DEGREE = 100
"""Far more than is of use: higher powers overflow, and some solvers take a product for each."""


@dataclass(frozen=True)
class Poly(Kernel):
    """k(x, y) = (x.y + offset)^degree.

    Parameters
    ----------
    degree : int, default=2
        From 1 to 100. With degree 1 the model is a linear factorization.
    offset : float, default=1.0
        At least 0. Positive values include all degrees up to `degree`.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.kernels import Poly
    >>> Poly(degree=2, offset=1.0).matrix(np.ones((1, 2)), np.ones((1, 2)))
    array([[9.]])
    """

    degree: int = 2
    offset: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.degree, Integral) or not 1 <= self.degree <= MAX_DEGREE:
            raise ParameterError(
                "degree", f"must be an integer from 1 to {MAX_DEGREE}; got {self.degree!r}."
            )
        if not 0 <= self.offset < np.inf:
            raise ParameterError(
                "offset",
                f"must be a number of at least 0; got {self.offset!r}. With a negative one the "
                "kernel is not positive semidefinite.",
            )

    def bind(self, D: Array) -> BoundPoly:
        return BoundPoly(D, self)

    def diag(self, X: Array) -> Array:
        return self._base_diag(X) ** self.degree

    def diag_gradient(self, X: Array) -> Array:
        return self.degree * (self._base_diag(X) ** (self.degree - 1))[..., None] * X

    def metric(self, X: Array) -> Array:
        own, outer = (part[:, None, None] for part in self.metric_parts(X))
        return own * np.eye(X.shape[1], dtype=X.dtype) + outer * X[:, :, None] * X[:, None, :]

    def metric_parts(self, X: Array) -> tuple[Array, Array]:
        q, base = self.degree, self._base_diag(X)
        return q * base ** (q - 1), q * (q - 1) * base ** (q - 2) if q > 1 else 0 * base

    def dictionary_curvature(self, P: Array, Q: Array) -> Array:
        return 2 * Q

    def sample_curvature(self, P: Array, X: Array) -> Array:
        return self.degree * self._base_diag(X) ** (self.degree - 1)

    def _base_diag(self, X: Array) -> Array:
        return np.einsum("...j,...j->...", X, X) + X.dtype.type(self.offset)


class BoundPoly(BoundKernel):
    """Poly against fixed points D, r x m. Its slope is degree * (x.d + offset)^(degree - 1)."""

    def __init__(self, D: Array, kernel: Poly) -> None:
        self.points = D
        self.kernel = kernel

    def rows(self, X: Array, out: Array | None = None) -> tuple[Array, Array]:
        base = X @ self.points.T
        base += X.dtype.type(self.kernel.offset)
        S = base ** (self.kernel.degree - 1)
        K = np.multiply(S, base, out=out)
        S *= self.kernel.degree
        return K, S

    def pull_rows(self, P: Array, X: Array) -> Array:
        return P @ self.points

    def jacobian(self, X: Array) -> Array:
        return self.rows(X)[1][:, :, None] * self.points

    def pull_points(self, P: Array, X: Array) -> Array:
        return P.T @ X
