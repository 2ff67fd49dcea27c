"""The objective of kernelized factorization, its codes and its exact gradients.

Notation (rows are samples): X is n x m, the dictionary D is r x m, K = k(X, D) is n x r,
G = k(D, D) is r x r, the codes Z are n x r, A = G + beta I. The objective is

    L(X, D, Z) = 1/2 sum_i k(x_i, x_i) - <K, Z> + 1/2 <Z G, Z> + alpha/2 tr G + beta/2 |Z|^2.

The best codes are Z = K A^-1, and with them in place it becomes the reduced objective

    F(X, D) = 1/2 sum_i k(x_i, x_i) - 1/2 <K A^-1, K> + alpha/2 tr G.

All functions are pure. Only blocks of rows of K and Z are held, so memory and time are linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.threads import Workers, row_blocks
from hirank.core.triangular import inverse_lower, times_lower
from hirank.kernels import BoundKernel, Kernel


@dataclass(frozen=True)
class Basis:
    """A dictionary D, r x m, with its kernel and the ridge beta of the codes.

    The r x r algebra is done in double precision whatever the dtype of D: it costs little, and
    G + beta I stays positive definite for small beta (docs/notes/numerics.md).
    """

    kernel: Kernel
    D: Array
    beta: float
    alpha: float = 0.0

    def prepare(self) -> Basis:
        """Compute the cached properties, before several threads read them."""
        _ = self.bound, self.root
        return self

    @cached_property
    def bound(self) -> BoundKernel:
        """The kernel with D as its second argument."""
        return self.kernel.bind(self.D)

    @cached_property
    def gram(self) -> tuple[Array, Array]:
        """G and its slope, r x r, in double precision."""
        D = self.D.astype(np.float64, copy=False)
        return self.kernel.bind(D).rows(D)

    @cached_property
    def root(self) -> Array:
        """The lower triangular R = L^-1, r x r, in the dtype of D, for A = L L'; A^-1 = R'R.

        Its entries are of size beta^-1/2 where those of A^-1 are of size 1/beta, so products with
        it keep twice as many digits. At the end of a path, where beta is 1e-10, products with A^-1
        would keep none (docs/notes/numerics.md).
        """
        A = self.gram[0].copy()
        A[np.diag_indices_from(A)] += self.beta
        try:
            L = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(
                f"The kernel matrix of the dictionary plus beta={self.beta:.3g} is not positive "
                "definite. Use a larger beta."
            ) from None
        return inverse_lower(L).astype(self.D.dtype, copy=False)


class Gradient(NamedTuple):
    """The reduced objective and its gradients; None if not requested."""

    value: float
    X: Array | None
    D: Array | None


def codes(X: Array, basis: Basis) -> Array:
    """Return the optimal codes Z = K A^-1 of the samples X, n x m -> n x r."""
    return codes_and_residuals(X, basis)[0]


def objective(X: Array, Z: Array, basis: Basis) -> float:
    """Return L(X, D, Z) for any codes Z, n x r."""
    K = basis.bound.rows(X)[0]
    G = basis.gram[0]
    ZZ = (Z.T @ Z).astype(np.float64, copy=False)
    fit = basis.kernel.diag(X) / 2 - np.einsum("ij,ij->i", K, Z)
    value = fit.sum(dtype=np.float64) + (ZZ * G).sum() / 2
    return float(value + basis.alpha / 2 * np.trace(G) + basis.beta / 2 * np.trace(ZZ))


def coordinates(X: Array, basis: Basis) -> Array:
    """Return V = K R', n x m -> n x r: coordinates of the samples in the dictionary's span.

    Inner products of rows of V approximate the kernel: V V' = K A^-1 K'.
    """
    return _coordinates_and_slope(X, basis)[0]


def _coordinates_and_slope(
    X: Array, basis: Basis, out: tuple[Array | None, Array | None] = (None, None)
) -> tuple[Array, Array]:
    """Return V and the slope S of K, both n x r; `out` is memory for K and V."""
    K, S = basis.bound.rows(X, out[0])
    V = np.empty_like(K) if out[1] is None else out[1]
    np.copyto(V, K)
    times_lower(V, basis.root, transposed=True)
    return V, S


def codes_and_residuals(
    X: Array, basis: Basis, out: tuple[Array | None, Array | None] = (None, None)
) -> tuple[Array, Array, Array]:
    """Return the codes Z = V R, the slope S of K (both n x r) and each sample's part of F (n).

    `out` is memory for K and Z: to allocate it for every block would take a tenth of the time.
    """
    V, S = _coordinates_and_slope(X, basis, out)
    residual = basis.kernel.diag(X) - np.einsum("...j,...j->...", V, V)
    residual *= 0.5
    times_lower(V, basis.root, transposed=False)
    return V, S, residual


def pull_samples(P: Array, X: Array, basis: Basis, out: Array | None = None) -> Array:
    """Return the gradient of F in X, n x m, from P = Z * S."""
    gradient: Array = np.negative(basis.bound.pull_rows(P, X), out=out)
    own = basis.kernel.diag_gradient(X)
    if own is not None:
        gradient += own
    return gradient


def sample_gradient(X: Array, basis: Basis) -> tuple[Array, Array]:
    """Return each sample's part of F, n, and its gradient, n x m; also of stacks, ... x n x m."""
    Z, S, residual = codes_and_residuals(X, basis)
    Z *= S
    return residual, pull_samples(Z, X, basis)


def gradient_without(
    X: Array, basis: Basis, point: IntArray, left_out: BoolArray
) -> tuple[Array, Array]:
    """Return :func:`sample_gradient`, n x m only, without one point of the dictionary per sample.

    Point ``point[i]`` is left out of sample i where ``left_out[i]`` is true. To remove a point is a
    rank-one change of A^-1.
    """
    Z, S, residual = codes_and_residuals(X, basis)
    columns = np.ascontiguousarray(basis.root[:, point].T)  # n x r: A^-1 = R'R
    pivot = np.einsum("ij,ij->i", columns, columns)
    z = np.where(left_out, Z[np.arange(len(X)), point], 0)
    residual = residual + z**2 / (2 * pivot)
    columns *= (z / pivot)[:, None]
    times_lower(columns, basis.root, transposed=False)
    Z -= columns
    Z *= S
    return residual, pull_samples(Z, X, basis)


def reduced_gradient(
    X: Array, basis: Basis, workers: Workers, *, wrt_X: bool = True, wrt_D: bool = True
) -> Gradient:
    """Return F(X, D) and its exact gradients in X, n x m, and D, r x m.

    Z is optimal, so the gradients treat it as a constant: dF/dK = -Z, dF/dG = (Z'Z + alpha I)/2.
    """
    (n, m), r = X.shape, len(basis.D)
    grad_X = np.empty_like(X) if wrt_X else None
    G, slope = basis.gram
    basis.prepare()

    def block(rows: slice) -> tuple[float, Array, Array] | tuple[float, None, None]:
        x = X[rows]
        memory = workers.scratch((2, len(x), r), X.dtype)
        Z, S, residual = codes_and_residuals(x, basis, (memory[0], memory[1]))
        ZZ = Z.T @ Z if wrt_D else None
        Z *= S
        if grad_X is not None:
            pull_samples(Z, x, basis, out=grad_X[rows])
        value = float(residual.sum(dtype=np.float64))
        return (value, ZZ, basis.bound.pull_points(Z, x)) if ZZ is not None else (value, None, None)

    value = basis.alpha / 2 * float(np.trace(G))
    ZZ = np.zeros((r, r), X.dtype)
    grad_D = np.zeros((r, m), X.dtype)
    cost = 1.0 * n * r * (m + r)
    blocks = row_blocks(n, r * X.itemsize, cost)
    for part, part_ZZ, part_D in workers.map(block, blocks, cost):
        value += part
        if part_ZZ is not None and part_D is not None:
            ZZ += part_ZZ
            grad_D -= part_D
    if not wrt_D:
        return Gradient(value, grad_X, None)
    ZZ[np.diag_indices_from(ZZ)] += basis.alpha
    ZZ *= slope
    grad_D += basis.bound.pull_rows(ZZ, basis.D)
    return Gradient(value, grad_X, grad_D)
