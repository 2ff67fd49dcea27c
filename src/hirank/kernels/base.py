"""What a kernel must offer. Kernels know no solver and no objective.

A kernel is a formula plus its derivatives. Both come in two steps, so that everything that
depends on one set of points D alone is computed once: ``kernel.bind(D)`` gives a
:class:`BoundKernel`, which then meets many blocks of samples X.

Where X is n x m, a stack of such blocks, ... x n x m, is as good (but for ``pull_points``): each
block of a stack goes through the same products as if it were alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from hirank._typing import Array

"""An array of float64 or float32; what is computed from it has the same dtype."""


class BoundKernel(ABC):
    """A kernel with its second argument fixed to the points D, r x m."""

    @abstractmethod
    def rows(self, X: Array, out: Array | None = None) -> tuple[Array, Array]:
        """Kernel K = k(X, D) and its slope S, both n x r.

        The slope is the factor that all derivatives of an entry of K share; a weight W on K
        turns into the weight ``P = W * S`` that the two pull-backs take. K and S may be one
        array: write to neither. `out` is room for K that the caller has to spare.
        """

    @abstractmethod
    def pull_rows(self, P: Array, X: Array) -> Array:
        """Gradient with respect to X, n x m, of <W, k(X, D)>, for P = W * S."""

    @abstractmethod
    def jacobian(self, X: Array) -> Array:
        """Derivative of k(x_i, d_j) with respect to x_i, n x r x m."""

    @abstractmethod
    def pull_points(self, P: Array, X: Array) -> Array:
        """Gradient with respect to D, r x m, of <W, k(X, D)>, for P = W * S."""


class Kernel(ABC):
    """A positive semi-definite function k(x, y) of two points."""

    fixed_size: ClassVar[bool] = False
    """Whether k(x, x) is the same for all x."""

    @abstractmethod
    def bind(self, D: Array) -> BoundKernel:
        """The kernel with its second argument fixed to the points D, r x m."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """k(x_i, x_i) for each row of X, n x m -> n."""

    @abstractmethod
    def diag_gradient(self, X: Array) -> Array | None:
        """Gradient, n x m, of 1/2 sum_i k(x_i, x_i); None where it is zero."""

    @abstractmethod
    def metric(self, X: Array) -> Array:
        """Inner products of the derivatives of the feature map, n x m x m.

        Entry a, b for the sample x is the derivative of k(x, y) by x_a and y_b, at y = x.
        """

    @abstractmethod
    def dictionary_curvature(self, P: Array, Q: Array) -> Array:
        """The paper's curvature of the objective in D, r x r.

        P = -Z * S(X, D) is n x r and Q = (Z'Z + alpha I) * S(D, D) / 2 is r x r.
        """

    @abstractmethod
    def sample_curvature(self, P: Array, X: Array) -> Array:
        """The paper's curvature of the objective in each sample, n, for P = -Z * S(X, D)."""

    def matrix(self, X: Array, Y: Array) -> Array:
        """k(x_i, y_j), n x m and r x m -> n x r."""
        return self.bind(Y).rows(X)[0]

    def resolve(self, X: Array, bandwidth: float) -> Kernel:
        """The kernel with what it takes from the data settled.

        `bandwidth` is a multiple of the mean distance between the rows of X, n x m. A kernel
        that has no length scale, or whose length scale is given, returns itself.
        """
        return self
