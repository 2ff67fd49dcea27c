"""Selection where rows are left with far fewer entries than those that have to be imputed.

If rows have two observed entries, a held-out entry must be recovered from one, a missing entry from
two. On a curve, two determine the third, while one often leaves a choice between two branches. A
model that follows the curve then has errors of two kinds: none, or twice the distance to the mean.
By any mean of errors it is behind models that hedge, though it recovers every missing entry. But
that it recovers most of the others almost exactly cannot be chance (docs/notes/selection.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hirank._typing import BoolArray
from hirank.selection.trial import SearchData, Trial


def find_exact(trials: Sequence[Trial], data: SearchData) -> Trial | None:
    """Return the trial that recovers most held-out entries almost exactly, if there is one.

    None if held-out rows are like those that have missing entries, since then means of errors are
    to be trusted, or if values repeat: a frequent value is guessed exactly by chance.
    """
    config = data.config.exact
    if not data.is_narrow:
        return None
    unique = _is_unique(data)
    if unique.sum() < max(config.min_entries, len(unique) / 2):
        return None

    def median(trial: Trial) -> float:
        return float(np.median(np.abs(data.at_held_out(trial.filled) - data.truth)[unique]))

    best = min(trials, key=median, default=None)
    return best if best is not None and median(best) < config.max_median else None


def _is_unique(data: SearchData) -> BoolArray:
    """Return which held-out entries, h, have a value that occurs once in its column."""
    once = np.zeros_like(data.observed)
    for column, seen in enumerate(data.observed.T):
        _, inverse, counts = np.unique(
            data.X[seen, column], return_inverse=True, return_counts=True
        )
        once[seen, column] = counts[inverse] == 1
    return np.concatenate([once[held_out] for held_out in data.folds])
