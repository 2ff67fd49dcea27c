"""How time and memory of a method grow with the number of samples."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

import numpy as np

from hirank._typing import Array
from reproduction.cells import Cell, Measurement
from reproduction.data import SURFACES
from reproduction.methods import make
from reproduction.trial import Fit, Trial, compile_once, errors, fitted, stream, trial_of


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit options["n"] samples: CPU seconds, in all and per sample, and the peak of memory.

    The peak is that of a fit of its own, since watching memory takes time; the table itself does
    not count. A method for streams gets rows as a stream, and what it has completed is let go.
    With options["new"], also the time to complete so many new samples, each. `at` is n throughout.
    """
    n, new = int(cell.options["n"]), int(cell.options.get("new", 0))
    surfaces = SURFACES[cell.data]["manifolds"]
    # Shuffled, so that the first n are from all surfaces and new ones from the same.
    whole = trial_of(cell, n_samples=-(-(n + new) // surfaces), shuffle=True)
    trial = Trial(whole.truth[:n], whole.observed[:n], None)
    given, more = trial.given, whole.given[n : n + new]
    streaming = cell.method.estimator == "OnlineKFMC"
    fit = _streamed(cell, given) if streaming else fitted(cell, given)
    yield from errors(fit.filled, trial, n)
    yield Measurement("fit seconds", fit.seconds, n)
    yield Measurement("seconds per sample", fit.seconds / n, n)
    if new and hasattr(fit.model, "transform"):
        began = process_time()
        fit.model.transform(more)
        yield Measurement("seconds per new sample", (process_time() - began) / new, n)
    del fit
    tracemalloc.start()
    try:
        if streaming:
            for _ in stream(make(cell.method, cell.seed), given):
                pass
        else:
            fitted(cell, given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    yield Measurement("peak MB", peak / 2**20, n)


def _streamed(cell: Cell, X: Array) -> Fit:
    compile_once()
    model = make(cell.method, cell.seed)
    began = process_time()
    filled = np.concatenate(list(stream(model, X)))
    return Fit(model, filled, process_time() - began)
