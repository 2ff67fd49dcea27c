"""The objective of Algorithm 1 against the iteration, for one momentum.

The settings of the method are those of `hirank.study.published.Formula`, and `momentum`. Options:
`iterations`; `table`, options of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import process_time

import numpy as np
from numpy.typing import NDArray

from hirank.model.workers import Workers
from hirank.study.cells import Cell, Measurement
from hirank.study.data import holes, table
from hirank.study.published import Formula, algorithm_1

POINTS = 150
"""Most iterations that are told of."""
REST = 0.01
"""Part of the whole fall that may be left when a run counts as converged."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "objective" at iterations from 0 on, "iterations to converge" and "fit seconds".

    Converged is the first iteration from which on the objective is within 1 % of its whole fall of
    the lowest value of this run. A run that diverges has no such number.
    """
    truth = table(cell.data, cell.seed, **cell.options.get("table", {})).X
    observed = holes(truth, cell.pattern, cell.rate, cell.seed)
    settings = {**cell.method.settings}
    momentum, iterations = float(settings.pop("momentum")), int(cell.options["iterations"])
    rng = np.random.default_rng(cell.seed)
    states = algorithm_1(truth, observed, Formula(**settings), rng, momentum=momentum)
    began = process_time()
    with Workers():  # BLAS on one thread: these products are small
        objectives = np.array([state.objective for state in islice(states, iterations + 1)])
    seconds = process_time() - began
    for at in thinned(len(objectives)):
        yield Measurement("objective", float(objectives[at]), int(at))
    if len(objectives) == iterations + 1 and objectives[-1] < objectives[0]:
        yield Measurement("iterations to converge", converged(objectives))
    yield Measurement("fit seconds", seconds)


def thinned(count: int) -> NDArray[np.intp]:
    """At most `POINTS` of the numbers below `count`: denser at first, where most happens."""
    if count <= POINTS:
        return np.arange(count)
    half = POINTS // 2
    later = np.geomspace(half, count - 1, POINTS - half).round().astype(np.intp)
    return np.concatenate([np.arange(half), np.unique(later)])


def converged(objectives: NDArray[np.float64]) -> int:
    """The first iteration from which on nearly all of the fall is done."""
    lowest = objectives.min()
    above = np.flatnonzero(objectives - lowest > REST * (objectives[0] - lowest))
    return int(above[-1]) + 1 if len(above) else 0
