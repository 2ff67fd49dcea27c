"""Curvature of the reduced objective, sample by sample and point by point.

With the codes at their best, the part of a sample x in F is the squared distance from its image
phi(x) to the span of the dictionary. Its Gauss-Newton Hessian is

    H = <d phi, d phi> - J' A^-1 J,    J = d k(D, x) / dx,    r x m,

a positive semidefinite m x m matrix. It is small in directions along the surface and large across
it: the problem is ill-conditioned for a method that uses gradients only (docs/notes/solver.md).

The inverse takes m^2 numbers and m^3 operations a sample. But H differs from a multiple of the
identity by a matrix of rank r at most, of which the leading eigenvectors matter, the directions
along the surface. So wide tables get the inverse from a few of these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.core.objective import Basis
from hirank.core.slices import count_work
from hirank.core.threads import Workers, row_blocks

# Added to each Hessian, in units of its mean diagonal. With 0.01 the objective falls faster, but
# the imputed values get worse (docs/notes/solver.md).
DAMPING = 0.1
MIN_DIAGONAL = 1e-4
"""Least mean diagonal of a Hessian, in units of that of its first term."""
CHUNK_ENTRIES = 500_000
"""Size of the arrays of one block."""
MAX_DENSE_FEATURES = 200
"""Features up to which inverses are dense; beyond, eigenvectors are faster."""
MAX_DENSE_ENTRIES = 250_000_000
"""Entries of all dense inverses: one gigabyte."""
N_DIRECTIONS = 16
"""Eigenvectors per sample of a wide table."""
MAX_DIRECTION_ENTRIES = 100_000_000
"""Entries of all eigenvectors, 400 megabytes: tables that need more have fewer of them."""

InverseCurvature: TypeAlias = Callable[[Array], Array]
"""The inverse Hessian of each sample, applied to a vector of each, n x m -> n x m."""


def inverse_curvature(
    X: Array, basis: Basis, workers: Workers, free: BoolArray | None = None
) -> InverseCurvature:
    """Return (H + damping)^-1 on the free entries of each sample of X, n x m; 0 elsewhere.

    A preconditioner needs few digits, so it is in single precision.
    """
    if X.shape[0] == 0 or is_dense(*X.shape):
        return DenseInverse.measure(X, basis, workers, free)
    return LowRankInverse.measure(X, basis, workers, free)


def is_dense(n: int, m: int) -> bool:
    """Return whether the inverses of n samples with m features are m x m matrices."""
    return m <= MAX_DENSE_FEATURES and n * m * m <= MAX_DENSE_ENTRIES


def sample_hessians(X: Array, basis: Basis) -> Array:
    """Return the Gauss-Newton Hessian of the part of each sample in F, n x m -> n x m x m."""
    m, r = X.shape[1], len(basis.D)
    J = basis.bound.jacobian(X)
    # R J for all samples in one product: R is r x r, J is n x r x m
    J = (basis.root @ J.transpose(1, 0, 2).reshape(r, -1)).reshape(r, -1, m).transpose(1, 0, 2)
    return basis.kernel.metric(X) - J.transpose(0, 2, 1) @ J


@dataclass(frozen=True)
class DenseInverse:
    """Inverse Hessians as matrices, multiplied by a unit: they neither overflow nor vanish."""

    blocks: NDArray[np.float32]  # n x m x m
    unit: float
    workers: Workers

    @classmethod
    def measure(
        cls, X: Array, basis: Basis, workers: Workers, free: BoolArray | None
    ) -> DenseInverse:
        n, m = X.shape
        inverses = np.empty((n, m, m), np.float32)
        diagonal = np.arange(m)
        basis.prepare()
        sizes = _sizes(X, *basis.kernel.metric_parts(X)).astype(np.float64)
        unit = float(sizes.mean()) or 1.0

        def block(rows: slice) -> None:
            H = sample_hessians(X[rows], basis).astype(np.float64, copy=False)
            f = np.ones((len(H), m), bool) if free is None else free[rows]
            mean = np.einsum("bii,bi->b", H, f) / np.maximum(f.sum(axis=1), 1)
            H[:, diagonal, diagonal] += _damping(mean, sizes[rows])[:, None]
            if free is None:
                inverses[rows] = np.linalg.inv(H / unit)
                return
            both = f[:, :, None] & f[:, None, :]
            H *= both / unit
            H[:, diagonal, diagonal] += ~f
            np.multiply(np.linalg.inv(H), both, out=inverses[rows], casting="same_kind")
            count_work(len(H) * m**2 * (m + len(basis.D)))

        _map_blocks(block, n, m, basis, workers)
        return cls(inverses, unit, workers)

    def __call__(self, rows: Array) -> Array:
        size = np.abs(rows).max(initial=0) or 1.0
        rows = (rows / size).astype(np.float32)
        out = np.empty_like(rows)

        def block(part: slice) -> None:
            np.matmul(self.blocks[part], rows[part, :, None], out=out[part, :, None])

        # Reading the matrices takes about ten times as long as multiplying.
        cost = 10.0 * self.blocks.size
        blocks = row_blocks(len(rows), self.blocks[:1].nbytes, cost)
        for _ in self.workers.map(block, blocks, cost):
            pass
        return out * (size / self.unit)


@dataclass(frozen=True)
class LowRankInverse:
    """Inverse Hessians as (I + U' diag(w) U) / c, by the leading eigenvectors U of c I - H."""

    directions: NDArray[np.float32]  # n x k x m
    weights: NDArray[np.float32]  # n x k
    sizes: Array  # n, the c with the damping

    @classmethod
    def measure(
        cls, X: Array, basis: Basis, workers: Workers, free: BoolArray | None
    ) -> LowRankInverse:
        n, m = X.shape
        k = min(N_DIRECTIONS, len(basis.D) + 1, m, MAX_DIRECTION_ENTRIES // (n * m))
        directions = np.zeros((n, k, m), np.float32)
        weights, sizes = np.zeros((n, k), np.float32), np.ones(n)
        basis.prepare()
        start = np.random.default_rng(0).standard_normal((m, k))

        def block(rows: slice) -> None:
            x = X[rows]
            f = np.ones(x.shape) if free is None else free[rows].astype(np.float64)
            own, outer = basis.kernel.metric_parts(x)
            values, U = _leading_eigenvectors(x, f, outer, basis, start)
            mean = own - values.sum(axis=1) / np.maximum(f.sum(axis=1), 1)
            sizes[rows] = own + _damping(mean, _sizes(x, own, outer))
            # Rounding aside, no eigenvalue is above that of the first term.
            values = np.minimum(values, own[:, None])
            weights[rows] = values / (sizes[rows, None] - values)
            directions[rows] = U.transpose(0, 2, 1)
            count_work(40.0 * len(x) * len(basis.D) * m)

        if k:
            _map_blocks(block, n, m, basis, workers)
        return cls(directions, weights, sizes)

    def __call__(self, rows: Array) -> Array:
        size = np.abs(rows).max(initial=0) or 1.0
        scaled = (rows / size).astype(np.float32)
        parts = self.weights * np.matmul(self.directions, scaled[:, :, None])[:, :, 0]
        scaled += np.matmul(parts[:, None], self.directions)[:, 0]
        return scaled * (size / self.sizes[:, None])


def _leading_eigenvectors(
    x: Array, f: Array, outer: Array, basis: Basis, start: Array
) -> tuple[Array, Array]:
    """Return the leading eigenvalues, b x k, and -vectors, b x m x k, of J'A^-1 J - outer x x'.

    For the free entries of samples x, b x m, where f is 1. By one subspace iteration from `start`,
    m x k: a second one gains nothing (docs/notes/solver.md).
    """
    J, x = basis.bound.jacobian(x) * f[:, None], x * f

    def product(V: Array) -> Array:
        Z = basis.root.T @ (basis.root @ (J @ V))
        own = outer[:, None, None] * (x[:, None] @ V)
        return J.transpose(0, 2, 1) @ Z - x[:, :, None] * own

    V = np.linalg.qr(product(f[:, :, None] * start))[0] * f[:, :, None]
    values, turn = np.linalg.eigh(V.transpose(0, 2, 1) @ product(V))
    return values, V @ turn


def _sizes(X: Array, own: Array, outer: Array) -> Array:
    """Return the mean diagonal of own I + outer x x' for each sample, n."""
    return own + outer * np.square(X).mean(axis=1)


def _damping(mean: Array, size: Array) -> Array:
    """Return what is added to Hessians, by their mean diagonal and that of their first term, n."""
    return DAMPING * np.maximum(mean, MIN_DIAGONAL * size)


def _map_blocks(
    block: Callable[[slice], None], n: int, m: int, basis: Basis, workers: Workers
) -> None:
    step = max(1, CHUNK_ENTRIES // (max(len(basis.D), m) * m))
    blocks = [slice(i, min(i + step, n)) for i in range(0, n, step)]
    for _ in workers.map(block, blocks, cost=1.0 * n * m * len(basis.D) ** 2):
        pass
