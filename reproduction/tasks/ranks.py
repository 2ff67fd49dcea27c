"""What theory says of a table, and the rank that it has: nothing is completed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank.theory import data_rank, kfmc_rate, low_rank_rate
from reproduction.cells import Cell, Measurement
from reproduction.data import structure, table


def run(cell: Cell) -> Iterator[Measurement]:
    """The rank of the complete table, what it should be, and the rates of the paper."""
    options = cell.options.get("data", {})
    X = table(cell.data, cell.seed, **options).X
    yield Measurement("rank", float(np.linalg.matrix_rank(X)))
    yield Measurement("rank, theory", data_rank(**structure(cell.data, **options), constant=False))
    yield from rates(cell)


def rates(cell: Cell) -> Iterator[Measurement]:
    """The part of the table of a cell that must be observed, as the paper has it (equation 36)."""
    parts = structure(cell.data, **cell.options.get("data", {}))
    yield Measurement("observed, KFMC in theory", kfmc_rate(**parts))
    yield Measurement("observed, low rank in theory", low_rank_rate(**parts))
