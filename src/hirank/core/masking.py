"""Hold out observed entries, so that models can be compared on values that they have not seen.

Each function returns a mask, n x m, that is True at the entries to hold out. Columns that share a
label in `groups` (an integer per column, such as the block of columns that encodes one category)
are held out together, and only from rows where all of them are observed. Entries are counted in
groups then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hirank._typing import BoolArray, IntArray

Groups = Sequence[int] | IntArray | None


@dataclass(frozen=True)
class MaskingConfig:
    """Constants of the masks (docs/notes/selection.md, solver.md, temporal.md and online.md)."""

    # One mask of a table, for early stopping, for the parameters of a baseline, and for gaps.
    share: float = 0.05  # of the observed entries
    min_masked: int = 50  # an error over fewer entries is left to chance, so none are held out
    target_masked: int = 60  # a larger share of a small table is held out to reach so many,
    max_share: float = 0.2  # but not a larger one than this, nor of a column in a fold of patterns
    # Folds.
    n_parts: int = 10  # parts that the observed entries of a column are dealt to; a fold is one
    n_large_parts: int = 5  # the same if all folds together would have fewer than few_masked
    few_masked: int = 100
    enough_masked: int = 400  # entries that all folds together should have
    max_folds: int = 5
    min_observed: int = 50  # a table with fewer observed entries has no folds
    min_incomplete: int = 30  # with fewer in incomplete columns, complete ones are used as well
    # Gaps.
    min_run_ratio: float = 3.0  # mean length of gaps over that of as many entries at random
    # Patterns of rows.
    min_pair_ratio: float = 1.5  # pairs of entries that are missing in a row over those by chance,
    min_pair_deviations: float = 5.0  # and how many standard deviations above
    min_common: float = 0.6  # rows in which two columns are missing over those in which one is
    max_patterns: int = 1000  # rows whose patterns are laid on others
    max_repeats: int = 4  # times that the pattern of a row is laid
    n_receivers: int = 20  # rows of which the most suitable one receives a pattern
    # Single rows, in streams.
    min_row: int = 3  # no entry of a row with fewer observed ones is held out


DEFAULTS = MaskingConfig()


def mask_uniform(
    observed: BoolArray, share: float, rng: np.random.Generator, *, groups: Groups = None
) -> BoolArray:
    """Hold out each entry with probability `share`; rows keep one entry and columns two."""
    units, inverse = _collapse(observed, groups)
    mask = _restore(units & (rng.random(units.shape) < share), units, min_per_row=1)
    return mask[:, inverse]


def mask_entries(
    observed: BoolArray,
    rng: np.random.Generator,
    *,
    selecting: bool = False,
    groups: Groups = None,
    config: MaskingConfig = DEFAULTS,
) -> BoolArray:
    """Hold out a fixed share of all entries; rows and columns keep two.

    Nothing is held out if that would be too few entries, or if nothing is missing, since then
    nothing has to be imputed. With `selecting`, a parameter depends on the mask: entries of a
    complete table are held out as well, and a larger share of a small one.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.masking import mask_entries
    >>> observed = np.random.default_rng(0).random((200, 20)) < 0.5
    >>> mask = mask_entries(observed, np.random.default_rng(0))
    >>> bool((mask & ~observed).any()), round(float(mask.sum() / observed.sum()), 2)
    (False, 0.05)
    """
    units, inverse = _collapse(observed, groups)
    mask = np.zeros(units.shape, bool)
    if not observed.all() or selecting:
        known = int(units.sum())
        count = int(config.share * known)
        if selecting and known >= config.target_masked / config.max_share:
            count = max(count, config.target_masked)
        mask.ravel()[rng.permutation(np.flatnonzero(units))[:count]] = True
        mask = _drop_small(_restore(mask, units, min_per_row=2), config)
    return mask[:, inverse]


def mask_row_entries(
    observed: BoolArray,
    rng: np.random.Generator,
    *,
    groups: Groups = None,
    config: MaskingConfig = DEFAULTS,
) -> BoolArray:
    """Hold out a few entries of each row, at least one unless the row has too few."""
    units, inverse = _collapse(observed, groups)
    count = units.sum(axis=1)
    wanted = np.where(count >= config.min_row, np.maximum(1, np.rint(config.share * count)), 0)
    rank = np.where(units, rng.random(units.shape), np.inf).argsort(axis=1).argsort(axis=1)
    mask: BoolArray = (rank < wanted[:, None]) & units
    return mask[:, inverse]


def make_folds(
    observed: BoolArray,
    rng: np.random.Generator,
    *,
    groups: Groups = None,
    config: MaskingConfig = DEFAULTS,
) -> list[BoolArray]:
    """Return disjoint masks that hold out the same share of each column.

    Only columns with missing entries are held out, since errors in others do not matter, unless
    nothing is missing or they have too few observed entries. Rows keep one entry and columns two.
    A large table has one fold, a small one several, and one that is too small has none.
    """
    units, inverse = _collapse(observed, groups)
    if units.sum() < config.min_observed:
        return []
    part, n_used = _deal(units, rng, config)
    folds: list[BoolArray] = []
    for number in range(n_used):
        mask = _restore((part == number) & units, units, min_per_row=1)
        if mask.any():
            folds.append(mask)
        if sum(int(fold.sum()) for fold in folds) >= config.enough_masked:
            break
    return [fold[:, inverse] for fold in folds]


def _deal(
    units: BoolArray, rng: np.random.Generator, config: MaskingConfig
) -> tuple[IntArray, int]:
    """Return the part of each entry, n x g, and how many parts become folds."""
    used = np.any(~units, axis=0)
    if units[:, used].sum() < config.min_incomplete:
        used[:] = True
    known = int(units[:, used].sum())
    few = known * config.max_folds < config.few_masked * config.n_parts
    n_parts = config.n_large_parts if few else config.n_parts
    part = np.full(units.shape, n_parts)
    for column in np.flatnonzero(used):
        rows = rng.permutation(np.flatnonzero(units[:, column]))
        # A random first part; else columns with few entries would all be in the same parts.
        first = rng.integers(n_parts)
        part[rows, column] = (first + np.arange(len(rows))) % n_parts
    return part, min(config.max_folds, n_parts)


def mask_gaps(
    observed: BoolArray,
    rng: np.random.Generator,
    *,
    groups: Groups = None,
    config: MaskingConfig = DEFAULTS,
) -> BoolArray:
    """Hold out stretches in time that are about as long as the gaps of the table.

    A single entry that is held out at random has neighbors in time, which an entry inside a long
    gap has not: on single entries, interpolation would look too good (docs/notes/temporal.md). So
    from a random observed entry a gap is grown, over missing entries too, to the length of one of
    the gaps of its column; it is discarded if it merges with others into one that is longer than
    all of them. Rows keep one entry and columns two. Nothing is held out if nothing is missing, or
    if that would be too few entries.

    Parameters
    ----------
    observed : bool array, n x m
        Rows in order of time.
    rng : Generator
    groups : n_columns integers, optional
        Columns of one group are held out together.
    config : MaskingConfig

    Returns
    -------
    mask : bool array, n x m

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.core.masking import mask_gaps
    >>> observed = np.arange(400)[:, None] % 40 + np.zeros((1, 9)) > 8
    >>> mask = mask_gaps(observed, np.random.default_rng(0))
    >>> bool((mask & ~observed).any()), int(mask.sum()) > 100
    (False, True)
    """
    units, inverse = _collapse(observed, groups)
    known = max(int(units.sum()), 1)
    share = max(config.share, min(config.target_masked / known, config.max_share))
    mask = np.zeros(units.shape, bool)
    for column, known_there in enumerate(units.T):
        mask[:, column] = _mask_column_gaps(known_there, share, rng)
    mask = _drop_small(_restore(mask, units, min_per_row=1), config)
    return mask[:, inverse]


def _mask_column_gaps(known: BoolArray, share: float, rng: np.random.Generator) -> BoolArray:
    """Hold out gaps of one column, n, with lengths drawn from its own."""
    edges = np.flatnonzero(np.diff(np.pad(~known, 1).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    left = known.copy()
    if not len(lengths):
        return ~left & known
    longest = int(lengths.max())
    wanted = share * int(known.sum())
    candidates = rng.permutation(np.flatnonzero(known))
    targets = rng.choice(lengths, len(candidates))
    for first, length in zip(candidates.tolist(), targets.tolist(), strict=True):
        if wanted <= 0:
            break
        if left[first]:
            begin = max(first - int(rng.integers(length)), 0)
            rows = _grow_gap(left, first, begin, length, longest)
            left[rows] = False
            wanted -= len(rows)
    return ~left & known


def _grow_gap(left: BoolArray, first: int, begin: int, length: int, longest: int) -> list[int]:
    """Return the observed rows of a gap around row `first`, from `begin` on if there is room.

    Rows next to gaps join them; the list is empty if the gap gets longer than `longest`.
    """
    lower = upper = first  # rows lower .. upper - 1 are the gap so far
    new = []
    while upper - lower < length:
        row = lower - 1 if lower > begin or upper == len(left) else upper
        new.append(row)
        lower, upper = min(row, lower), max(row + 1, upper)
        while lower > 0 and not left[lower - 1] and upper - lower <= longest:
            lower -= 1
        while upper < len(left) and not left[upper] and upper - lower <= longest:
            upper += 1
    return [row for row in new if left[row]] if upper - lower <= longest else []


def _collapse(observed: BoolArray, groups: Groups) -> tuple[BoolArray, IntArray | slice]:
    """Return which groups are observed, n x g, and the group of each column, to expand masks."""
    if groups is None:
        return observed, slice(None)
    labels = np.asarray(groups)
    if labels.shape != observed.shape[1:]:
        raise ValueError(
            f"groups must have one label for each of {observed.shape[1]} columns; "
            f"got an array of shape {labels.shape}."
        )
    names, inverse = np.unique(labels, return_inverse=True)
    return np.column_stack([observed[:, labels == name].all(axis=1) for name in names]), inverse


def _restore(mask: BoolArray, observed: BoolArray, *, min_per_row: int) -> BoolArray:
    """Return a mask that leaves each row `min_per_row` observed entries and each column two.

    A row or column that would be left with fewer loses nothing: models need something to impute
    a row from, and the spread of each column.
    """
    left = observed & ~mask
    mask[left.sum(axis=1) < min_per_row] = False
    mask[:, left.sum(axis=0) < 2] = False
    return mask


def _drop_small(mask: BoolArray, config: MaskingConfig) -> BoolArray:
    """Return the mask, or an empty one if it has too few entries for an error to mean anything."""
    return mask if mask.sum() >= config.min_masked else np.zeros_like(mask)
