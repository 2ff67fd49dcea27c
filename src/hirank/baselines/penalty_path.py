"""A path of falling penalties, and the selection of its end on held-out entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import mask_entries
from hirank.optim.loop import S, Solution, Solver, minimize_each
from hirank.optim.path import path_to
from hirank.optim.trace import Monitor

Begin: TypeAlias = tuple[S, Callable[[float], Solver[S]]]
Found: TypeAlias = tuple[float, Solution[S]]


@dataclass(frozen=True)
class PenaltyPath(ABC, Generic[S]):
    """Minimizes for one penalty after the other, each from the state before."""

    max_iter: int  # steps for each penalty
    tol: float
    monitor: Monitor

    penalties: ClassVar[tuple[float, ...]]
    default: ClassVar[float] = 0.01  # for tables with too few entries to hold any out
    as_good: ClassVar[float] = 1.01  # times the lowest error: of such penalties the last is taken
    patience: ClassVar[int] = 100  # penalties in a row with larger errors that end the search

    @abstractmethod
    def begin(self, X: Array, observed: BoolArray) -> Begin[S]:
        """Return the first state for X, n x m, and what makes a solver for a penalty."""

    @abstractmethod
    def impute(self, state: S) -> Array:
        """Return the table, n x m, that imputed values are taken from."""

    def fit(
        self, X: Array, observed: BoolArray, end: float | str, rng: np.random.Generator
    ) -> Found[S]:
        """Follow the path to its end; "auto" selects the one that recovers held-out entries best.

        X, n x m, must be 0 where not observed. Returns the penalty that was reached, and its
        solution.
        """
        held_out = np.zeros_like(observed)
        if end == "auto":
            end, held_out = self.default, mask_entries(observed, rng, selecting=True)
        if held_out.any():
            best = self._select_end(X, observed & ~held_out, held_out)
            if self.monitor.stopped:
                return best
            end = best[0]
        *_, last = self._follow(X, observed, path_to(self.penalties, float(end)))
        return last

    def _follow(
        self, X: Array, observed: BoolArray, penalties: Sequence[float]
    ) -> Iterator[Found[S]]:
        start, make_solver = self.begin(X, observed)
        solvers = ((penalty, make_solver(penalty)) for penalty in penalties)
        return minimize_each(solvers, start, max_iter=self.max_iter, monitor=self.monitor)

    def _select_end(self, X: Array, training: BoolArray, held_out: BoolArray) -> Found[S]:
        errors: list[float] = []
        for found in self._follow(np.where(training, X, 0), training, self.penalties):
            imputed = self.impute(found[1].state)
            errors.append(float(np.mean(np.abs((imputed - X)[held_out]))))
            if errors[-1] <= self.as_good * min(errors):
                best = found
            if len(errors) - 1 - int(np.argmin(errors)) >= self.patience:
                break
        return best
