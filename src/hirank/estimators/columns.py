"""What users specify about columns: bounds, integers, and the time column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._text import abbreviated, plural
from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds
from hirank.exceptions import BoundsWarning, ParameterError, TimeColumnWarning, warn

Names = NDArray[np.object_] | None


@dataclass(frozen=True)
class TimeAxis:
    """Where the times of rows come from."""

    column: int | None  # None: rows are evenly spaced, in the given order
    label: str  # of the column, for warnings
    max_gap: int | None  # rows; entries in longer gaps are not imputed

    def times(self, X: Array, observed: BoolArray, *, quiet: bool = False) -> Array:
        """Return the times of the rows of X, n x m.

        If they are not complete and distinct, the rows are taken in the given order, with a warning
        unless `quiet`.
        """
        rows = np.arange(len(X), dtype=np.float64)
        if self.column is None:
            return rows
        times, known = X[:, self.column].astype(np.float64), observed[:, self.column]
        repeated = len(times) - len(np.unique(times))
        if known.all() and not repeated:
            return times
        if not quiet:
            missing = f"{plural(int((~known).sum()), 'row has', 'rows have')} no time"
            same = f"{plural(repeated, 'row has', 'rows have')} the time of another row"
            warn(TimeColumnWarning(self.label, same if known.all() else missing))
        return rows

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.max_gap is not None and self.max_gap < 1:
            raise ValueError(f"max_gap must be at least 1; got {self.max_gap}")


def resolve_time(time: Any, max_gap: int | None, names: Names, m: int) -> TimeAxis | None:
    """Return where times come from; None if rows are in no order."""
    if time is None or time is False:
        return None
    if time is True:
        return TimeAxis(None, "", max_gap)
    return TimeAxis(find_column(time, names, m, "time"), str(time), max_gap)


def find_column(key: Any, names: Names, m: int, parameter: str) -> int:
    """Return the position of the column that a name or number stands for, of m columns."""
    if isinstance(key, Integral) and not isinstance(key, bool):
        if -m <= int(key) < m:
            return int(key) % m
        raise ParameterError(parameter, f"names column {key}, but X has {m} columns.")
    if names is None:
        raise ParameterError(
            parameter,
            f"names column {key!r}, but X has no column names. Give column numbers, or a data "
            "frame.",
        )
    found = np.flatnonzero(names == key)
    if not len(found):
        listed = abbreviated(names.tolist(), 20)
        raise ParameterError(parameter, f"names column {key!r}, but the columns are {listed}.")
    return int(found[0])


def resolve_bounds(value: Any, names: Names, m: int) -> Bounds | None:
    """Return the limits of m features: from one pair for all, a pair each, or pairs by column."""
    if value is None:
        return None
    if not isinstance(value, Mapping | Iterable):
        raise ParameterError(
            "bounds",
            "must be a pair such as (0, None) for all columns, a pair for each, or a dictionary of "
            f"pairs by column; got {value!r}.",
        )
    value = value if isinstance(value, Mapping) else list(value)
    if isinstance(value, Mapping):
        limits = np.tile([-np.inf, np.inf], (m, 1))
        for key, pair in value.items():
            limits[find_column(key, names, m, "bounds")] = _pair(pair)
    elif len(value) == 2 and all(one is None or isinstance(one, Real) for one in value):
        limits = np.tile(_pair(value), (m, 1))
    else:
        limits = np.array([_pair(pair) for pair in value])
        if len(limits) != m:
            raise ParameterError(
                "bounds",
                f"has {plural(len(limits), 'pair')}, but X has {m} columns. Give one pair for all, "
                "one for each, or a dictionary of those that are limited.",
            )
    crossed = np.flatnonzero(limits[:, 0] > limits[:, 1])
    if len(crossed):
        columns = abbreviated(_labels(crossed, names))
        raise ParameterError(
            "bounds",
            f"has lower limits above the upper ones in columns {columns}. Swap them.",
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
        raise ParameterError(
            "bounds", f"must be pairs such as (0, None), lower and upper limit; got {pair!r}."
        ) from None
    if np.isnan(limits).any() or limits[0] == np.inf or limits[1] == -np.inf:
        raise ParameterError(
            "bounds", f"must allow at least one number; got {pair!r}. None is no limit."
        )
    return limits


def warn_of_violations(bounds: Bounds, X: Array, observed: BoolArray, names: Names) -> None:
    """Warn of observed values of X, n x m, outside the bounds: they are kept."""
    outside = observed & ((bounds.lower > X) | (bounds.upper < X))
    if outside.any():
        columns = np.flatnonzero(outside.any(axis=0))
        warn(BoundsWarning(tuple(_labels(columns, names)), int(outside.sum())))


def resolve_integers(
    value: Any, X: Array, observed: BoolArray, bounds: Bounds | None, names: Names
) -> BoolArray:
    """Return the features, of m, whose imputed values are rounded to integers.

    "auto" stands for those whose observed values in X, n x m, are all integers.
    """
    m = X.shape[1]
    if value is None or value is False:
        return np.zeros(m, bool)
    if value is True:
        integers = np.ones(m, bool)
    elif isinstance(value, str) and value == "auto":
        integers = np.asarray(((np.round(X) == X) | ~observed).all(axis=0))
    elif isinstance(value, str) or not isinstance(value, Iterable):
        raise ParameterError(
            "integers", f"must be 'auto', True, False or a list of columns; got {value!r}."
        )
    else:
        integers = np.zeros(m, bool)
        integers[[find_column(key, names, m, "integers") for key in value]] = True
    if bounds is not None:
        narrow = np.flatnonzero(integers & (np.ceil(bounds.lower) > np.floor(bounds.upper)))
        if len(narrow):
            columns = abbreviated(_labels(narrow, names))
            raise ParameterError(
                "bounds",
                f"leaves no integer for columns {columns}. Widen the bounds, or leave these "
                "columns out of {integers}.",
                "integers",
            )
    return integers


def _labels(columns: NDArray[np.intp], names: Names) -> list[str]:
    return [str(j if names is None else names[j]) for j in columns]
