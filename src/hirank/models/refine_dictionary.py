"""Updates of a fitted dictionary with the rows of a window."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.init import most_observed
from hirank.core.objective import codes
from hirank.core.threads import Workers
from hirank.optim.lbfgs import LBFGS
from hirank.optim.loop import minimize
from hirank.optim.path import PathPoint, Setting
from hirank.optim.trace import Monitor

STEPS = 4
"""Steps of the dictionary for each batch of a stream."""
RENEWED = 0.25
"""Largest part of a dictionary that new samples replace."""


def refine_dictionary(
    X: Array, D: Array, setting: Setting, workers: Workers, steps: int = STEPS
) -> Array:
    """Take a few steps of the dictionary, r x m, with the rows X, n x m, kept fixed.

    Steps of the rows as well need the curvature of each, four times the cost, and gain nothing
    (docs/notes/online.md).
    """
    solver = LBFGS(np.ones(X.shape, bool), workers)
    start = PathPoint(setting, X, D)
    return minimize(solver, start, max_iter=steps, monitor=Monitor()).state.D()


def grow_dictionary(
    D: Array, X: Array, observed: BoolArray, size: int, rng: np.random.Generator
) -> Array:
    """Return the dictionary, r x m, with points from X, n x m, added up to `size` points."""
    more = min(size - len(D), len(X))
    if more <= 0:
        return D
    return np.concatenate([D, X[most_observed(observed, more, rng)]])


def renew_dictionary(D: Array, X: Array, setting: Setting, newest: int) -> Array:
    """Return the dictionary, r x m, its least used points replaced by the `newest` rows of X."""
    use = np.square(codes(X, setting.basis(D))).sum(axis=0)
    k = min(newest, int(RENEWED * len(D)))
    if k < 1:
        return D
    D = D.copy()
    D[np.argsort(use, kind="stable")[:k]] = X[-k:]
    return D
