"""The paper's objective against the iteration: Algorithm 1 for one momentum, or hirank's solver.

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
from reproduction.methods import make
from reproduction.published import Algorithm1, Formula, algorithm_1, walk
from reproduction.trial import trial_of

POINTS = 150
"""Most iterations that are told of."""
FAR = 10.0
"""Times the first objective: a run that gets there has diverged."""
REST = 0.01
"""Part of the whole fall that may be left when a run counts as converged."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "objective" at iterations, "iterations to converge", "diverged", "fit seconds".

    Converged is the first iteration with an objective within 1 % of the whole fall of the lowest
    one of this run. A run whose objective is ten times what it was at first, or not
    finite, has diverged: it ends there.
    """
    trial, formula = trial_of(cell), make(cell.method, cell.seed)
    if type(formula) not in (Algorithm1, Formula):
        raise ValueError(
            f"convergence is for 'Algorithm 1' and 'L-BFGS'; got {cell.method.estimator!r}."
        )
    rng = np.random.default_rng(cell.seed)
    began = process_time()
    with Workers() as workers:  # BLAS on one thread: these products are small
        states: Iterator[State]
        if isinstance(formula, Algorithm1):
            states = algorithm_1(trial.truth, trial.observed, formula, rng)
        else:
            own = walk(LBFGS(trial.observed, workers), trial.truth, trial.observed, formula, rng)
            states = own
        objectives, diverged = curve(states, int(cell.options["iterations"]))
    seconds = process_time() - began
    for at in thinned(len(objectives)):
        yield Measurement("objective", float(objectives[at]), int(at))
    if not diverged:
        yield Measurement("iterations to converge", converged(objectives))
    yield Measurement("diverged", float(diverged))
    yield Measurement("fit seconds", seconds)


def curve(states: Iterator[State], iterations: int) -> tuple[Array, bool]:
    """The objective before and after each iteration, and whether it left its course."""
    objectives: list[float] = []
    for state in islice(states, iterations + 1):
        if objectives and state.objective > FAR * objectives[0]:
            break
        objectives.append(state.objective)
    return np.array(objectives), len(objectives) <= iterations


def thinned(count: int) -> IntArray:
    """At most `POINTS` of the numbers below `count`: denser at first, where most happens."""
    if count <= POINTS:
        return np.arange(count)
    half = POINTS // 2
    later = np.geomspace(half, count - 1, POINTS - half).round().astype(np.intp)
    return np.concatenate([np.arange(half), np.unique(later)])


def converged(objectives: Array) -> int:
    """The first iteration at which nearly all of the fall is done."""
    lowest = objectives.min()
    return int(np.argmax(objectives <= lowest + REST * (objectives[0] - lowest)))
