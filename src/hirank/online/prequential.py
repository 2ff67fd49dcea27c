"""How good the fills of a stream are, judged without any truth.

As rows arrive, a few of their observed entries are hidden and predicted. The errors, in standard
deviations of the features, tell a user how far to trust the fills (1 is as poor as filling with the
mean), and the model when the world has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array

BLOCK = 50
"""Errors that a judgment rests on."""
KEPT = 24 * BLOCK
"""Errors that the usual level is taken from."""
RECENT = 4 * BLOCK
"""Errors behind the running error that is reported."""
JUMP = 2.0
"""Times the usual level: something has changed."""
POOR = 0.4
"""Median error as large as when filling with the mean, in standard deviations."""
WORST = 1e9
"""Largest error that is kept, so that no wild value makes sums overflow."""
NEGLIGIBLE = 1e-3
"""Median error below which nothing is worth a reaction."""
LINES = 1000
"""Most lines of the history; when it is full, neighbors are merged."""

HISTORY = np.dtype([("samples", np.int64), ("error", np.float64), ("entries", np.int64)])


@dataclass(frozen=True)
class Scores:
    """Errors of hidden entries. Nothing here grows without bound."""

    errors: Array = field(default_factory=lambda: np.zeros(0))  # newest last
    history: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, HISTORY))

    def add(self, errors: Array, samples: int) -> Scores:
        """With the absolute errors of a batch that ends at row number `samples`."""
        if not len(errors):
            return self
        errors = np.fmin(errors, WORST)
        line = np.array([(samples, np.sqrt(np.mean(np.square(errors))), len(errors))], HISTORY)
        history = self.history if len(self.history) < LINES else _halved(self.history)
        return Scores(
            np.concatenate([self.errors, errors])[-KEPT:], np.concatenate([history, line])
        )

    def forget(self) -> Scores:
        """Without the usual level: the model has started over."""
        return replace(self, errors=self.errors[:0])

    @property
    def recent(self) -> float:
        """Root mean square of the last errors; NaN before there are any."""
        last = self.history[-1:]["error"]
        if not len(self.errors):  # just started over
            return float(last[0]) if len(last) else np.nan
        return float(np.sqrt(np.mean(np.square(self.errors[-RECENT:]))))

    @property
    def jumped(self) -> bool:
        """Whether the last errors are far above the usual level.

        Medians, because a few rows that go wrong are no change. The usual level is what the better
        part of the blocks before reached, so that a change does not hide behind itself.
        """
        blocks = len(self.errors) // BLOCK
        if blocks < 3:
            return False
        medians = np.median(self.errors[len(self.errors) % BLOCK :].reshape(blocks, BLOCK), axis=1)
        level = max(float(np.quantile(medians[:-1], 0.25)), NEGLIGIBLE)
        return bool(medians[-1] > JUMP * level)

    @property
    def poor(self) -> bool:
        """Whether the last fills are about as poor as feature means."""
        return len(self.errors) >= BLOCK and bool(np.median(self.errors[-BLOCK:]) > POOR)


def _halved(history: NDArray[np.void]) -> NDArray[np.void]:
    """Each two neighbors as one line."""
    first, second = history[0::2], history[1::2]
    merged = second.copy()
    entries = first["entries"] + second["entries"]
    squares = (
        first["entries"] * first["error"] ** 2 + second["entries"] * second["error"] ** 2
    ) / entries
    merged["error"], merged["entries"] = np.sqrt(squares), entries
    return merged
