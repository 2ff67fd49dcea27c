"""Imputation of new rows with a fixed dictionary, each solved on its own.

The result for a row must not depend on which others come with it. Two things ensure that: all
decisions (step length, curvature, acceptance) are made per row, and all matrix products run on
stacked blocks of one fixed number of rows, because products round differently for different shapes
and an optimization amplifies such differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds, Box, make_box
from hirank.core.objective import Basis, sample_gradient
from hirank.core.threads import Workers
from hirank.optim.algorithm3 import Algorithm3Config, run_algorithm3
from hirank.optim.path import Setting
from hirank.optim.quasi_newton import minimize_rows

# Not 16, 32 or 64: there OpenBLAS's dtrmm for AVX-512 rounds a row differently by its position in
# the block, and a permuted batch differed by up to 1e-2. With 24 none of the eight kernel sets that
# were measured does (docs/notes/out_of_sample.md).
ROWS_PER_BLOCK = 24
BLOCK = 10 * ROWS_PER_BLOCK
"""Rows that are solved together."""
MEMORY = 6
ROUNDS = 14
"""Evaluations per stage."""
TYPICAL_STEPS = 30
"""Of Algorithm 3, to estimate its cost (docs/notes/out_of_sample.md)."""


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
    """Impute the missing entries of X, n x m, along the stages of a fit.

    Every row starts from the dictionary point, D is r x m, that is nearest on its observed
    entries, or from the nearest values within the bounds.
    """
    n, r = len(X), len(D)
    if not n:
        return X.copy()
    parts = [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]
    cost = 1.0 * n * r * (r + X.shape[1]) * rounds
    blocks = [*workers.map(lambda rows: _start(X[rows], observed[rows], D, bounds), parts, cost)]
    for setting in settings:  # one basis at a time: each takes several arrays of r x r
        descend = partial(_descend, basis=setting.basis(D).prepare(), rounds=rounds)
        blocks = [*workers.map(descend, blocks, cost)]
    filled = [block.x[: rows.stop - rows.start] for block, rows in zip(blocks, parts, strict=True)]
    return np.where(observed, X, np.concatenate(filled))


def complete_by_algorithm3(
    X: Array,
    observed: BoolArray,
    basis: Basis,
    config: Algorithm3Config,
    workers: Workers,
    *,
    bounds: Bounds | None = None,
) -> Array:
    """Impute the missing entries of X, n x m, by Algorithm 3 of the paper, starting from 0."""
    basis.prepare()

    def block(rows: slice) -> Array:
        x, seen = _pad(X[rows], 0), _pad(observed[rows], True)
        start = _stack(np.where(seen, x, 0))
        box = make_box(bounds, _stack(seen), x.dtype)
        done = run_algorithm3(start, _stack(seen), basis, config, box).result()
        return done.reshape(x.shape)[: rows.stop - rows.start]

    n, r = len(X), len(basis.D)
    # Smaller than BLOCK: a block takes as many steps as its slowest row.
    size = 4 * ROWS_PER_BLOCK
    blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    filled = [*workers.map(block, blocks, 1.0 * n * r * (r + X.shape[1]) * TYPICAL_STEPS)]
    return np.where(observed, X, np.concatenate(filled)) if filled else X.copy()


def nearest(X: Array, observed: BoolArray, D: Array) -> IntArray:
    """Return the row of D nearest to each row of X on its observed entries.

    X must have a multiple of `ROWS_PER_BLOCK` rows.
    """
    known = np.where(observed, X, 0)
    cross = _stack(known) @ D.T
    squares = _stack(observed.astype(X.dtype)) @ (D * D).T
    nearest: IntArray = (squares - 2 * cross).argmin(axis=-1).ravel()
    return nearest


class _Block(NamedTuple):
    """Rows that are solved together."""

    x: Array  # b x m
    observed: BoolArray  # b x m
    box: Box | None


def _start(X: Array, observed: BoolArray, D: Array, bounds: Bounds | None) -> _Block:
    """Return rows of X, padded, at the points of D, r x m, from which they start."""
    x, seen = _pad(X, 0), _pad(observed, True)
    x = np.where(seen, x, D[nearest(x, seen, D)])
    box = make_box(bounds, seen, x.dtype)
    return _Block(x if box is None else box.clip(x), seen, box)


def _descend(block: _Block, basis: Basis, rounds: int) -> _Block:
    """Take a few rounds of L-BFGS over the missing entries of each row of a block."""

    def evaluate(x: Array) -> tuple[Array, Array]:
        value, gradient = sample_gradient(_stack(x), basis)
        free = np.where(block.observed, 0, gradient.reshape(x.shape))
        return value.ravel().astype(np.float64), free

    rows = minimize_rows(evaluate, block.x, rounds=rounds, memory=MEMORY, box=block.box)
    return block._replace(x=rows.x)


def _stack(x: Array) -> Array:
    return x.reshape(-1, ROWS_PER_BLOCK, x.shape[1])


def _pad(x: NDArray[Any], value: float | bool) -> NDArray[Any]:
    """Return x with rows of `value` appended, to a multiple of `ROWS_PER_BLOCK` rows."""
    return np.pad(x, ((0, -len(x) % ROWS_PER_BLOCK), (0, 0)), constant_values=value)
