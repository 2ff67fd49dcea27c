"""The interface of kernels, which know neither solver nor objective.

A kernel is a formula and its derivatives. Both are evaluated in two steps, so that whatever depends
on the points D alone is computed once: ``kernel.bind(D)`` returns a :class:`BoundKernel`, which is
applied to many blocks of samples X.

Except in ``pull_points``, X may be a stack of blocks, ... x n x m: each block of a stack goes
through the same products as if it were alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hirank._typing import Array


class BoundKernel(ABC):
    """A kernel with its second argument fixed to the points D, r x m."""

    @abstractmethod
    def rows(self, X: Array, out: Array | None = None) -> tuple[Array, Array]:
        """Return the kernel K = k(X, D) and its slope S, both n x r.

        The slope is the factor that all derivatives of an entry of K share; a weight W on K
        turns into the weight ``P = W * S`` that the two pull-backs take. K and S may be one
        array: write to neither. `out` is memory for K.
        """

    @abstractmethod
    def pull_rows(self, P: Array, X: Array) -> Array:
        """Return the gradient with respect to X, n x m, of <W, k(X, D)>, for P = W * S."""

    @abstractmethod
    def jacobian(self, X: Array) -> Array:
        """Return the derivative of k(x_i, d_j) with respect to x_i, n x r x m."""

    @abstractmethod
    def pull_points(self, P: Array, X: Array) -> Array:
        """Return the gradient with respect to D, r x m, of <W, k(X, D)>, for P = W * S."""


class Kernel(ABC):
    """A positive semidefinite function k(x, y) of two points."""

    fixed_size: ClassVar[bool] = False
    """Whether k(x, x) is the same for all x."""

    @abstractmethod
    def bind(self, D: Array) -> BoundKernel:
        """Fix the second argument to the points D, r x m."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i) for each row of X, n x m -> n."""

    @abstractmethod
    def diag_gradient(self, X: Array) -> Array | None:
        """Return the gradient, n x m, of 1/2 sum_i k(x_i, x_i); None where it is zero."""

    @abstractmethod
    def metric(self, X: Array) -> Array:
        """Return the inner products of the derivatives of the feature map, n x m x m.

        Entry a, b for the sample x is the derivative of k(x, y) by x_a and y_b, at y = x.
        """

    def metric_parts(self, X: Array) -> tuple[Array, Array]:
        """Return a and b, n each, such that `metric` is a I + b x x', with x a row of X.

        This is the form of the metric of every kernel that no rotation changes. Wide tables, for
        which n x m x m is too much, get by with it as an approximation of any other.
        """
        return np.einsum("nii->n", self.metric(X)) / X.shape[1], np.zeros(len(X), X.dtype)

    @abstractmethod
    def dictionary_curvature(self, P: Array, Q: Array) -> Array:
        """Return the paper's curvature of the objective in D, r x r.

        P = -Z * S(X, D) is n x r and Q = (Z'Z + alpha I) * S(D, D) / 2 is r x r.
        """

    @abstractmethod
    def sample_curvature(self, P: Array, X: Array) -> Array:
        """Return the paper's curvature of the objective in each sample, n, for P = -Z * S."""

    def matrix(self, X: Array, Y: Array) -> Array:
        """Return k(x_i, y_j), n x m and r x m -> n x r."""
        return self.bind(Y).rows(X)[0]

    def resolve(self, X: Array, bandwidth: float) -> Kernel:
        """Return the kernel with its length scale set from the data.

        `bandwidth` is a multiple of the mean distance between the rows of X, n x m. A kernel
        without a length scale, or whose length scale is given, returns itself.
        """
        return self
