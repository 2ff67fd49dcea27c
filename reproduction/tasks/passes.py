"""Several passes of an online method over a table: how accurate the table is after each.

The table after a pass is what the method returned for each sample in that pass, as in Algorithm 2,
not the table that its last dictionary would give.

Options: `passes`, unless a method has its own `n_passes`; `data`, options of the table; `each`,
false to measure the last pass only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import process_time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hirank import OnlineKFMC
from hirank._typing import Array
from hirank.online.algorithm2 import Algorithm2Stream
from reproduction.cells import Cell, Measurement
from reproduction.evaluate import make_masked_table, measure_errors, split_rows
from reproduction.methods import make_estimator


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield the errors of the table after each pass, and "fit seconds" of all passes."""
    table = make_masked_table(cell)
    n_passes = int(cell.method.settings.get("n_passes", cell.options["passes"]))
    model = make_estimator(cell.method, cell.seed, n_passes=n_passes)
    measured = {n_passes} | (set(range(1, n_passes)) if cell.options.get("each", True) else set())
    seconds, tables = 0.0, run_passes(model, table.X, n_passes, measured)
    for number in range(1, n_passes + 1):
        began = process_time()
        filled = next(tables)
        seconds += process_time() - began
        if filled is not None:
            yield from measure_errors(filled, table, number)
    yield Measurement("fit seconds", seconds)


def run_passes(
    model: Any, X: Array, n_passes: int, measured: Collection[int]
) -> Iterator[Array | None]:
    """Yield the table, n x m, as imputed in each pass; None for passes that are not measured.

    Methods that can learn without imputing are faster in passes that are not measured.
    """
    if is_algorithm_2(model):
        model._check_params()
        tables = make_stream(model, X.shape[1]).passes(X, model._config())
        for number, (_, filled) in enumerate(tables, start=1):
            yield filled if number in measured else None
        return
    # As in `fit`: a table may have fewer rows than the warm-up, and the rows of the previous pass
    # are forgotten gradually.
    model.set_params(n_warmup=min(model.n_warmup, len(X)))
    if getattr(model, "memory", 0) is None:
        model.set_params(memory=float(len(X)))
    for number in range(1, n_passes + 1):
        parts = split_rows(X, model.n_warmup if number == 1 else 0)
        if number in measured:
            yield np.concatenate([model.partial_fit_transform(part) for part in parts])
            continue
        for part in parts:
            model.partial_fit(part)
        yield None


def make_stream(model: OnlineKFMC, width: int) -> Algorithm2Stream:
    """Return the empty stream that Algorithm 2 starts with."""
    seed = int(check_random_state(model.random_state).randint(2**31))
    return Algorithm2Stream.empty(width, seed)


def is_algorithm_2(model: Any) -> bool:
    """Return whether a model is the paper's online method."""
    return isinstance(model, OnlineKFMC)
