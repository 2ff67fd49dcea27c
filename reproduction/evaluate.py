"""Fit the method of a cell to its masked table, and measure errors."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from hirank import OnlineImputer, OnlineKFMC
from hirank._typing import Array, BoolArray, IntArray
from hirank.metrics import missing_relative_error, relative_error, standardized_rmse
from reproduction.cells import Cell, Measurement
from reproduction.data import draw_observed, load_table
from reproduction.methods import make_estimator

MIN_SPREAD = 1e-6
"""Features with a smaller standard deviation, relative to the largest, are rounding errors."""
BLOCK_ROWS = 50
"""Rows of a stream that arrive together."""


class MaskedTable(NamedTuple):
    """A complete table and the mask of its observed entries."""

    truth: Array  # n x m
    observed: BoolArray  # n x m
    labels: IntArray | None = None  # n, the group of each row

    @property
    def X(self) -> Array:
        """Return the table with NaN for missing entries, n x m."""
        return np.where(self.observed, self.truth, np.nan)


def make_masked_table(cell: Cell, **more: Any) -> MaskedTable:
    """Return the masked table of a cell; `more` options override its options["data"]."""
    truth, labels = load_table(cell.data, cell.seed, **{**cell.options.get("data", {}), **more})
    return MaskedTable(truth, draw_observed(truth, cell.pattern, cell.rate, cell.seed), labels)


class Fit(NamedTuple):
    """A fitted estimator, the table that it imputed, and the CPU time of the fit."""

    model: Any
    filled: Array  # n x m
    seconds: float


def fit_cell(cell: Cell, X: Array, *, stream: bool = False, **more: Any) -> Fit:
    """Fit the method of a cell to X, n x m with NaN for missing entries.

    `more` settings override those of the method. A model with a window gets the rows as a stream,
    as do all models with `stream`; others get the whole table.
    """
    model = make_estimator(cell.method, cell.seed, **more)
    stream = stream or isinstance(model, OnlineImputer)
    began = process_time()
    if stream:
        filled = np.concatenate(list(complete_stream(model, X)))
    else:
        filled = np.asarray(model.fit_transform(X))
    return Fit(model, filled, process_time() - began)


def complete_stream(model: OnlineImputer | OnlineKFMC, X: Array) -> Iterator[Array]:
    """Yield blocks of rows of X, n x m, imputed on arrival, before the model learns from them.

    The first block is as large as the model's warm-up. At the end of a table, a model with a window
    no longer knows its beginning, so this is how it is meant to be used.
    """
    for part in split_rows(X, model.n_warmup):
        yield np.asarray(model.partial_fit_transform(part))


def split_rows(X: Array, first: int = 0) -> list[Array]:
    """Split X, n x m, into blocks of rows; the first one has `first` rows if that is more."""
    return np.split(X, range(max(first, BLOCK_ROWS), len(X), BLOCK_ROWS))


def measure_errors(filled: Array, table: MaskedTable, at: float = 0.0) -> Iterator[Measurement]:
    """Measure errors of an imputed table, n x m: the paper's, and two over missing entries."""
    truth, observed, _ = table
    spread = truth.std(axis=0)
    varies = spread > MIN_SPREAD * spread.max()
    standardized = standardized_rmse(filled[:, varies], truth[:, varies], observed[:, varies])
    yield Measurement("relative error", relative_error(filled, truth), at)
    yield Measurement("missing error", missing_relative_error(filled, truth, observed), at)
    yield Measurement("standardized error", standardized, at)


def measure_fit(fit: Fit, table: MaskedTable) -> Iterator[Measurement]:
    """Measure the errors and the time of a fit."""
    yield from measure_errors(fit.filled, table)
    yield Measurement("fit seconds", fit.seconds)
