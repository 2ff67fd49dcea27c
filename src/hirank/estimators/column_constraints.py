"""What a user says of single features: limits, whole numbers, which of them is the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.warn import warn_user

MOST_NAMED = 5
"""Features that a message lists."""


def position(key: Any, names: NDArray[np.object_] | None, m: int, what: str) -> int:
    """The column that a name or number stands for, of m columns."""
    if isinstance(key, Integral) and not isinstance(key, bool):
        if -m <= int(key) < m:
            return int(key) % m
        raise ValueError(f"{what}: there is no column {key}; X has {m}.")
    if names is None:
        raise ValueError(
            f"{what}: X has no column names, so {key!r} can't be found. Give column numbers, or a "
            "data frame."
        )
    found = np.flatnonzero(names == key)
    if not len(found):
        raise ValueError(f"{what}: there is no column {key!r}. X has {', '.join(map(str, names))}.")
    return int(found[0])


def bounds_of(value: Any, names: NDArray[np.object_] | None, m: int) -> Bounds | None:
    """Limits of m features: from one pair for all, a pair for each, or pairs by name or number."""
    if value is None:
        return None
    if not isinstance(value, Mapping | Iterable):
        raise ValueError(
            "bounds must be a pair such as (0, None) for all columns, a pair for each, or a "
            f"dictionary of pairs by column; got {value!r}."
        )
    value = value if isinstance(value, Mapping) else list(value)
    if isinstance(value, Mapping):
        limits = np.tile([-np.inf, np.inf], (m, 1))
        for key, pair in value.items():
            limits[position(key, names, m, "bounds")] = _pair(pair)
    elif len(value) == 2 and all(one is None or isinstance(one, Real) for one in value):
        limits = np.tile(_pair(value), (m, 1))
    else:
        limits = np.array([_pair(pair) for pair in value])
        if len(limits) != m:
            raise ValueError(
                f"bounds has {len(limits)} pairs, but X has {m} columns. Give one pair for all, "
                "one for each, or a dictionary of those that are limited."
            )
    crossed = np.flatnonzero(limits[:, 0] > limits[:, 1])
    if len(crossed):
        raise ValueError(
            f"bounds contradict themselves in columns {_listed(crossed, names)}: the lower limit "
            "is above the upper one. Swap them."
        )
    return Bounds(limits[:, 0].copy(), limits[:, 1].copy())


def _pair(pair: Any) -> tuple[float, float]:
    try:
        lower, upper = pair
        limits = (
            -np.inf if lower is None else float(lower),
            np.inf if upper is None else float(upper),
        )
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be pairs such as (0, None), lower and upper limit; got {pair!r}."
        ) from None
    if np.isnan(limits).any() or limits[0] == np.inf or limits[1] == -np.inf:
        raise ValueError(f"bounds must leave room for a number; got {pair!r}. None is no limit.")
    return limits


def warn_violations(
    bounds: Bounds, X: Array, observed: BoolArray, names: NDArray[np.object_] | None
) -> None:
    """Tell of observed values of X, n x m, beyond the limits: they stay what they are."""
    beyond = observed & ((bounds.lower > X) | (bounds.upper < X))
    if beyond.any():
        columns = np.flatnonzero(beyond.any(axis=0))
        warn_user(
            f"{beyond.sum()} observed values lie beyond bounds, in columns "
            f"{_listed(columns, names)}. They are kept as they are; only fills are limited. Check "
            "the values or widen the bounds."
        )


def whole_features(
    value: Any, X: Array, observed: BoolArray, names: NDArray[np.object_] | None
) -> BoolArray:
    """Features whose fills are to be whole numbers, m.

    "auto" stands for those with nothing but whole numbers observed in X, n x m.
    """
    m = X.shape[1]
    if value is None or value is False:
        return np.zeros(m, bool)
    if value is True:
        return np.ones(m, bool)
    if isinstance(value, str) and value == "auto":
        return np.asarray(((np.round(X) == X) | ~observed).all(axis=0))
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(
            f"integers must be 'auto', True, False or a list of columns; got {value!r}."
        )
    chosen = np.zeros(m, bool)
    chosen[[position(key, names, m, "integers") for key in value]] = True
    return chosen


def check_whole(whole: BoolArray, bounds: Bounds | None, names: NDArray[np.object_] | None) -> None:
    """Raise if there is no whole number within the limits of a feature that needs one, of m."""
    if bounds is None:
        return
    none = np.flatnonzero(whole & (np.ceil(bounds.lower) > np.floor(bounds.upper)))
    if len(none):
        raise ValueError(
            f"There is no whole number within the bounds of columns {_listed(none, names)}: widen "
            "them, or leave those columns out of integers."
        )


def rounded(filled: Array, whole: BoolArray, bounds: Bounds | None) -> Array:
    """Fills, n x m, with whole numbers where asked for, and within the limits."""
    filled = filled.copy()
    if bounds is not None:
        filled = np.clip(filled, bounds.lower, bounds.upper).astype(filled.dtype)
    filled[:, whole] = np.round(filled[:, whole])
    if bounds is not None and whole.any():
        lower, upper = np.ceil(bounds.lower[whole]), np.floor(bounds.upper[whole])
        filled[:, whole] = np.clip(filled[:, whole], lower, upper)
    return filled


def times_of(
    order: Any,
    X: Array,
    observed: BoolArray,
    names: NDArray[np.object_] | None,
    *,
    quiet: bool = False,
) -> Array | None:
    """When the rows of X, n x m, were taken; None if they are in no order.

    A column that can't be a time is told of, unless `quiet`, and the rows are taken as they come.
    """
    if order is None:
        return None
    rows = np.arange(len(X), dtype=np.float64)
    if isinstance(order, str) and order == "time" and (names is None or order not in names):
        return rows
    j = position(order, names, X.shape[1], "order")
    times = X[:, j].astype(np.float64)
    wrong = ""
    if not observed[:, j].all():
        wrong = f"{(~observed[:, j]).sum()} rows have no time"
    elif len(np.unique(times)) < len(times):
        wrong = f"{len(times) - len(np.unique(times))} rows have a time that another row has too"
    if not wrong:
        return times
    if not quiet:
        warn_user(
            f"order={order!r}: {wrong}, so the rows are taken in the order in which they stand, "
            "evenly spaced. Fill in or drop those rows, or sort the table and give order='time'."
        )
    return rows


def _listed(columns: IntArray, names: NDArray[np.object_] | None) -> str:
    labels = [str(j if names is None else names[j]) for j in columns[:MOST_NAMED]]
    return ", ".join(labels) + (", ..." if len(columns) > MOST_NAMED else "")
