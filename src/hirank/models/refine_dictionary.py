"""A model that exists, brought up to date with a window of samples."""

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


def refine(X: Array, D: Array, setting: Setting, workers: Workers, steps: int = STEPS) -> Array:
    """A few steps of the dictionary, r x m, towards the samples X, n x m, which stay.

    Steps of the samples as well need the curvature of each: four times the cost for nothing
    (docs/notes/stream.md).
    """
    solver = LBFGS(np.ones(X.shape, bool), workers)
    start = PathPoint(setting, X, D)
    return minimize(solver, start, max_iter=steps, monitor=Monitor()).state.D()


def grown(D: Array, X: Array, observed: BoolArray, size: int, rng: np.random.Generator) -> Array:
    """The dictionary, r x m, with points from X, n x m, up to `size` points."""
    more = min(size - len(D), len(X))
    if more <= 0:
        return D
    return np.concatenate([D, X[most_observed(observed, more, rng)]])


def renewed(D: Array, X: Array, setting: Setting, newest: int) -> Array:
    """The dictionary, r x m, with its least used points replaced by the `newest` rows of X."""
    use = np.square(codes(X, setting.basis(D))).sum(axis=0)
    k = min(newest, int(RENEWED * len(D)))
    if k < 1:
        return D
    D = D.copy()
    D[np.argsort(use, kind="stable")[:k]] = X[-k:]
    return D
