"""Where a path should end: the stages are compared on entries that are held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hirank._typing import Array, BoolArray

AS_GOOD = 1.02  # times the lowest error: as good, so that chance does not end a path early
HOPELESS = 1.05  # times the lowest error: later stages do not come back from it
PATIENCE = 2  # hopeless stages in a row after which a path ends


def is_as_good(errors: Sequence[float]) -> bool:
    """Return whether the last stage is as good as any before."""
    return errors[-1] <= AS_GOOD * min(errors)


def is_past_minimum(errors: Sequence[float]) -> bool:
    """Return whether the last stages were all so much worse that the path should end."""
    recent = errors[-PATIENCE:]
    return len(errors) > PATIENCE and all(error > HOPELESS * min(errors) for error in recent)


def gains_nothing(errors: Sequence[float], min_gain: float = 0.0) -> bool:
    """Return whether the last stage does not gain more than a part `min_gain` of the error."""
    return len(errors) > 1 and errors[-1] >= (1 - min_gain) * min(errors[:-1])


class BestStage:
    """The latest stage that recovers the held-out entries as well as any."""

    def __init__(self, truth: Array, held_out: BoolArray) -> None:
        self.rows, self.columns = np.nonzero(held_out)
        self.truth = truth[self.rows, self.columns]
        self.errors: list[float] = []
        self.number = -1
        self.X = self.D = truth[:0]

    def is_past(self, number: int, X: Array, D: Array) -> bool:
        """Score a stage that has ended; return whether the path should end."""
        if not len(self.rows):
            return False
        # Absolute, not squared: a few large errors must not decide.
        self.errors.append(float(np.mean(np.abs(X[self.rows, self.columns] - self.truth))))
        if is_as_good(self.errors):
            self.number, self.X, self.D = number, X, D
        return is_past_minimum(self.errors)
