"""Rows in order of time: what the models fill in, and what neighbors in time say, together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.masking import make_folds, mask_gaps
from hirank.models.temporal_smoother import Drift, learn
from hirank.selection.results import Chosen


@dataclass(frozen=True)
class InTime:
    """The times of n rows, in any order, all different."""

    times: Array

    @property
    def order(self) -> IntArray:
        return np.argsort(self.times, kind="stable")

    def hidden(self, observed: BoolArray, rng: np.random.Generator) -> list[BoolArray]:
        """Entries to hide, n x v, in gaps like those of the table; single ones if it has none."""
        hidden = np.zeros(observed.shape, bool)
        hidden[self.order] = mask_gaps(observed[self.order], rng)
        return [hidden] if hidden.any() else make_folds(observed, rng)

    def learn(
        self, X: Array, observed: BoolArray, chosen: Chosen, rng: np.random.Generator
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

    def combine(self, drift: Drift, X: Array, observed: BoolArray, fill: Array) -> Array:
        """The table, n x v, completed by both."""
        order = self.order
        completed = np.empty(X.shape)
        completed[order] = drift.combine(X[order], observed[order], self.times[order], fill[order])
        return completed
