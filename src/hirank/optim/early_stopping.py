"""Where a path should end: a few observed entries are hidden, and stages judged by them."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, BoolArray

PART = 0.05
"""Part of the observed entries that is hidden."""
FEWEST = 50
"""Entries below which a judgment would be chance: then nothing is hidden."""
EAGER, LARGEST_PART = 60, 0.2
"""Entries that are hidden all the same if asked for, unless they would be more than this part."""
AS_GOOD = 1.02
"""Times the lowest error: as good, so that chance does not end a path early."""
HOPELESS = 1.05
"""Times the lowest error: no way back."""
PATIENCE = 2
"""The path ends after this many hopeless stages in a row."""


def hide(observed: BoolArray, rng: np.random.Generator, *, eager: bool = False) -> BoolArray:
    """Entries to hide, n x m, at random; every row and column keeps two observed entries.

    None if there are too few, or if nothing is missing, since then nothing is to be filled. Who has
    nothing else to go by is `eager`: hides entries of a complete table too, and of a small one a
    larger part.
    """
    hidden = np.zeros(observed.shape, bool)
    if observed.all() and not eager:
        return hidden
    known = int(observed.sum())
    count = int(PART * known)
    if eager and known >= EAGER / LARGEST_PART:
        count = max(count, EAGER)
    hidden.ravel()[rng.permutation(np.flatnonzero(observed))[:count]] = True
    left = observed & ~hidden
    hidden[left.sum(axis=1) < 2] = False
    hidden[:, left.sum(axis=0) < 2] = False
    if hidden.sum() < FEWEST:
        hidden[:] = False
    return hidden


class BestStage:
    """Remembers the latest stage that recovers the hidden entries as well as any."""

    def __init__(self, truth: Array, hidden: BoolArray) -> None:
        self.rows, self.columns = np.nonzero(hidden)
        self.truth = truth[self.rows, self.columns]
        self.lowest = np.inf
        self.hopeless = 0
        self.number = -1
        self.X = self.D = truth[:0]

    def is_past(self, number: int, X: Array, D: Array) -> bool:
        """Judge a stage that has ended; true if the path should end."""
        if not len(self.rows):
            return False
        # Absolute, not squared: a few far-off entries must not decide.
        error = float(np.mean(np.abs(X[self.rows, self.columns] - self.truth)))
        self.lowest = min(self.lowest, error)
        if error <= AS_GOOD * self.lowest:
            self.number, self.X, self.D = number, X, D
        self.hopeless = self.hopeless + 1 if error > HOPELESS * self.lowest else 0
        return self.hopeless >= PATIENCE
