"""Out-of-sample extension: fit a method to a complete table, and impute new samples.

Every second row of the table is new, the others are fitted. Option: `data`, options of the table,
such as `n_samples` on each surface.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import process_time
from typing import Any

from hirank._typing import Array
from reproduction.cells import Cell, Measurement
from reproduction.data import draw_observed, load_table
from reproduction.evaluate import MaskedTable, measure_errors
from reproduction.methods import make_estimator


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield the errors of the new samples, and times.

    "fit seconds" is the time of the fit, "seconds per sample" that of imputing a sample.
    """
    X = load_table(cell.data, cell.seed, **cell.options.get("data", {})).X
    known, new = X[::2], X[1::2]
    table = MaskedTable(new, draw_observed(new, cell.pattern, cell.rate, cell.seed))
    model, seconds = fit_once(cell, known)
    began = process_time()
    filled = model.transform(table.X)
    seconds_per_sample = (process_time() - began) / len(new)
    yield from measure_errors(filled, table)
    yield Measurement("fit seconds", seconds)
    yield Measurement("seconds per sample", seconds_per_sample)


_models: dict[str, tuple[Any, float]] = {}


def fit_once(cell: Cell, X: Array) -> tuple[Any, float]:
    """Return the method of a cell, fitted to complete rows, n x m, and the CPU time of the fit.

    The fit does not depend on missing entries of new samples: cells that differ in their rate only
    share it, if they are run by the same process.
    """
    key = replace(cell, rate=0.0).key
    if key not in _models:
        model = make_estimator(cell.method, cell.seed)
        began = process_time()
        model.fit(X)
        _models[key] = model, process_time() - began
    return _models[key]
