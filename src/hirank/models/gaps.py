"""Gaps in tables whose rows follow each other in time: their lengths, and interpolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array, BoolArray, IntArray


def check_times(times: ArrayLike | None, n: int) -> Array:
    """Return the times of n rows, which must increase; None counts the rows."""
    if times is None:
        return np.arange(n, dtype=np.float64)
    checked = np.asarray(times, dtype=np.float64)
    if checked.shape != (n,):
        raise ValueError(
            f"times must have one number for each of {n} rows; got shape {checked.shape}."
        )
    if not np.isfinite(checked).all():
        raise ValueError("times must be finite. Drop the rows without a time.")
    backward = np.flatnonzero(np.diff(checked) <= 0)
    if len(backward):
        raise ValueError(
            f"times must increase, but row {backward[0] + 1} is not later than row {backward[0]}. "
            "Sort the rows by time, and drop rows with equal times."
        )
    return checked


def interpolate(X: Array, observed: BoolArray, times: ArrayLike | None = None) -> Array:
    """Interpolate linearly in time across the gaps of each feature.

    Before its first and after its last observed entry a feature keeps that value; without any it
    is 0.

    Parameters
    ----------
    X : n x m
        Values at missing entries are not used.
    observed : bool array, n x m
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
    """Return the length in rows of the gap that each entry lies in, n x m; 0 if observed.

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
    """Return which entries lie in gaps of more than `max_gap` rows, n x m.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import too_long
    >>> too_long(np.array([[1, 0, 0, 1, 0]], bool).T, 1).ravel().tolist()
    [False, True, True, False, False]
    """
    return gap_lengths(observed) > max_gap
