"""Out-of-sample extension: a method learns from a complete table and fills holes in new samples.

Every second row of the table is new, the others are learned from. Option: `data`, options of the
table, such as `n_samples` on each surface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import process_time
from typing import Any

from hirank._typing import Array
from reproduction.cells import Cell, Measurement
from reproduction.data import holes, table
from reproduction.methods import make
from reproduction.trial import Trial, errors


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures the errors of the new samples, and times.

    "fit seconds" are those of learning, "seconds per sample" those of filling.
    """
    X = table(cell.data, cell.seed, **cell.options.get("data", {})).X
    known, new = X[::2], X[1::2]
    trial = Trial(new, holes(new, cell.pattern, cell.rate, cell.seed), None)
    model, seconds = learned(
        replace(cell, rate=0.0).key, lambda: make(cell.method, cell.seed), known
    )
    began = process_time()
    filled = model.transform(trial.given)
    each = (process_time() - began) / len(new)
    yield from errors(filled, trial)
    yield Measurement("fit seconds", seconds)
    yield Measurement("seconds per sample", each)


_models: dict[str, tuple[Any, float]] = {}


def learned(key: str, new: Callable[[], Any], known: Array) -> tuple[Any, float]:
    """A model fitted to complete rows, n x m, and the CPU time that took.

    The holes of new samples have no part in it: cells that differ in their rate only share it, if
    the same process runs them.
    """
    if key not in _models:
        model = new()
        began = process_time()
        model.fit(known)
        _models[key] = model, process_time() - began
    return _models[key]
