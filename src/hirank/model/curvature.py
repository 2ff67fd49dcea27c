"""Curvature of the reduced objective, sample by sample and point by point.

With the codes at their best, the part of a sample x in F is the squared distance from its image
phi(x) to the span of the dictionary. Its Gauss-Newton Hessian is

    H = <d phi, d phi> - J' A^-1 J,    J = d k(D, x) / dx,    r x m,

an m x m matrix that is never negative. It knows in which directions a sample may slide along the
surface, and in which it may not, and that is what makes the problem hard for a method that only
sees gradients.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array
from hirank.model.objective import Basis
from hirank.model.workers import Workers

DAMPING = 0.1
"""Added to each Hessian, in units of its mean diagonal. Less lowers F faster, to worse fills."""
CHUNK_ENTRIES = 500_000
"""Size of the Jacobians that are worked on at once."""


def sample_hessians(X: Array, basis: Basis, workers: Workers) -> Array:
    """Gauss-Newton Hessian of the part of each sample in F, n x m -> n x m x m."""
    (n, m), r = X.shape, len(basis.D)
    H = np.array(basis.kernel.metric(X))
    basis.prepare()

    def block(rows: slice) -> None:
        J = basis.bound.jacobian(X[rows])
        # R J for all samples of the block in one product: R is r x r, J is c x r x m
        J = (basis.root @ J.transpose(1, 0, 2).reshape(r, -1)).reshape(r, -1, m).transpose(1, 0, 2)
        H[rows] -= J.transpose(0, 2, 1) @ J

    step = max(1, CHUNK_ENTRIES // (r * m))
    blocks = [slice(i, min(i + step, n)) for i in range(0, n, step)]
    for _ in workers.map(block, blocks, cost=1.0 * n * r * r * m):
        pass
    return H


def damped_inverses(
    H: Array, workers: Workers, free: NDArray[np.bool_] | None = None
) -> NDArray[np.float32]:
    """(H + damping)^-1 on the free entries of each row, zero elsewhere, b x m x m.

    In single precision: it only has to point the way.
    """
    b, m = H.shape[:2]
    inverses = np.empty((b, m, m), np.float32)
    mean = np.einsum("bii->b", H) / m
    floor = 1e-3 * mean.mean() + np.finfo(np.float64).tiny
    damping = DAMPING * np.maximum(mean, floor)
    diagonal = np.arange(m)

    def block(rows: slice) -> None:
        h = H[rows].astype(np.float64)
        h[:, diagonal, diagonal] += damping[rows, None]
        if free is not None:
            f = free[rows]
            h *= f[:, :, None] & f[:, None, :]
            h[:, diagonal, diagonal] += ~f
        inverse = np.linalg.inv(h)
        if free is not None:
            inverse *= f[:, :, None] & f[:, None, :]
        inverses[rows] = inverse

    step = max(1, CHUNK_ENTRIES // (m * m))
    blocks = [slice(i, min(i + step, b)) for i in range(0, b, step)]
    for _ in workers.map(block, blocks, cost=1.0 * b * m**3):
        pass
    return inverses
