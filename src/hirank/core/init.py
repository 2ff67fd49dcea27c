"""Starting points: imputed values by soft-impute, and rows of the table as the dictionary."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.slices import count_work
from hirank.core.svt import shrink, spectral_norm

N_THRESHOLDS = 12


def soft_impute(X: Array, observed: BoolArray, *, sweeps: int = 10) -> Array:
    """Impute X, n x m, linearly, along a path of singular value thresholds.

    Entries of X where `observed` is False are ignored. The threshold falls from half of the largest
    singular value of the zero-filled table to a thousandth of it; each of its steps starts from the
    last.
    """
    filled = np.where(observed, X, 0).astype(X.dtype, copy=False)
    if observed.all() or not observed.any():
        return filled
    missing = ~observed
    for threshold in spectral_norm(filled) * np.geomspace(0.5, 1e-3, N_THRESHOLDS):
        for _ in range(sweeps):
            change = shrink(filled, threshold).X[missing] - filled[missing]
            filled[missing] += change
            count_work(2.0 * X.size * min(X.shape) + 3.0 * min(X.shape) ** 3)
            if np.linalg.norm(change) <= 1e-3 * np.linalg.norm(filled[missing]):
                break
    return filled


def most_observed(observed: BoolArray, r: int, rng: np.random.Generator) -> IntArray:
    """Return the r rows of a table, n x m, that have the most observed entries; ties at random.

    A dictionary of such rows ends at a lower error than one of random rows (docs/notes/solver.md).
    """
    return np.sort(np.argsort(-observed.sum(axis=1) - rng.random(len(observed)))[:r])
