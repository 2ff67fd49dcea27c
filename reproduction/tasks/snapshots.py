"""A small table as it is filled: its values after some iterations, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank._typing import Array
from hirank.metrics import missing_relative_error
from reproduction.cells import Cell, Measurement
from reproduction.tasks.completion import judged
from reproduction.trial import Trial, fitted, trial_of


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit with more and more iterations, and tell the values of each fit.

    "x1", "x2" ... are the features, `at` the iterations of options["iterations"], `item` the
    sample; 0 iterations are zeros in the holes, from where Algorithm 1 starts. A method without
    that option has one fit, which counts as the last iteration. "snapshot error" is the error over
    missing entries then. "true x1" and "observed x1" (1 or
    0), at 0, are what it was about. Errors and time are those of the last fit.

    A fit of k iterations goes the same way as the first k of a longer one if tol is 0 and the
    algorithm does not look ahead: true of solver="newton".
    """
    trial = trial_of(cell)
    yield from _values("true x", trial.truth)
    yield from _values("observed x", trial.observed.astype(float))
    iterations = sorted(cell.options["iterations"])
    stepwise = cell.method.settings.get("solver") == "newton"
    for count in iterations[:-1] if stepwise else []:
        if count:
            filled = fitted(cell, trial.given, max_iter=count).filled
        else:
            filled = np.where(trial.observed, trial.truth, 0)
        yield from _snapshot(filled, trial, count)
    last = fitted(cell, trial.given, **({"max_iter": iterations[-1]} if stepwise else {}))
    yield from _snapshot(last.filled, trial, iterations[-1])
    yield from judged(trial, last)


def _snapshot(filled: Array, trial: Trial, at: float) -> Iterator[Measurement]:
    yield from _values("x", filled, at)
    error = missing_relative_error(filled, trial.truth, trial.observed)
    yield Measurement("snapshot error", error, at)


def _values(name: str, X: Array, at: float = 0.0) -> Iterator[Measurement]:
    """Every entry of X, n x m: feature j is measure `name` + j, from 1."""
    for (i, j), value in np.ndenumerate(X):
        yield Measurement(f"{name}{j + 1}", float(value), at, i)
