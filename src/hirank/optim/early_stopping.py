"""Where a path should end: the stages are compared on entries that are held out."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, BoolArray

AS_GOOD = 1.02
"""Times the lowest error: as good, so that chance does not end a path early."""
HOPELESS = 1.05
"""Times the lowest error: no way back."""
PATIENCE = 2
"""The path ends after this many hopeless stages in a row."""


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
