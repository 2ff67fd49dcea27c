"""The rank of a complete table, and the sampling rates of the paper's theory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank.theory import data_rank, kfmc_rate, low_rank_rate
from reproduction.cells import Cell, Measurement
from reproduction.data import load_table, structure


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield the rank of the complete table, that of the theory, and the rates of the paper."""
    options = cell.options.get("data", {})
    X = load_table(cell.data, cell.seed, **options).X
    yield Measurement("rank", float(np.linalg.matrix_rank(X)))
    yield Measurement("rank, theory", data_rank(**structure(cell.data, **options), constant=False))
    yield from measure_rates(cell)


def measure_rates(cell: Cell) -> Iterator[Measurement]:
    """Yield the share of the table that must be observed, by equation 36 of the paper."""
    parts = structure(cell.data, **cell.options.get("data", {}))
    yield Measurement("observed, KFMC in theory", kfmc_rate(**parts))
    yield Measurement("observed, low rank in theory", low_rank_rate(**parts))
