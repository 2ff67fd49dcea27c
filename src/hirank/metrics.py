"""How good a completion or a clustering is, when the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from hirank._typing import Array, BoolArray

__all__ = ["clustering_error", "missing_relative_error", "relative_error", "standardized_rmse"]


def relative_error(filled: ArrayLike, truth: ArrayLike) -> float:
    """|filled - truth| / |truth| over all entries (Frobenius norms): the paper's error.

    Entries that were observed count as well, so the error falls with the share of missing entries;
    see `missing_relative_error`.

    Parameters
    ----------
    filled, truth : n x m

    Returns
    -------
    error : float

    Examples
    --------
    >>> from hirank.metrics import relative_error
    >>> relative_error([[3.0, 4.5]], [[3.0, 4.0]])
    0.1
    """
    filled, truth = _same_shape(filled, truth)
    return _relative(filled.ravel(), truth.ravel())


def missing_relative_error(filled: ArrayLike, truth: ArrayLike, observed: ArrayLike) -> float:
    """|filled - truth| / |truth| over the entries that were missing (Frobenius norms).

    Parameters
    ----------
    filled, truth : n x m
        Only the missing entries are looked at.
    observed : bool, n x m
        True = known. There must be a missing entry.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from hirank.metrics import missing_relative_error
    >>> missing_relative_error([[1.0, 2.5]], [[1.0, 2.0]], [[True, False]])
    0.25
    """
    filled, truth = _same_shape(filled, truth)
    missing = _missing(observed, truth)
    return _relative(filled[missing], truth[missing])


def standardized_rmse(filled: ArrayLike, truth: ArrayLike, observed: ArrayLike) -> float:
    """Root mean square error over the missing entries, each feature in its own unit.

    The unit of a feature is its standard deviation in the truth, over all samples: filling in the
    mean scores about 1. A constant feature (up to rounding) has no such unit: its entries are left
    out. Leave out yourself features that should be 0 and hold rounding errors only; they can't be
    told from features with a small unit.

    Parameters
    ----------
    filled, truth : n x m
        Of `filled` only the missing entries are looked at; the truth must be complete.
    observed : bool, n x m
        True = known. There must be a missing entry in a feature that is not constant.

    Returns
    -------
    error : float

    Examples
    --------
    >>> from hirank.metrics import standardized_rmse
    >>> truth = [[1.0, 100.0], [3.0, 300.0]]
    >>> filled = [[1.0, 150.0], [2.5, 300.0]]
    >>> standardized_rmse(filled, truth, [[True, False], [False, True]])
    0.5
    """
    filled, truth = _same_shape(filled, truth)
    missing = _missing(observed, truth)
    _check_finite("truth", truth)
    size = _power_of_two(np.abs(truth).max(axis=0))
    given, wanted = filled / size, truth / size
    unit = wanted.std(axis=0)
    varies = unit > 10 * np.finfo(float).eps
    missing = missing & varies
    if not missing.any():
        raise ValueError(
            "All missing entries are in features that are constant in the truth: there is no "
            "standard deviation to measure their errors with. See missing_relative_error."
        )
    _check_finite("filled", given[missing])
    error = (given - wanted) / np.where(varies, unit, 1)
    return float(np.sqrt(np.mean(error[missing] ** 2)))


def clustering_error(true: ArrayLike, found: ArrayLike) -> float:
    """Share of samples in a wrong cluster, when clusters are matched with classes at their best.

    Every cluster stands for at most one class and the other way round. If there are more clusters
    than classes, all samples of the clusters left over are wrong.

    Parameters
    ----------
    true, found : n labels
        Numbers or strings. The names of the labels do not matter.

    Returns
    -------
    error : float
        From 0 to below 1.

    Examples
    --------
    >>> from hirank.metrics import clustering_error
    >>> clustering_error([0, 0, 0, 1, 1], ["b", "b", "a", "a", "a"])
    0.2
    """
    true, found = np.asarray(true), np.asarray(found)
    for name, labels in (("true", true), ("found", found)):
        if labels.ndim != 1 or not labels.size:
            raise ValueError(
                f"{name} must be a list of labels, one a sample; got shape {labels.shape}."
            )
        if labels.dtype.kind == "f":
            _check_finite(name, labels)
    if len(true) != len(found):
        raise ValueError(f"There are {len(true)} true labels and {len(found)} found ones.")
    shared = contingency_matrix(true, found)
    right = int(shared[linear_sum_assignment(shared, maximize=True)].sum())
    return (len(true) - right) / len(true)


def _relative(filled: Array, truth: Array) -> float:
    _check_finite("filled", filled)
    _check_finite("truth", truth)
    if not truth.any():
        raise ValueError("The truth is all zero: an error relative to it is not defined.")
    size = _power_of_two(np.abs(truth).max())
    filled, truth = filled / size, truth / size
    return float(np.linalg.norm(filled - truth) / np.linalg.norm(truth))


def _power_of_two(size: Any) -> Array:
    """Close to `size`: divided by it, squares neither overflow nor vanish, and no digit changes."""
    return np.exp2(np.floor(np.log2(np.where(size > 0, size, 1))))


def _same_shape(filled: ArrayLike, truth: ArrayLike) -> tuple[Array, Array]:
    filled, truth = np.asarray(filled, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if filled.shape != truth.shape or filled.ndim != 2 or not filled.size:
        raise ValueError(
            "filled and truth must be tables of the same shape, samples x features; got "
            f"{filled.shape} and {truth.shape}."
        )
    return filled, truth


def _missing(observed: ArrayLike, truth: Array) -> BoolArray:
    observed = np.asarray(observed)
    if observed.dtype != bool or observed.shape != truth.shape:
        raise ValueError(
            f"observed must be True or False for each entry, shape {truth.shape}; got "
            f"{observed.dtype} of shape {observed.shape}."
        )
    if observed.all():
        raise ValueError("Nothing was missing: there is no error to measure.")
    return ~observed


def _check_finite(name: str, values: Array) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite values where the error is measured.")
