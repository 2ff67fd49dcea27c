"""Snapshots of a small table while it is imputed: its values after some iterations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank._typing import Array
from hirank.metrics import missing_relative_error
from reproduction.cells import Cell, Measurement
from reproduction.evaluate import MaskedTable, fit_cell, make_masked_table, measure_fit


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit with increasing numbers of iterations, and yield the values of each fit.

    "x1", "x2" ... are the features, `at` the iterations of options["iterations"], `item` the
    sample; 0 iterations are zeros for missing entries, where Algorithm 1 starts. A method without
    that option is fitted once, which counts as the last iteration. "snapshot error" is the error
    over missing entries. "true x1" and "observed x1" (1 or 0), at 0, are the truth and the mask.
    Errors and time are those of the last fit.

    A fit of k iterations equals the first k of a longer one if tol is 0 and the algorithm does not
    look ahead, which is true of solver="newton".
    """
    table = make_masked_table(cell)
    yield from _values("true x", table.truth)
    yield from _values("observed x", table.observed.astype(float))
    iterations = sorted(cell.options["iterations"])
    stepwise = cell.method.settings.get("solver") == "newton"
    for count in iterations[:-1] if stepwise else []:
        if count:
            filled = fit_cell(cell, table.X, max_iter=count).filled
        else:
            filled = np.where(table.observed, table.truth, 0)
        yield from _snapshot(filled, table, count)
    last = fit_cell(cell, table.X, **({"max_iter": iterations[-1]} if stepwise else {}))
    yield from _snapshot(last.filled, table, iterations[-1])
    yield from measure_fit(last, table)


def _snapshot(filled: Array, table: MaskedTable, at: float) -> Iterator[Measurement]:
    yield from _values("x", filled, at)
    error = missing_relative_error(filled, table.truth, table.observed)
    yield Measurement("snapshot error", error, at)


def _values(name: str, X: Array, at: float = 0.0) -> Iterator[Measurement]:
    """Yield every entry of X, n x m; the measure of feature j is `name` + j, from 1."""
    for (i, j), value in np.ndenumerate(X):
        yield Measurement(f"{name}{j + 1}", float(value), at, i)
