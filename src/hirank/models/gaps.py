"""Gaps in tables whose rows follow each other in time: their lengths, and interpolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array, BoolArray, IntArray
from hirank.models.timeline import Timeline


def interpolate(X: Array, observed: BoolArray, times: ArrayLike | Timeline | None = None) -> Array:
    """Interpolate linearly in time across the gaps of each feature.

    Before its first and after its last observed entry of a group a feature keeps that value;
    without any it is 0.

    Parameters
    ----------
    X : n x m
        Values at missing entries are not used.
    observed : bool array, n x m
    times : n or Timeline, optional
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
    timeline = Timeline.sorted(times, len(X))
    filled = np.zeros(X.shape)
    for span in timeline.spans():
        t = timeline.times[span]
        for out, x, seen in zip(filled[span].T, X[span].T, observed[span].T, strict=True):
            if seen.any():
                out[:] = np.interp(t, t[seen], x[seen])
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


def too_long(observed: BoolArray, max_gap: int, timeline: Timeline | None = None) -> BoolArray:
    """Return which entries lie in gaps of more than `max_gap` rows in order of time, n x m.

    The rows may be in any order if there is a timeline; without one they are in order.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.gaps import too_long
    >>> too_long(np.array([[1, 0, 0, 1, 0]], bool).T, 1).ravel().tolist()
    [False, True, True, False, False]
    """
    if timeline is None:
        return gap_lengths(observed) > max_gap
    order, long = timeline.order, np.empty(observed.shape, bool)
    for span in timeline.take(order).spans():
        rows = order[span]
        long[rows] = gap_lengths(observed[rows]) > max_gap
    return long
