"""An online method that goes over a table several times: how good the table is after each pass.

The table after a pass is what the method returned for each sample in that pass, as in Algorithm 2,
not what its last dictionary would make of all of them.

Options: `passes`, unless a method has `n_passes` of its own; `table`, options of the table; `each`,
false to tell of the last pass only.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from hirank import OnlineKFMC
from hirank.estimators.online_parameters import check_online, plan_of
from hirank.kernels import Array
from hirank.metrics import missing_relative_error, relative_error
from hirank.streams.paper import SampleStream
from hirank.study.cells import Cell, Measurement
from hirank.study.data import holes, table
from hirank.study.methods import make

BLOCK = 50
"""Rows that are given together to methods that learn from mini-batches."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "relative error" and "missing error" at each pass, "fit seconds" of all passes."""
    truth = table(cell.data, cell.seed, **cell.options.get("table", {})).X
    observed = holes(truth, cell.pattern, cell.rate, cell.seed)
    passes = int(cell.method.settings.get("n_passes", cell.options["passes"]))
    model = make(cell.method, cell.seed, n_passes=passes)
    warm_up(model)
    seconds, tables = 0.0, completed(model, np.where(observed, truth, np.nan), passes)
    for number in range(1, passes + 1):
        began = process_time()
        filled = next(tables)
        seconds += process_time() - began
        if number == passes or cell.options.get("each", True):
            yield Measurement("relative error", relative_error(filled, truth), number)
            error = missing_relative_error(filled, truth, observed)
            yield Measurement("missing error", error, number)
    yield Measurement("fit seconds", seconds)


def completed(model: Any, X: Array, passes: int) -> Iterator[Array]:
    """The table, n x m with NaN in its holes, as a method completes it in each pass."""
    if isinstance(model, OnlineKFMC) and model.mode == "paper":
        check_online(model)
        for _, filled in empty(model, X.shape[1]).passes(X, plan_of(model)):
            yield filled
        return
    # A table may have fewer rows than a stream would wait for, and in passes over it, rows of the
    # pass before fade: as `fit` has it.
    model.set_params(n_start=min(model.n_start, len(X)))
    if getattr(model, "memory", 0) is None:
        model.set_params(memory=float(len(X)))
    first = max(BLOCK, model.n_start)
    for number in range(passes):
        parts = np.split(X, range(BLOCK if number else first, len(X), BLOCK))
        yield np.concatenate([model.partial_fit_transform(part) for part in parts])


def empty(model: OnlineKFMC, width: int) -> SampleStream:
    """The stream that a model in "paper" mode with a number for random_state begins with."""
    seed = int(np.random.RandomState(model.random_state).randint(2**31))  # noqa: NPY002
    return SampleStream.empty(width, seed)


def warm_up(model: Any) -> None:
    """Let Numba compile, or find, what the clock should not count."""
    if isinstance(model, OnlineKFMC) and model.mode == "paper":
        OnlineKFMC(2, mode="paper", max_iter=1).fit(np.eye(3))
