"""The fit of one dictionary to a table: starting point, path, solver and early stopping."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, clip_missing
from hirank.core.init import most_observed, soft_impute
from hirank.core.masking import mask_entries
from hirank.core.threads import Workers
from hirank.kernels import Kernel
from hirank.optim.early_stopping import BestStage
from hirank.optim.lbfgs import LBFGS
from hirank.optim.newton import MOMENTUM, RELAXATION, Newton
from hirank.optim.path import PathPoint, PathSolution, SolverConfig, Stage, minimize_path
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import Monitor

RESTART_AFTER = range(1, 5)
"""Stages, from 0, after which samples restart: not so early that nothing is known, nor so late that
the remaining stages cannot make use of it (docs/notes/solver.md)."""
MAX_DEFAULT_POINTS = 400


def default_n_components(n: int) -> int:
    """Return the default number of points for n rows: 3.8 n^0.6, at most 400."""
    return max(1, min(n, MAX_DEFAULT_POINTS, round(3.8 * n**0.6)))


@dataclass(frozen=True)
class DictionaryProblem:
    """A scaled table, and the dictionary to fit to it."""

    X: Array  # n x v; values at missing entries are not used
    observed: BoolArray  # n x v
    n_components: int
    kernel: Kernel
    stages: Sequence[Stage]
    config: SolverConfig
    bounds: Bounds | None = None  # of imputed values, v features


def fit_dictionary(
    problem: DictionaryProblem,
    workers: Workers,
    rng: np.random.Generator,
    monitor: Monitor | None = None,
    held_out: BoolArray | None = None,
) -> PathSolution:
    """Fit a dictionary to a table, and impute the table.

    Starts from a linear completion and takes the points from its rows. If nothing is missing, only
    the dictionary is fitted.

    The further a path goes, the closer the model follows the data, noise included. So a few
    observed entries are held out on the way; the stage that recovers them best is fitted once more
    to all entries, and is the last. `held_out`, n x m, are the entries; None draws some.
    """
    held_out = mask_entries(problem.observed, rng) if held_out is None else held_out
    training = problem.observed & ~held_out
    start = clip_missing(problem.bounds, soft_impute(problem.X, training), training)
    D = start[most_observed(training, problem.n_components, rng)].copy()
    return fit_path(problem, start, D, held_out, workers, monitor=monitor)


def fit_path(
    problem: DictionaryProblem,
    start: Array,
    D: Array,
    held_out: BoolArray,
    workers: Workers,
    restart_after: Collection[int] = RESTART_AFTER,
    monitor: Monitor | None = None,
) -> PathSolution:
    """Fit along the path from an imputed table, n x v, and a dictionary, r x v.

    The stages are compared on the held-out entries, n x v, of which `start` must not depend on the
    true values. Without any, the path is fitted to its end. With bounds, values outside start from
    the nearest ones inside.
    """
    X, observed, stages, bounds = problem.X, problem.observed, problem.stages, problem.bounds
    training = observed & ~held_out
    start = clip_missing(bounds, start, training)
    best, monitor = BestStage(X, held_out), monitor or Monitor()

    def between(number: int, end: PathPoint) -> tuple[Array, Array] | None:
        setting, X, D = end
        if best.is_past(number, X, D):
            return None
        if number in restart_after and number + 1 < len(stages):
            return restart_samples(X, D, training, setting, workers, bounds)
        return X, D

    config = problem.config
    solver = LBFGS(training, workers, bounds=bounds, tol=config.tol)
    found = minimize_path(solver, problem.kernel, stages, (start, D), config, monitor, between)
    if not held_out.any() or monitor.stopped:
        return replace(found, X=np.where(observed, X, found.X))
    last = slice(best.number, best.number + 1)
    final = minimize_path(
        LBFGS(observed, workers, bounds=bounds, tol=config.tol),
        problem.kernel,
        stages[last],
        (np.where(observed, X, best.X), best.D),
        config,
        monitor,
    )
    settings = (*found.settings[: last.start], *final.settings)
    return replace(final, settings=settings, fold=best.X)


def fit_algorithm1(
    problem: DictionaryProblem,
    rng: np.random.Generator,
    monitor: Monitor | None = None,
    *,
    momentum: float = MOMENTUM,
    relaxation: float = RELAXATION,
) -> PathSolution:
    """Run Algorithm 1 of the paper, which starts from zeros and a normal random dictionary.

    With bounds, which the paper does not have, every step is followed by a projection.
    """
    start = np.where(problem.observed, problem.X, 0).astype(problem.X.dtype, copy=False)
    start = clip_missing(problem.bounds, start, problem.observed)
    D = rng.standard_normal((problem.n_components, start.shape[1])).astype(start.dtype)
    tol = problem.config.tol
    solver = Newton(problem.observed, momentum, relaxation, bounds=problem.bounds, tol=tol)
    monitor = monitor or Monitor()
    return minimize_path(
        solver, problem.kernel, problem.stages, (start, D), problem.config, monitor
    )
