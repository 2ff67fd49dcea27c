"""Prequential errors: predictions of observed entries that are held out as rows arrive.

The errors, in standard deviations of the features, show how accurate imputed values are (1 is as
poor as the column mean), and when the distribution has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, Shape

BLOCK = 50
"""Errors of a block, whose median is compared."""
MAX_ERRORS = 24 * BLOCK
"""Errors from which the usual level is computed."""
RECENT = 4 * BLOCK
"""Errors behind the running error that is reported."""
JUMP = 2.0
"""Times the usual level from which the distribution has changed."""
POOR_MEDIAN = 0.4
"""Median error of the column mean, in standard deviations."""
MAX_ERROR = 1e9
"""Largest error that is kept, so that an outlier does not make sums overflow."""
MAX_ENTRIES = 2**53
"""Most entries of a line of the history."""
NEGLIGIBLE = 1e-3
"""Median error below which a change does not matter."""
MAX_LINES = 1000
"""Maximum number of lines of the history; when it is full, neighbors are merged."""

HISTORY = np.dtype([("samples", np.int64), ("error", np.float64), ("entries", np.int64)])


@dataclass(frozen=True)
class PrequentialScores:
    """Errors of held-out entries. Nothing here grows without bound."""

    errors: Annotated[Array, Shape("e")] = field(default_factory=lambda: np.zeros(0))  # newest last
    history: Annotated[NDArray[np.void], HISTORY] = field(
        default_factory=lambda: np.zeros(0, HISTORY)
    )

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        errors, entries = self.history["error"], self.history["entries"]
        if max(len(self.errors) / MAX_ERRORS, len(self.history) / MAX_LINES) > 1:
            raise ValueError(f"at most {MAX_ERRORS} errors and {MAX_LINES} lines are kept")
        # Of a larger error the square, and of more entries the sum of two lines, may overflow.
        limit = 1.01 * MAX_ERROR  # means may be rounded upward
        if not all(((x >= 0) & (x <= limit)).all() for x in (self.errors, errors)):
            raise ValueError(f"errors must be between 0 and {MAX_ERROR:g}")
        if ((entries <= 0) | (entries > MAX_ENTRIES)).any():
            raise ValueError(f"each line of the history must have 1 to {MAX_ENTRIES} entries")

    def add(self, errors: Array, samples: int) -> PrequentialScores:
        """Return the scores with the absolute errors of a batch that ends at row `samples`."""
        if not len(errors):
            return self
        errors = np.fmin(errors, MAX_ERROR)
        line = np.array([(samples, np.sqrt(np.mean(np.square(errors))), len(errors))], HISTORY)
        history = self.history if len(self.history) < MAX_LINES else _halved(self.history)
        return PrequentialScores(
            np.concatenate([self.errors, errors])[-MAX_ERRORS:], np.concatenate([history, line])
        )

    def forget(self) -> PrequentialScores:
        """Return the scores without the usual level, for a model that was restarted."""
        return replace(self, errors=self.errors[:0])

    @property
    def recent(self) -> float:
        """Root mean square of the last errors; NaN before there are any."""
        last = self.history[-1:]["error"]
        if not len(self.errors):  # just restarted
            return float(last[0]) if len(last) else np.nan
        return float(np.sqrt(np.mean(np.square(self.errors[-RECENT:]))))

    @property
    def jumped(self) -> bool:
        """Whether the last errors are far above the usual level.

        Medians, because a few rows that go wrong are not a change. The usual level is what the
        better part of the blocks before reached, so that a change does not conceal itself.
        """
        blocks = len(self.errors) // BLOCK
        if blocks < 3:
            return False
        medians = np.median(self.errors[len(self.errors) % BLOCK :].reshape(blocks, BLOCK), axis=1)
        level = max(float(np.quantile(medians[:-1], 0.25)), NEGLIGIBLE)
        return bool(medians[-1] > JUMP * level)

    @property
    def poor(self) -> bool:
        """Whether the last predictions are about as poor as column means."""
        return len(self.errors) >= BLOCK and bool(np.median(self.errors[-BLOCK:]) > POOR_MEDIAN)


def _halved(history: NDArray[np.void]) -> NDArray[np.void]:
    """Return the history with each two neighboring lines merged."""
    first, second = history[0::2], history[1::2]
    merged = second.copy()
    entries = first["entries"] + second["entries"]
    squares = (
        first["entries"] * first["error"] ** 2 + second["entries"] * second["error"] ** 2
    ) / entries
    merged["error"], merged["entries"] = np.sqrt(squares), entries
    return merged
