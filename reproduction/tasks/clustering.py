"""Subspace clustering of a table that was completed first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank.cluster import SSC
from hirank.metrics import clustering_error
from reproduction.cells import Cell, Measurement
from reproduction.tasks.completion import judged
from reproduction.trial import fitted, trial_of

ALPHAS = (20.0, 100.0, 800.0)
"""Weights that SSC is tried with. The paper takes three as well, of a number it does not define."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Complete the table of a cell, and cluster its rows.

    "clustering error" is the lowest over options["alphas"], chosen with the truth as the paper
    does; "clustering error, default" is what the default of SSC gives.
    """
    trial = trial_of(cell)
    if trial.labels is None:
        raise ValueError(f"{cell.data!r} has no groups to find: choose a table with labels.")
    fit = fitted(cell, trial.given)
    yield from judged(trial, fit)
    groups = len(np.unique(trial.labels))
    default = SSC().alpha
    found = {
        alpha: clustering_error(
            trial.labels, SSC(groups, alpha=alpha, random_state=cell.seed).fit_predict(fit.filled)
        )
        for alpha in {default, *map(float, cell.options.get("alphas", ALPHAS))}
    }
    yield Measurement("clustering error", min(found.values()))
    yield Measurement("clustering error, default", found[default])
