"""A whole table at once: starting point, path and solver put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array, Kernel
from hirank.model.start import most_observed, soft_impute
from hirank.model.workers import Workers
from hirank.solvers.lbfgs import LBFGS
from hirank.solvers.loop import Callback, Result, run
from hirank.solvers.newton import Newton
from hirank.solvers.path import Setting, Stage
from hirank.solvers.second_look import second_look

LOOK_AFTER = range(1, 5)
"""Stages, from 0, that a second look follows: not so early that nothing is known, nor so late that
the remaining stages can't make use of it."""


def complete_table(
    X: Array,
    observed: NDArray[np.bool_],
    n_components: int,
    kernel: Kernel,
    stages: Sequence[Stage],
    workers: Workers,
    rng: np.random.Generator,
    *,
    method: str = "lbfgs",
    alpha: float = 0.0,
    max_iter: int = 100,
    tol: float = 0.0,
    callback: Callback | None = None,
) -> Result:
    """Learn a dictionary of `n_components` points from X, n x m, and fill its missing entries.

    With nothing missing only the dictionary is learned. ``"lbfgs"`` starts from a linear completion
    and takes the dictionary from its rows; ``"newton"`` starts as the paper does, from zeros and a
    normal random dictionary.
    """
    solver: Any
    if method == "newton":
        solver = Newton(observed)
        start = np.where(observed, X, 0).astype(X.dtype, copy=False)
        D = rng.standard_normal((n_components, X.shape[1])).astype(X.dtype)
    else:
        solver = LBFGS(observed, workers)
        start = soft_impute(X, observed)
        D = start[most_observed(observed, n_components, rng)].copy()

    def between(number: int, setting: Setting, X: Array, D: Array) -> tuple[Array, Array]:
        if method == "newton" or number not in LOOK_AFTER or number + 1 == len(stages):
            return X, D
        return second_look(X, D, observed, setting, workers)

    return run(
        solver,
        kernel,
        stages,
        start,
        D,
        alpha=alpha,
        max_iter=max_iter,
        tol=tol,
        callback=callback,
        between=between,
    )
