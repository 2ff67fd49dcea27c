"""Measure how time and memory of a method grow with the number of samples."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

from reproduction.cells import Cell, Measurement
from reproduction.data import SURFACES
from reproduction.evaluate import (
    MaskedTable,
    complete_stream,
    fit_cell,
    make_masked_table,
    measure_errors,
)
from reproduction.methods import make_estimator


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit options["n"] samples; yield CPU seconds, in all and per sample, and the peak of memory.

    The peak is that of a separate fit, since tracing memory takes time; it excludes the table. A
    method for streams gets the rows as a stream, and imputed rows are discarded. With
    options["new"], the time to impute so many new samples is measured as well. `at` is n.
    """
    n, n_new = int(cell.options["n"]), int(cell.options.get("new", 0))
    surfaces = SURFACES[cell.data]["manifolds"]
    # Shuffled, so that the first n are from all surfaces, and the new ones as well.
    whole = make_masked_table(cell, n_samples=-(-(n + n_new) // surfaces), shuffle=True)
    table = MaskedTable(whole.truth[:n], whole.observed[:n])
    X, new = table.X, whole.X[n : n + n_new]
    stream = cell.method.estimator in ("OnlineImputer", "OnlineKFMC")
    fit = fit_cell(cell, X, stream=stream)
    yield from measure_errors(fit.filled, table, n)
    yield Measurement("fit seconds", fit.seconds, n)
    yield Measurement("seconds per sample", fit.seconds / n, n)
    if n_new and hasattr(fit.model, "transform"):
        began = process_time()
        fit.model.transform(new)
        yield Measurement("seconds per new sample", (process_time() - began) / n_new, n)
    del fit
    tracemalloc.start()
    try:
        if stream:
            for _ in complete_stream(make_estimator(cell.method, cell.seed), X):
                pass
        else:
            fit_cell(cell, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    yield Measurement("peak MB", peak / 2**20, n)
