"""How the values of a table are missing: single entries, rows with common patterns, runs in time.

Errors at held-out entries show those at missing entries only if both are alike. A group of sensors
that fails together leaves nothing of the group to impute from, and single held-out entries are
easier than that. So entries are held out as the table's own values are missing
(docs/notes/missingness.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.masking import MaskingConfig, make_folds

DEFAULTS = MaskingConfig()


@dataclass(frozen=True)
class Folds:
    """Entries to hold out, and those of them by which errors are judged."""

    masks: list[BoolArray]  # entries that are held out together, n x m each
    judged: BoolArray  # n x m; entries that are held out as the table's own values are missing


def missing_in_runs(observed: BoolArray, config: MaskingConfig = DEFAULTS) -> bool:
    """Return whether missing entries, n x m, follow each other in far longer runs than by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.missingness import missing_in_runs
    >>> observed = np.arange(400)[:, None] % 40 + np.zeros((1, 9)) > 8
    >>> missing_in_runs(observed), missing_in_runs(np.random.default_rng(0).permutation(observed))
    (True, False)
    """
    missing = ~observed
    begins = missing.copy()
    begins[1:] &= observed[:-1]
    # Where a share p of a column is missing at random, runs begin at a share p (1 - p) of it.
    by_chance = float((missing.sum(axis=0) * observed.mean(axis=0)).sum()) if len(observed) else 0.0
    return by_chance > config.min_run_ratio * int(begins.sum())


def missing_in_blocks(observed: BoolArray, config: MaskingConfig = DEFAULTS) -> bool:
    """Return whether columns are missing in the same rows, n x m, far more often than by chance.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.missingness import missing_in_blocks
    >>> rng = np.random.default_rng(0)
    >>> together = np.repeat(rng.random((200, 2)) < 0.8, 3, axis=1)
    >>> missing_in_blocks(together), missing_in_blocks(rng.random((200, 6)) < 0.8)
    (True, False)
    """
    missing = (~observed).astype(np.float64)
    per_row, rates = missing.sum(axis=1), missing.mean(axis=0)
    pairs = float((per_row * (per_row - 1)).sum() / 2)
    by_chance = len(observed) * float(rates.sum() ** 2 - (rates**2).sum()) / 2
    margin = config.min_pair_deviations * np.sqrt(by_chance + 1)
    return pairs > max(config.min_pair_ratio * by_chance, by_chance + margin)


def columns_missing_together(observed: BoolArray, config: MaskingConfig = DEFAULTS) -> IntArray:
    """Return a label for each of m columns; those that are missing in the same rows share one.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.missingness import columns_missing_together
    >>> columns_missing_together(np.array([[1, 0, 0], [1, 1, 1], [0, 1, 1]], bool))
    array([0, 1, 1])
    """
    missing = (~observed).astype(np.float64)
    both = missing.T @ missing
    either = np.add.outer(np.diag(both), np.diag(both)) - both
    alike = both > config.min_common * np.maximum(either, 1)
    labels = np.arange(observed.shape[1])
    for column, row in enumerate(alike):
        row[column] = True
        labels[np.isin(labels, labels[row])] = labels[row].min()
    return labels


def share_unlike(observed: BoolArray, config: MaskingConfig = DEFAULTS) -> float:
    """Return the part of the missing entries, n x m, that nothing observed is like.

    An observed entry is like a missing one if it is in the same column, and its row observes at
    least half of what the row of the missing one observes.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.missingness import share_unlike
    >>> share_unlike(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]], bool))
    1.0
    >>> share_unlike(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]], bool))
    0.0
    """
    known: Array = observed.astype(np.float32)
    count = observed.sum(axis=1)
    incomplete = np.flatnonzero((count > 0) & (count < observed.shape[1]))
    has = known[incomplete[:: -(-len(incomplete) // config.max_patterns) or 1]]
    alike = known @ has.T >= 0.5 * has.sum(axis=1)  # n x d
    seen = alike.T.astype(np.float32) @ known > 0  # d x m
    missing = has == 0
    return float((missing & ~seen).sum() / max(int(missing.sum()), 1))


def make_pattern_folds(
    observed: BoolArray, rng: np.random.Generator, *, config: MaskingConfig = DEFAULTS
) -> Folds:
    """Return folds in which rows miss what other rows of the table miss.

    The pattern of missing columns of a row is laid on another row, which observes as much as
    possible of what the first one observes and of what it misses. About two of three held-out
    entries of a fold come from there; the others are single entries of other rows, so that models
    are selected on both. Where patterns cannot be laid anywhere, all are single entries.

    Parameters
    ----------
    observed : bool array, n x m
    rng : Generator
    config : MaskingConfig
    """
    single = make_folds(observed, rng, config=replace(config, enough_masked=observed.size))
    masks = _lay_patterns(observed, rng, len(single), config)
    judged = sum(masks, np.zeros(observed.shape, bool))
    if judged.sum() < config.min_masked:
        single = make_folds(observed, rng, config=config)
        return Folds(single, sum(single, np.zeros(observed.shape, bool)))
    others = judged.sum(axis=1) == 0
    folds = []
    for mask, single_entries in zip(masks, single, strict=False):
        # Half as many as a fold has without patterns.
        some = single_entries & others[:, None] & (rng.random(observed.shape) < 0.5)
        folds.append(mask | some)
    return Folds(folds, judged)


@dataclass(frozen=True)
class _Pattern:
    """The columns that an incomplete row observes and misses, as 1 and 0, m each."""

    has: Array
    lacks: Array

    def find_receiver(self, known: Array, full: BoolArray) -> int | None:
        """Return which of some rows, s x m, is the most suitable to receive the pattern.

        It observes at least half of what the pattern observes, something of what it misses, and
        nothing of that in columns, m, that are full.
        """
        left, judged = known @ self.has, known @ self.lacks
        score = left / self.has.sum() + judged / self.lacks.sum()
        suitable = (
            (left >= 0.5 * self.has.sum()) & (judged > 0) & (known @ (self.lacks * full) == 0)
        )
        return int(np.argmax(np.where(suitable, score, 0))) if suitable.any() else None


def _lay_patterns(
    observed: BoolArray, rng: np.random.Generator, max_folds: int, config: MaskingConfig
) -> list[BoolArray]:
    """Return masks, n x m, until enough entries are held out.

    Each row receives a pattern in one of them at most. Patterns that would take too much of a
    column from a fold are left out, and others do not take their place: a column that is missing in
    most rows would keep no entry to learn from, or rare patterns would be judged too often.
    """
    known = observed.astype(np.float32)
    incomplete = np.flatnonzero((~observed).any(axis=1) & observed.any(axis=1))
    donors = rng.permutation(incomplete)[: config.max_patterns]
    patterns = iter([_Pattern(known[row], 1 - known[row]) for row in donors] * config.max_repeats)
    wanted = observed.sum() / config.n_parts
    most, none = (
        np.floor(config.max_share * observed.sum(axis=0)),
        np.zeros(observed.shape[1], bool),
    )
    free = rng.permutation(len(observed))
    masks: list[BoolArray] = []
    while len(masks) < max_folds and sum(int(mask.sum()) for mask in masks) < config.enough_masked:
        mask, n_drawn = np.zeros(observed.shape, bool), 0
        for pattern in patterns:
            rows = free[: config.n_receivers]
            best = pattern.find_receiver(known[rows], none)
            if best is None:
                free = np.roll(free, -len(rows))
                continue
            n_drawn += int(known[rows[best]] @ pattern.lacks)
            best = pattern.find_receiver(known[rows], mask.sum(axis=0) >= most)
            if best is not None:
                mask[rows[best]] = observed[rows[best]] & (pattern.lacks > 0)
                free = np.concatenate([free[len(rows) :], np.delete(rows, best)])
            if n_drawn >= wanted:
                break
        if not mask.any():
            break
        masks.append(mask)
    return masks
