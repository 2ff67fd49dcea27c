"""The paper's objective against the iteration: Algorithm 1 with one momentum, or hirank's solver.

The method is "Algorithm 1" or "L-BFGS". Options: `iterations`; `data`, options of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import process_time

import numpy as np

from hirank._typing import Array, IntArray
from hirank.core.threads import Workers
from hirank.optim.lbfgs import LBFGS
from hirank.optim.loop import State
from reproduction.cells import Cell, Measurement
from reproduction.evaluate import make_masked_table
from reproduction.methods import make_estimator
from reproduction.published import Algorithm1, Formula, algorithm_1, iterate

MAX_POINTS = 150  # of a curve
DIVERGENCE = 10.0
"""A run diverges when its objective exceeds this multiple of the first one."""
TOLERANCE = 0.01
"""A run has converged when this share of the total decrease is left."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield "objective" at iterations, "iterations to converge", "diverged" and "fit seconds".

    A run converges at the first iteration with an objective within 1 % of its total decrease from
    its lowest objective. A run diverges, and ends, when its objective is not finite or is ten times
    what it was at first.
    """
    table, formula = make_masked_table(cell), make_estimator(cell.method, cell.seed)
    if type(formula) not in (Algorithm1, Formula):
        raise ValueError(
            f"convergence requires 'Algorithm 1' or 'L-BFGS'; got {cell.method.estimator!r}."
        )
    rng = np.random.default_rng(cell.seed)
    began = process_time()
    with Workers() as workers:  # BLAS on one thread: these products are small
        states: Iterator[State]
        if isinstance(formula, Algorithm1):
            states = algorithm_1(table.truth, table.observed, formula, rng)
        else:
            steps = LBFGS(table.observed, workers)
            own = iterate(steps, table.truth, table.observed, formula, rng)
            states = own  # in two steps: the type of its states is narrower
        objectives, diverged = trace_objective(states, int(cell.options["iterations"]))
    seconds = process_time() - began
    for at in thin(len(objectives)):
        yield Measurement("objective", float(objectives[at]), int(at))
    if not diverged:
        yield Measurement("iterations to converge", count_iterations(objectives))
    yield Measurement("diverged", float(diverged))
    yield Measurement("fit seconds", seconds)


def trace_objective(states: Iterator[State], iterations: int) -> tuple[Array, bool]:
    """Return the objective from the start on, and whether it diverged."""
    objectives: list[float] = []
    for state in islice(states, iterations + 1):
        if objectives and state.objective > DIVERGENCE * objectives[0]:
            break
        objectives.append(state.objective)
    return np.array(objectives), len(objectives) <= iterations


def thin(count: int) -> IntArray:
    """Return at most `MAX_POINTS` of the numbers below `count`, most of them small."""
    if count <= MAX_POINTS:
        return np.arange(count)
    half = MAX_POINTS // 2
    later = np.geomspace(half, count - 1, MAX_POINTS - half).round().astype(np.intp)
    return np.concatenate([np.arange(half), np.unique(later)])


def count_iterations(objectives: Array) -> int:
    """Return the first iteration at which nearly all of the decrease is reached."""
    lowest = objectives.min()
    return int(np.argmax(objectives <= lowest + TOLERANCE * (objectives[0] - lowest)))
