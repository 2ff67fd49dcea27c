"""Errors of imputed tables and of clusterings whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from hirank._typing import Array, BoolArray

__all__ = ["clustering_error", "missing_relative_error", "relative_error", "standardized_rmse"]


def relative_error(filled: ArrayLike, truth: ArrayLike) -> float:
    """Return |filled - truth| / |truth| over all entries (Frobenius norms), the paper's error.

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
    """Return |filled - truth| / |truth| over the missing entries (Frobenius norms).

    Parameters
    ----------
    filled, truth : n x m
        Only the missing entries are used.
    observed : bool, n x m
        False = missing. There must be a missing entry.

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
    """Return the root mean square error over the missing entries of standardized features.

    The unit of a feature is its standard deviation in the truth, over all samples, so that column
    means have an error of about 1. Entries of constant features (up to rounding) are ignored.
    Features that should be 0 but have rounding errors cannot be distinguished from features with a
    small unit: leave them out.

    Parameters
    ----------
    filled, truth : n x m
        Of `filled` only the missing entries are used; the truth must be complete.
    observed : bool, n x m
        False = missing. There must be a missing entry in a feature that is not constant.

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
            "All missing entries are in features that are constant in the truth, so their standard "
            "deviation is 0. Use missing_relative_error."
        )
    _check_finite("filled", given[missing])
    error = (given - wanted) / np.where(varies, unit, 1)
    return float(np.sqrt(np.mean(error[missing] ** 2)))


def clustering_error(true: ArrayLike, found: ArrayLike) -> float:
    """Return the share of samples in a wrong cluster, under the best matching with classes.

    Every cluster is matched with at most one class, and every class with at most one cluster; all
    samples of the remaining clusters are wrong.

    Parameters
    ----------
    true, found : n labels
        Numbers or strings, in any coding.

    Returns
    -------
    error : float
        At least 0, below 1.

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
                f"{name} must be a list of labels, one per sample; got shape {labels.shape}."
            )
        if labels.dtype.kind == "f":
            _check_finite(name, labels)
    if len(true) != len(found):
        raise ValueError(
            f"true and found must have equal length; got {len(true)} and {len(found)} labels."
        )
    shared = contingency_matrix(true, found)
    right = int(shared[linear_sum_assignment(shared, maximize=True)].sum())
    return (len(true) - right) / len(true)


def _relative(filled: Array, truth: Array) -> float:
    """Return the relative error of finite values, whatever their size."""
    _check_finite("filled", filled)
    _check_finite("truth", truth)
    if not truth.any():
        raise ValueError("truth must not be all zero: the error relative to it is not defined.")
    size = _power_of_two(np.abs(truth).max())
    filled, truth = filled / size, truth / size
    return float(np.linalg.norm(filled - truth) / np.linalg.norm(truth))


def _power_of_two(size: Any) -> Array:
    """Return a power of two near `size`: dividing by it is exact, and squares do not overflow."""
    return np.exp2(np.floor(np.log2(np.where(size > 0, size, 1))))


def _same_shape(filled: ArrayLike, truth: ArrayLike) -> tuple[Array, Array]:
    """Return both tables as floats; raise ValueError if their shapes differ."""
    filled, truth = np.asarray(filled, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if filled.shape != truth.shape or filled.ndim != 2 or not filled.size:
        raise ValueError(
            "filled and truth must be tables of the same shape, n_samples x n_features; got "
            f"{filled.shape} and {truth.shape}."
        )
    return filled, truth


def _missing(observed: ArrayLike, truth: Array) -> BoolArray:
    """Return which entries are missing; raise ValueError if none is."""
    observed = np.asarray(observed)
    if observed.dtype != bool or observed.shape != truth.shape:
        raise ValueError(
            f"observed must be a bool array of shape {truth.shape}; got "
            f"{observed.dtype} of shape {observed.shape}."
        )
    if observed.all():
        raise ValueError("observed is True everywhere: without missing entries there is no error.")
    return ~observed


def _check_finite(name: str, values: Array) -> None:
    """Raise ValueError if a value is NaN or infinite."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has NaN or infinite values where the error is measured.")
