"""Gaps in ordered tables: how long they are, what lies across them, and how to make more."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array, BoolArray, IntArray

PART = 0.05
"""Part of the observed entries that is hidden."""
FEWEST, LARGEST_PART = 50, 0.2
"""Entries below which a judgment would be chance. A larger part is hidden to reach them, but not
more than this; else nothing is."""


def check_times(times: ArrayLike | None, n: int) -> Array:
    """The times of n rows, increasing; None counts the rows."""
    if times is None:
        return np.arange(n, dtype=np.float64)
    checked = np.asarray(times, dtype=np.float64)
    if checked.shape != (n,):
        raise ValueError(f"times must hold one number for each of {n} rows; got {checked.shape}.")
    if not np.isfinite(checked).all():
        raise ValueError("times must not hold NaN or infinity: drop rows whose time is unknown.")
    backward = np.flatnonzero(np.diff(checked) <= 0)
    if len(backward):
        raise ValueError(
            f"times must increase, but row {backward[0] + 1} is no later than row {backward[0]}: "
            "sort the rows by time, and drop or shift rows of equal time."
        )
    return checked


def interpolate(X: Array, observed: BoolArray, times: ArrayLike | None = None) -> Array:
    """Straight lines in time across the gaps of each feature.

    Before its first and after its last observed entry a feature keeps that value; without any it
    is 0.

    Parameters
    ----------
    X : n x m
        What stands at missing entries does not matter.
    observed : bool array, n x m
        True = known.
    times : n, optional
        Increasing; by default rows are evenly spaced.

    Returns
    -------
    filled : n x m

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import interpolate
    >>> X = np.array([[1.0], [0.0], [4.0], [0.0]])
    >>> interpolate(X, X > 0, [0, 2, 3, 4]).ravel().tolist()
    [1.0, 3.0, 4.0, 4.0]
    """
    times = check_times(times, len(X))
    filled = np.zeros(X.shape)
    for feature, seen in enumerate(observed.T):
        if seen.any():
            filled[:, feature] = np.interp(times, times[seen], X[seen, feature])
    return np.where(observed, X, filled)


def gap_lengths(observed: BoolArray) -> IntArray:
    """Length in rows of the gap that an entry lies in, n x m; 0 for observed entries.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import gap_lengths
    >>> gap_lengths(np.array([[1, 0, 0, 1, 0]], bool).T).ravel().tolist()
    [0, 2, 2, 0, 1]
    """
    n, m = observed.shape
    # A row of True between features keeps their gaps apart.
    missing = np.pad(~observed.T, ((0, 0), (1, 1))).ravel()
    bounds = np.flatnonzero(missing[1:] != missing[:-1]) + 1
    starts, ends = bounds[::2], bounds[1::2]
    lengths = np.zeros(len(missing), np.intp)
    lengths[missing] = np.repeat(ends - starts, ends - starts)
    return np.ascontiguousarray(lengths.reshape(m, n + 2)[:, 1:-1].T)


def too_long(observed: BoolArray, max_gap: int) -> BoolArray:
    """Entries in gaps of more than `max_gap` rows, n x m: those to leave empty.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import too_long
    >>> too_long(np.array([[1, 0, 0, 1, 0]], bool).T, 1).ravel().tolist()
    [False, True, True, False, False]
    """
    return gap_lengths(observed) > max_gap


def hide_like(observed: BoolArray, rng: np.random.Generator, *, part: float = PART) -> BoolArray:
    """Entries to hide, n x m, in gaps about as long as the table's own.

    A single entry hidden at random has neighbors in time, which entries inside a long gap have
    not: judged by such entries, neighbors in time look too good. So from a random observed entry a
    gap is grown, over missing entries too, to the length of one of the feature's own gaps; it is
    left out if it runs into others and gets longer than all of them. Every row keeps one
    observed entry, every feature two. Nothing is hidden if nothing is missing, or if it would be
    too little.

    Parameters
    ----------
    observed : bool array, n x m
        True = known; rows in order of time.
    rng : Generator
    part : float
        About this part of the observed entries is hidden, of small tables more.

    Returns
    -------
    hidden : bool array, n x m

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import hide_like
    >>> observed = np.arange(400)[:, None] % 40 + np.zeros((1, 9)) > 8
    >>> hidden = hide_like(observed, np.random.default_rng(0))
    >>> bool((hidden & ~observed).any()), int(hidden.sum()) > 100
    (False, True)
    """
    hidden = np.zeros(observed.shape, bool)
    part = max(part, min(1.2 * FEWEST / max(int(observed.sum()), 1), LARGEST_PART))
    for feature, seen in enumerate(observed.T):
        hidden[:, feature] = _hidden_gaps(seen, _lengths(seen), part, rng)
    left = observed & ~hidden
    hidden[~left.any(axis=1)] = False
    hidden[:, left.sum(axis=0) < 2] = False
    if hidden.sum() < FEWEST:
        hidden[:] = False
    return hidden


def _lengths(seen: BoolArray) -> IntArray:
    """Lengths of the gaps of one feature, n -> number of gaps."""
    bounds = np.flatnonzero(np.diff(np.pad(~seen, 1).astype(np.int8)))
    return bounds[1::2] - bounds[::2]


def _hidden_gaps(
    seen: BoolArray, lengths: IntArray, part: float, rng: np.random.Generator
) -> BoolArray:
    """Entries of one feature to hide, n, in gaps drawn from `lengths`."""
    left = seen.copy()
    if not len(lengths):
        return ~left & seen
    n, longest = len(seen), int(lengths.max())
    wanted = part * int(seen.sum())
    candidates = rng.permutation(np.flatnonzero(seen))
    targets = rng.choice(lengths, len(candidates))
    for first, length in zip(candidates.tolist(), targets.tolist(), strict=True):
        if wanted <= 0:
            break
        if not left[first]:
            continue
        begin = max(first - int(rng.integers(length)), 0)
        lower = upper = first  # rows lower .. upper - 1 are the gap so far
        new = []
        while upper - lower < length:
            row = lower - 1 if lower > begin or upper == n else upper
            new.append(row)
            lower, upper = _across(left, min(row, lower), max(row + 1, upper), longest)
        if upper - lower <= longest:
            taken = [row for row in new if left[row]]
            left[taken] = False
            wanted -= len(taken)
    return ~left & seen


def _across(left: BoolArray, lower: int, upper: int, longest: int) -> tuple[int, int]:
    """The gap that rows lower .. upper - 1 become together with the gaps they touch."""
    while lower > 0 and not left[lower - 1] and upper - lower <= longest:
        lower -= 1
    while upper < len(left) and not left[upper] and upper - lower <= longest:
        upper += 1
    return lower, upper
