"""How time and memory of a method grow with the number of samples."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

from hirank.study.cells import Cell, Measurement
from hirank.study.data import SURFACES
from hirank.study.trial import Trial, errors, fitted, trial_of


def run(cell: Cell) -> Iterator[Measurement]:
    """Fit options["n"] samples: CPU seconds, in all and per sample, and the peak of memory.

    The peak is that of a fit of its own, since watching memory takes time. With options["new"],
    also the time to complete so many new samples, each. `at` is n throughout.
    """
    n, new = int(cell.options["n"]), int(cell.options.get("new", 0))
    surfaces = SURFACES[cell.data]["manifolds"]
    # Shuffled, so that the first n are from all surfaces and new ones from the same.
    whole = trial_of(cell, n_samples=-(-(n + new) // surfaces), shuffle=True)
    trial = Trial(whole.truth[:n], whole.observed[:n], None)
    fit = fitted(cell, trial.given)
    yield from errors(fit.filled, trial, n)
    yield Measurement("fit seconds", fit.seconds, n)
    yield Measurement("seconds per sample", fit.seconds / n, n)
    if new and hasattr(fit.model, "transform"):
        more = whole.given[n : n + new]
        began = process_time()
        fit.model.transform(more)
        yield Measurement("seconds per new sample", (process_time() - began) / new, n)
    tracemalloc.start()
    try:
        fitted(cell, trial.given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    yield Measurement("peak MB", peak / 2**20, n)
