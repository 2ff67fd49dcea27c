"""Curvature of the reduced objective, sample by sample and point by point.

With the codes at their best, the part of a sample x in F is the squared distance from its image
phi(x) to the span of the dictionary. Its Gauss-Newton Hessian is

    H = <d phi, d phi> - J' A^-1 J,    J = d k(D, x) / dx,    r x m,

a positive semidefinite m x m matrix. It is small in directions along the surface and large across
it: the problem is ill-conditioned for a method that uses gradients only (docs/notes/solver.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.core.objective import Basis
from hirank.core.threads import Workers

# Added to each Hessian, in units of its mean diagonal. With 0.01 the objective falls faster, but
# the imputed values get worse (docs/notes/solver.md).
DAMPING = 0.1
MIN_DIAGONAL = 1e-4
"""Least mean diagonal of a Hessian, in units of that of its first term."""
CHUNK_ENTRIES = 500_000
"""Size of the arrays of one block."""


def sample_hessians(X: Array, basis: Basis) -> Array:
    """Return the Gauss-Newton Hessian of the part of each sample in F, n x m -> n x m x m."""
    m, r = X.shape[1], len(basis.D)
    J = basis.bound.jacobian(X)
    # R J for all samples in one product: R is r x r, J is n x r x m
    J = (basis.root @ J.transpose(1, 0, 2).reshape(r, -1)).reshape(r, -1, m).transpose(1, 0, 2)
    return basis.kernel.metric(X) - J.transpose(0, 2, 1) @ J


def inverse_curvature(
    X: Array, basis: Basis, workers: Workers, free: BoolArray | None = None
) -> tuple[NDArray[np.float32], float]:
    """Return (H + damping)^-1 on the free entries of each sample, n x m -> n x m x m, and a unit.

    It is 0 elsewhere. A preconditioner needs few digits, so it is in single precision, multiplied
    by the unit so that it neither overflows nor vanishes.
    """
    n, m = X.shape
    inverses = np.empty((n, m, m), np.float32)
    diagonal = np.arange(m)
    basis.prepare()
    unit = (
        float(np.mean(np.einsum("bii->b", basis.kernel.metric(X[: CHUNK_ENTRIES // m**2 + 1])))) / m
    )

    def block(rows: slice) -> None:
        H = sample_hessians(X[rows], basis).astype(np.float64, copy=False)
        size = np.einsum("bii->b", basis.kernel.metric(X[rows])) / m
        damping = DAMPING * np.maximum(np.einsum("bii->b", H) / m, MIN_DIAGONAL * size)
        H[:, diagonal, diagonal] += damping[:, None]
        if free is None:
            inverses[rows] = np.linalg.inv(H / unit)
            return
        f = free[rows]
        both = f[:, :, None] & f[:, None, :]
        H *= both / unit
        H[:, diagonal, diagonal] += ~f
        np.multiply(np.linalg.inv(H), both, out=inverses[rows], casting="same_kind")

    step = max(1, CHUNK_ENTRIES // (max(len(basis.D), m) * m))
    blocks = [slice(i, min(i + step, n)) for i in range(0, n, step)]
    for _ in workers.map(block, blocks, cost=1.0 * n * m * len(basis.D) ** 2):
        pass
    return inverses, unit
