"""Measure how well a method imputes tables of more and more samples of the same structure."""

from __future__ import annotations

from collections.abc import Iterator

from reproduction.cells import Cell, Measurement
from reproduction.evaluate import fit_cell, make_masked_table, measure_errors


def run(cell: Cell) -> Iterator[Measurement]:
    """Impute options["n"] samples; yield the errors, and the CPU time of the fit. `at` is n."""
    n = int(cell.options["n"])
    table = make_masked_table(cell, n_samples=n)
    fit = fit_cell(cell, table.X)
    yield from measure_errors(fit.filled, table, n)
    yield Measurement("fit seconds", fit.seconds, n)
