"""Imputation of new rows with a fixed dictionary, each solved on its own.

A row starts from the nearest point of the dictionary and goes through stages of the path. How many,
and how far, depends on how much of it is missing (docs/notes/out_of_sample.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, clip_missing, make_box
from hirank.core.objective import Basis
from hirank.core.threads import Workers
from hirank.optim.algorithm3 import Algorithm3Config, run_algorithm3
from hirank.optim.path import Setting
from hirank.optim.rows import MAX_TABLE, ROWS_PER_BLOCK, RowRules, RowSolver, pad, stack

BLOCK = 10 * ROWS_PER_BLOCK
"""Rows that are solved together, at most."""
MAX_BLOCK_COST = 1e9
"""Multiplications of a block: a thread that solves one cannot be interrupted."""
MEMORY = 6
ROUNDS = 30
"""Evaluations per stage, at most."""
DAMPING = 0.03
"""Of the curvature, in its mean diagonals: 0.1 takes a tenth more evaluations to the same error."""
LAST_TOLERANCE = 1e-7
"""Of steps in the last stage, in units of the spread of the dictionary, at least,"""
NOISE_TOLERANCE = 3e-3
"""and in units of the noise that its ridge stands for."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""A decrease of F, in mean diagonals of k(D, D), that rounding may cause."""
MAX_CURVED = 256
"""Features up to which the curvature is used: its factors take time in proportion to their cube."""
PLAIN_ROUNDS = 14
"""Evaluations per stage without curvature, in all stages and to the last."""
MAX_KEPT = 1 << 28
"""Bytes of what is computed once for a dictionary, up to which it stays in memory."""
TYPICAL_STEPS = 30
"""Of Algorithm 3, to estimate its cost (docs/notes/out_of_sample.md)."""


class Plan(NamedTuple):
    """The stages of rows, and how closely they are followed."""

    max_missing: float  # part of the features up to which the plan holds
    n_stages: int | None  # evenly spaced, from the first to the last; None for all
    tolerance: float  # of steps in all stages but the last, in units of the dictionary's spread

    def stages(self, total: int) -> list[int]:
        """Return the positions of its stages, of `total`."""
        count = total if self.n_stages is None else min(self.n_stages, total)
        return [round(stage) for stage in np.linspace(total - 1, 0, count)[::-1].tolist()]


# Measured in docs/notes/out_of_sample.md. Where little is missing, the stages between the first and
# the last gain nothing; where much is missing, they lead to the right surface.
PLANS = (Plan(0.35, 2, 1e-2), Plan(0.6, 4, 1e-2), Plan(1.0, None, 1e-3))


@dataclass(frozen=True, eq=False)
class RowImputer:
    """Imputes rows along the stages of a fit. What depends on the dictionary is computed once."""

    D: Array  # r x m
    settings: Sequence[Setting]
    rounds: int = ROUNDS
    bounds: Bounds | None = None

    @property
    def nbytes(self) -> int:
        """About how much memory is taken by what is computed once."""
        r, m = self.D.shape
        table = min(MAX_TABLE, 2 * r * m * m) if m <= MAX_CURVED else 0
        return len(self.settings) * (16 * r * (r + m) + table)

    @cached_property
    def solvers(self) -> tuple[RowSolver, ...]:
        """One for each stage."""
        return tuple(RowSolver.prepare(setting.basis(self.D)) for setting in self.settings)

    @cached_property
    def spread(self) -> float:
        """Root mean square distance of the points from their mean, by feature."""
        return float(np.sqrt(np.square(self.D - self.D.mean(axis=0)).mean(dtype=np.float64)))

    def complete(self, X: Array, observed: BoolArray, workers: Workers) -> Array:
        """Impute the missing entries of X, n x m.

        Every row starts from the dictionary point that is nearest on its observed entries, or from
        the nearest values within the bounds.
        """
        n, (r, m) = len(X), self.D.shape
        if not n or not self.settings:
            return X.copy()
        filled = np.array(X, dtype=np.float64, order="C")
        observed = np.ascontiguousarray(observed)
        row_cost = 2.0 * r * (r + 2 * m) * (self.rounds + len(self.settings))
        size = int(np.clip(MAX_BLOCK_COST // row_cost, ROWS_PER_BLOCK, BLOCK))
        blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]

        def complete(rows: slice) -> None:
            self._complete_block(filled[rows], observed[rows])

        for _ in workers.map(complete, blocks, n * row_cost):
            pass
        return np.where(observed, X, filled.astype(X.dtype, copy=False))

    def _complete_block(self, x: Array, observed: BoolArray) -> None:
        """Impute rows, b x m, in place."""
        start = self.D[self.solvers[0].nearest(x, observed)]
        x[...] = clip_missing(self.bounds, np.where(observed, x, start), observed)
        plans = np.searchsorted(
            [plan.max_missing for plan in PLANS[:-1]], 1 - observed.mean(axis=1)
        )
        for number in set(plans.tolist()):
            rows = np.flatnonzero(plans == number)
            for solver, rules in self._steps[number]:
                solver.minimize(x, observed, rules, rows=rows, bounds=self.bounds)

    @cached_property
    def _steps(self) -> list[list[tuple[RowSolver, RowRules]]]:
        """The solvers of each plan, in order, and their rules."""
        total = len(self.settings)
        if self.D.shape[1] > MAX_CURVED:
            rules = RowRules(min(self.rounds, PLAIN_ROUNDS), MEMORY)
            return [[(solver, rules) for solver in self.solvers]] * len(PLANS)
        return [
            [
                (self.solvers[stage], self._rules(plan, stage, last=stage == total - 1))
                for stage in plan.stages(total)
            ]
            for plan in PLANS
        ]

    def _rules(self, plan: Plan, stage: int, *, last: bool) -> RowRules:
        setting = self.settings[stage]
        unit = float(np.mean(setting.kernel.diag(self.D)))
        tolerance = plan.tolerance
        if last:
            tolerance = max(LAST_TOLERANCE, NOISE_TOLERANCE * float(np.sqrt(setting.beta / unit)))
        return RowRules(
            self.rounds,
            MEMORY,
            tolerance=self.spread * tolerance,
            min_decrease=ROUNDING * unit,
            damping=DAMPING,
        )


def complete_by_algorithm3(
    X: Array,
    observed: BoolArray,
    basis: Basis,
    config: Algorithm3Config,
    workers: Workers,
    *,
    bounds: Bounds | None = None,
) -> Array:
    """Impute the missing entries of X, n x m, by Algorithm 3 of the paper, starting from 0."""
    basis.prepare()

    def block(rows: slice) -> Array:
        x, seen = pad(X[rows], 0), pad(observed[rows], True)
        start = stack(np.where(seen, x, 0))
        box = make_box(bounds, stack(seen), x.dtype)
        done = run_algorithm3(start, stack(seen), basis, config, box).result()
        return done.reshape(x.shape)[: rows.stop - rows.start]

    n, r = len(X), len(basis.D)
    # Smaller than BLOCK: a block takes as many steps as its slowest row.
    size = 4 * ROWS_PER_BLOCK
    blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)]
    filled = [*workers.map(block, blocks, 1.0 * n * r * (r + X.shape[1]) * TYPICAL_STEPS)]
    return np.where(observed, X, np.concatenate(filled)) if filled else X.copy()
