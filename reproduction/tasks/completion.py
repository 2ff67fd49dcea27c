"""Measure how well a method imputes a table, and in what time."""

from __future__ import annotations

from collections.abc import Iterator

from reproduction.cells import Cell, Measurement
from reproduction.evaluate import fit_cell, make_masked_table, measure_fit


def run(cell: Cell) -> Iterator[Measurement]:
    """Impute the table of a cell; yield its errors, and the CPU time of the fit alone."""
    table = make_masked_table(cell)
    yield from measure_fit(fit_cell(cell, table.X), table)
