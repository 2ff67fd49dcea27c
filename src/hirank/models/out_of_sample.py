"""New samples with a frozen dictionary, each solved on its own.

The result for a sample must not depend on which others come with it. Two things see to that: all
decisions (step length, curvature, acceptance) are made per sample, and all matrix products run on
stacked chunks of one fixed number of rows, because products round differently for different shapes
and an optimization amplifies such differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, Box, make_box
from hirank.core.objective import Basis, codes, sample_gradient
from hirank.core.threads import Workers
from hirank.optim import quasi_newton as qn
from hirank.optim.path import Setting

CHUNK = 24
"""Rows of every matrix product."""
BLOCK = 10 * CHUNK
"""Rows that are worked on side by side."""
MEMORY = 6
ROUNDS = 14
"""Evaluations per stage."""


def complete_samples(
    X: Array,
    observed: BoolArray,
    D: Array,
    settings: Sequence[Setting],
    workers: Workers,
    *,
    rounds: int = ROUNDS,
    bounds: Bounds | None = None,
) -> Array:
    """Fill the missing entries of X, n x m, along the stages that a fit walked.

    Every sample starts from the dictionary point, D is r x m, that is nearest on its observed
    entries, or from the nearest place within the bounds.
    """
    bases = [setting.basis(D).prepare() for setting in settings]

    def block(rows: slice) -> Array:
        x, seen = _padded(X[rows], 0), _padded(observed[rows], True)
        x = np.where(seen, x, D[nearest(x, seen, D)])
        box = make_box(bounds, seen, x.dtype)
        x = x if box is None else box.clip(x)
        for basis in bases:
            x = _descend(x, seen, basis, rounds, box)
        return x[: rows.stop - rows.start]

    n, r = len(X), len(D)
    blocks = [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]
    cost = 1.0 * n * r * (r + X.shape[1]) * rounds * len(bases)
    filled = [*workers.map(block, blocks, cost)]
    return np.where(observed, X, np.concatenate(filled)) if filled else X.copy()


def paper_samples(
    X: Array,
    observed: BoolArray,
    basis: Basis,
    *,
    max_iter: int = 30,
    tol: float = 1e-5,
    momentum: float = 0.5,
    relaxation: float = 1.1,
) -> tuple[Array, Array]:
    """Algorithm 3 of the paper: completed X, n x m, and codes Z, n x r.

    Missing entries start from what X holds there. Each sample stops when neither its codes nor its
    entries change by `tol` or more. The authors' code takes `relaxation` 1.1 for the RBF kernel and
    1 (none) for the polynomial one.
    """
    kernel = basis.kernel
    Z = np.zeros((len(X), len(basis.D)), X.dtype)
    last = np.zeros_like(X)
    active = np.ones((len(X), 1), bool)
    for _ in range(max_iter):
        new_Z = codes(X, basis)
        P = -new_Z * basis.bound.rows(X)[1]
        curvature = relaxation * np.abs(kernel.sample_curvature(P, X))[:, None]
        step = momentum * last + sample_gradient(X, basis)[1] / curvature
        new_X = np.where(observed, X, X - step)
        moved = np.maximum(np.abs(new_Z - Z).max(axis=1), np.abs(new_X - X).max(axis=1))
        X, Z = np.where(active, new_X, X), np.where(active, new_Z, Z)
        last = step
        active = active & (moved >= tol)[:, None]
        if not active.any():
            break
    return X, Z


def nearest(X: Array, observed: BoolArray, D: Array) -> IntArray:
    """For each row of X, a multiple of `CHUNK` rows, the nearest row of D on observed entries."""
    known = np.where(observed, X, 0)
    cross = _stacked(known) @ D.T
    squares = _stacked(observed.astype(X.dtype)) @ (D * D).T
    nearest: IntArray = (squares - 2 * cross).argmin(axis=-1).ravel()
    return nearest


def _descend(x: Array, observed: BoolArray, basis: Basis, rounds: int, box: Box | None) -> Array:
    """A few rounds of L-BFGS over the missing entries of each row of x."""

    def evaluate(x: Array) -> tuple[Array, Array]:
        value, gradient = sample_gradient(_stacked(x), basis)
        return value.ravel().astype(np.float64), np.where(observed, 0, gradient.reshape(x.shape))

    rows = qn.begin(x, *evaluate(x), MEMORY, box=box)
    for _ in range(rounds):
        point = qn.trial(rows)
        rows = qn.update(rows, point, *evaluate(point))
    return rows.x


def _stacked(x: Array) -> Array:
    return x.reshape(-1, CHUNK, x.shape[1])


def _padded(x: NDArray[Any], value: float | bool) -> NDArray[Any]:
    """X with rows of `value` below, to a multiple of `CHUNK` rows."""
    return np.pad(x, ((0, -len(x) % CHUNK), (0, 0)), constant_values=value)
