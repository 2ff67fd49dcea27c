"""Measure how time and memory of a method grow with samples, points of a dictionary or features."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

from reproduction.cells import Cell, Measurement
from reproduction.data import SURFACES
from reproduction.evaluate import (
    Fit,
    MaskedTable,
    complete_stream,
    fit_cell,
    make_masked_table,
    measure_errors,
)
from reproduction.methods import make_estimator


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit options["n"] samples; yield CPU seconds and the peak of memory. `at` is n.

    A method for streams gets the rows as a stream, and imputed rows are discarded. With
    options["new"], the time to impute so many new samples is measured as well.

    With options["r"] a dictionary has r points, with options["m"] the table m features, and `at` is
    that number. What the paper counts is measured then: the time of an iteration, for streams that
    of a sample, and for the out-of-sample extension that of a new one.
    """
    if "r" in cell.options or "m" in cell.options:
        yield _measure_step(cell)
        return
    at = int(cell.options["n"])
    table, new = make_tables(cell)
    fit = _fit(cell, table)
    yield from measure_errors(fit.filled, table, at)
    yield Measurement("fit seconds", fit.seconds, at)
    yield Measurement("seconds per sample", fit.seconds / len(table.truth), at)
    if len(new.truth) and hasattr(fit.model, "transform"):
        yield Measurement("seconds per new sample", _time_new(fit, new), at)
    del fit
    yield Measurement("peak MB", _measure_peak(cell, table) / 2**20, at)


def _measure_step(cell: Cell) -> Measurement:
    table, new = make_tables(cell)
    fit = _fit(cell, table)
    at = cell.options.get("r") or cell.options["m"]
    if cell.method.estimator == "OSE-KFMC":
        return Measurement("seconds per new sample", _time_new(fit, new), at)
    if _is_stream(cell):
        return Measurement("seconds per sample", fit.seconds / len(table.truth), at)
    return Measurement("seconds per iteration", fit.seconds / fit.model.n_iter_, at)


def make_tables(cell: Cell) -> tuple[MaskedTable, MaskedTable]:
    """Return the table to fit and that of new samples, from all surfaces each."""
    n, n_new = int(cell.options["n"]), int(cell.options.get("new", 0))
    more = {"n_features": cell.options["m"]} if "m" in cell.options else {}
    n_samples = -(-(n + n_new) // SURFACES[cell.data]["manifolds"])
    whole = make_masked_table(cell, n_samples=n_samples, shuffle=True, **more)
    truth, observed, _ = whole
    return MaskedTable(truth[:n], observed[:n]), MaskedTable(
        truth[n : n + n_new], observed[n : n + n_new]
    )


def _is_stream(cell: Cell) -> bool:
    return cell.method.estimator in ("OnlineImputer", "OnlineKFMC")


def _fit(cell: Cell, table: MaskedTable) -> Fit:
    settings = {"n_components": cell.options["r"]} if "r" in cell.options else {}
    if cell.method.estimator != "OSE-KFMC":
        return fit_cell(cell, table.X, stream=_is_stream(cell), **settings)
    model = make_estimator(cell.method, cell.seed, **settings)
    began = process_time()
    model.fit(table.truth)  # it is fitted to complete samples
    return Fit(model, table.truth, process_time() - began)


def _time_new(fit: Fit, new: MaskedTable) -> float:
    """Return the CPU seconds to impute one of the new samples."""
    began = process_time()
    fit.model.transform(new.X)
    return (process_time() - began) / len(new.truth)


def _measure_peak(cell: Cell, table: MaskedTable) -> int:
    """Return the peak of memory in bytes, without the table.

    It is that of a separate fit, since tracing memory takes time.
    """
    X = table.X
    tracemalloc.start()
    try:
        if _is_stream(cell):
            for _ in complete_stream(make_estimator(cell.method, cell.seed), X):
                pass
        else:
            fit_cell(cell, X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
