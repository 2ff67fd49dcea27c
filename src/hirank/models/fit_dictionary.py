"""A whole table at once: starting point, path, solver and the end of the path put together."""

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
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, PathSolution, SolverConfig, Stage, minimize_path
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import Monitor

RESTART_AFTER = range(1, 5)
"""Stages, from 0, that a second look follows: not so early that nothing is known, nor so late that
the remaining stages can't make use of it."""


@dataclass(frozen=True)
class Task:
    """A table to complete, and how."""

    X: Array  # n x m; what stands at missing entries does not matter
    observed: BoolArray  # n x m, True = known
    n_components: int
    kernel: Kernel
    stages: Sequence[Stage]
    config: SolverConfig
    bounds: Bounds | None = None  # of the fills, m features


def complete_table(
    task: Task, workers: Workers, rng: np.random.Generator, monitor: Monitor | None = None
) -> PathSolution:
    """Learn a dictionary from the table, and fill its missing entries.

    Starts from a linear completion and takes the dictionary from its rows. With nothing missing
    only the dictionary is learned.

    The further a path goes, the closer the model follows the data, noise included. So a few
    observed entries are hidden along the way; the stage that recovers them best is walked once
    more with all entries, and is the last.
    """
    hidden = mask_entries(task.observed, rng)
    seen = task.observed & ~hidden
    start = clip_missing(task.bounds, soft_impute(task.X, seen), seen)
    D = start[most_observed(seen, task.n_components, rng)].copy()
    return walk(task, start, D, hidden, workers, monitor=monitor)


def walk(
    task: Task,
    start: Array,
    D: Array,
    hidden: BoolArray,
    workers: Workers,
    restart_after: Collection[int] = RESTART_AFTER,
    monitor: Monitor | None = None,
) -> PathSolution:
    """Walk the path from given fills, n x m, and dictionary, r x m.

    The stages are judged by the hidden entries, n x m; what `start` holds there must not come from
    their true values. Without any, the path is walked to its end. With bounds, fills beyond them
    start from the nearest place within.
    """
    X, observed, stages, bounds = task.X, task.observed, task.stages, task.bounds
    seen = observed & ~hidden
    start = clip_missing(bounds, start, seen)
    best, monitor = BestStage(X, hidden), monitor or Monitor()

    def between(number: int, end: PathPoint) -> tuple[Array, Array] | None:
        setting, X, D = end
        if best.is_past(number, X, D):
            return None
        if number in restart_after and number + 1 < len(stages):
            return restart_samples(X, D, seen, setting, workers, bounds)
        return X, D

    config = task.config
    solver = LBFGS(seen, workers, bounds=bounds, tol=config.tol)
    found = minimize_path(solver, task.kernel, stages, (start, D), config, monitor, between)
    if not hidden.any() or monitor.stopped:
        return replace(found, X=np.where(observed, X, found.X))
    again = slice(best.number, best.number + 1)
    final = minimize_path(
        LBFGS(observed, workers, bounds=bounds, tol=config.tol),
        task.kernel,
        stages[again],
        (np.where(observed, X, best.X), best.D),
        config,
        monitor,
    )
    return replace(final, settings=(*found.settings[: again.start], *final.settings))


def complete_table_as_paper(
    task: Task, rng: np.random.Generator, monitor: Monitor | None = None
) -> PathSolution:
    """Algorithm 1 of the paper, started as there: from zeros and a normal random dictionary.

    With bounds, which the paper does not have, every step is followed by a projection.
    """
    start = np.where(task.observed, task.X, 0).astype(task.X.dtype, copy=False)
    start = clip_missing(task.bounds, start, task.observed)
    D = rng.standard_normal((task.n_components, start.shape[1])).astype(start.dtype)
    solver = Newton(task.observed, bounds=task.bounds, tol=task.config.tol)
    monitor = monitor or Monitor()
    return minimize_path(solver, task.kernel, task.stages, (start, D), task.config, monitor)
