"""Rows in order of time: what the models fill in, and what neighbors in time say, together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hirank.choice.chosen import Chosen
from hirank.choice.folds import folds
from hirank.kernels import Array
from hirank.solvers.gaps import hide_like
from hirank.solvers.ordered import Drift, learn


@dataclass(frozen=True)
class InTime:
    """The times of n rows, in any order, all different."""

    times: NDArray[np.float64]

    @property
    def order(self) -> NDArray[np.intp]:
        return np.argsort(self.times, kind="stable")

    def hidden(
        self, observed: NDArray[np.bool_], rng: np.random.Generator
    ) -> list[NDArray[np.bool_]]:
        """Entries to hide, n x v, in gaps like those of the table; single ones if it has none."""
        hidden = np.zeros(observed.shape, bool)
        hidden[self.order] = hide_like(observed[self.order], rng)
        return [hidden] if hidden.any() else folds(observed, rng)

    def learn(
        self, X: Array, observed: NDArray[np.bool_], chosen: Chosen, rng: np.random.Generator
    ) -> tuple[Drift, Chosen]:
        """How samples, n x v, change with time, and what was chosen with its fills in time."""
        order = self.order
        hidden, blind = chosen.first_fold
        drift = learn(
            X[order], observed[order], hidden[order], self.times[order], blind[order], rng
        )
        if chosen.held_out is None or not hidden.any():
            return drift, chosen
        guess = self.combine(drift, X, observed & ~hidden, blind)
        mine = chosen.held_out.first(int(hidden.sum()))
        return drift, replace(chosen, held_out=replace(mine, fill=guess[hidden]), gain=1.0)

    def combine(
        self, drift: Drift, X: Array, observed: NDArray[np.bool_], fill: Array
    ) -> NDArray[np.float64]:
        """The table, n x v, completed by both."""
        order = self.order
        completed = np.empty(X.shape)
        completed[order] = drift.combine(X[order], observed[order], self.times[order], fill[order])
        return completed
