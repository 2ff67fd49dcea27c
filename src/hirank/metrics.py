"""How good a completion is, when the truth is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def missing_relative_error(filled: ArrayLike, truth: ArrayLike, observed: ArrayLike) -> float:
    """|filled - truth| / |truth| over the entries that were missing (Frobenius norms).

    Parameters
    ----------
    filled, truth : n x m
    observed : bool, n x m
        True = known. There must be a missing entry.

    Examples
    --------
    >>> from hirank.metrics import missing_relative_error
    >>> missing_relative_error([[1.0, 2.5]], [[1.0, 2.0]], [[True, False]])
    0.25
    """
    missing = ~np.asarray(observed, dtype=bool)
    if not missing.any():
        raise ValueError("Nothing was missing: there is no error to measure.")
    truth = np.asarray(truth, dtype=float)[missing]
    difference = np.asarray(filled, dtype=float)[missing] - truth
    return float(np.linalg.norm(difference) / np.linalg.norm(truth))
