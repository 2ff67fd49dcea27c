"""An online method that goes over a table several times: how good the table is after each pass.

The table after a pass is what the method returned for each sample in that pass, as in Algorithm 2,
not what its last dictionary would make of all of them.

Options: `passes`, unless a method has `n_passes` of its own; `data`, options of the table; `each`,
false to tell of the last pass only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import process_time
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from hirank import OnlineKFMC
from hirank._typing import Array
from hirank.estimators.online_validation import check_online, plan_of
from hirank.online.algorithm2 import SampleStream
from reproduction.cells import Cell, Measurement
from reproduction.methods import make
from reproduction.trial import blocks, compile_once, errors, trial_of


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures the errors of the table at each pass, and "fit seconds" of all passes."""
    trial = trial_of(cell)
    passes = int(cell.method.settings.get("n_passes", cell.options["passes"]))
    model = make(cell.method, cell.seed, n_passes=passes)
    if is_algorithm_2(model):
        compile_once()
    told = {passes} | (set(range(1, passes)) if cell.options.get("each", True) else set())
    seconds, tables = 0.0, completed(model, trial.given, passes, told)
    for number in range(1, passes + 1):
        began = process_time()
        filled = next(tables)
        seconds += process_time() - began
        if filled is not None:
            yield from errors(filled, trial, number)
    yield Measurement("fit seconds", seconds)


def completed(model: Any, X: Array, passes: int, told: Collection[int]) -> Iterator[Array | None]:
    """The table, n x m with NaN in its holes, as a method completes it in each pass that is told.

    In the others methods need not complete anything, and those that learn without it are faster.
    """
    if is_algorithm_2(model):
        check_online(model)
        tables = empty(model, X.shape[1]).passes(X, plan_of(model))
        for number, (_, filled) in enumerate(tables, start=1):
            yield filled if number in told else None
        return
    # A table may have fewer rows than a stream would wait for, and in passes over it, rows of the
    # pass before fade: as `fit` has it.
    model.set_params(n_start=min(model.n_start, len(X)))
    if getattr(model, "memory", 0) is None:
        model.set_params(memory=float(len(X)))
    for number in range(1, passes + 1):
        parts = blocks(X, model.n_start if number == 1 else 0)
        if number in told:
            yield np.concatenate([model.partial_fit_transform(part) for part in parts])
            continue
        for part in parts:
            model.partial_fit(part)
        yield None


def empty(model: OnlineKFMC, width: int) -> SampleStream:
    """The stream that a model in "paper" mode begins with."""
    seed = int(check_random_state(model.random_state).randint(2**31))
    return SampleStream.empty(width, seed)


def is_algorithm_2(model: Any) -> bool:
    """Whether a model is the paper's online method."""
    return isinstance(model, OnlineKFMC) and model.mode == "paper"
