"""Whether a model is better than another at held-out entries, beyond chance."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, IntArray

MIN_GAIN = 1.0
"""Standard errors by which a model must be better than column means to be selected."""
CLEAR_GAIN = 2.0
"""Standard errors from which a gain is stated."""


def gain(before: Array, after: Array, rows: IntArray) -> float:
    """Return the mean gain in losses of h entries, in units of its standard error.

    The errors of a row are correlated, so the entries of a row count as one observation.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.selection.significance import gain
    >>> gain(np.array([2.0, 2.0, 1.0, 3.0]), np.ones(4), np.array([0, 0, 1, 2]))
    1.414...
    """
    by_row = np.bincount(np.unique(rows, return_inverse=True)[1], before - after)
    norm = float(np.sqrt(np.sum(by_row**2)))
    return float(by_row.sum()) / norm if norm else 0.0


def beats_constants(
    imputed: Array, truth: Array, means: Array, medians: Array, rows: IntArray
) -> bool:
    """Return whether imputed values are better than column means or column medians.

    Column means have the lowest squared error of all constants, and medians the lowest absolute
    one; it is enough to be better in one of both. Values that lie between them, as models of
    unrelated counts may impute, are not.
    """
    squared = gain((means - truth) ** 2, (imputed - truth) ** 2, rows)
    absolute = gain(np.abs(medians - truth), np.abs(imputed - truth), rows)
    return max(squared, absolute) > MIN_GAIN
