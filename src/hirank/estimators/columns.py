"""What users specify about columns: bounds, integers, and the columns of times and groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._text import abbreviated, plural
from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.exceptions import BoundsWarning, ParameterError, TimeColumnWarning, warn
from hirank.models.timeline import Timeline

Names = NDArray[np.object_] | None


@dataclass(frozen=True)
class TimeAxis:
    """Where the times of rows, and the groups in which they follow each other, come from."""

    column: int | None  # None: rows are evenly spaced, in the given order
    label: str  # of the column, for warnings
    max_gap: int | None  # rows; entries in longer gaps are not imputed
    group: int | None = None  # the column of groups; None: all rows are one group

    def timeline(self, X: Array, observed: BoolArray, *, quiet: bool = False) -> Timeline:
        """Return the times and groups of the rows of X, n x m.

        If times are not complete, and distinct within groups, the rows are taken in the given
        order, with a warning unless `quiet`.
        """
        groups: IntArray | None = None
        if self.group is not None:
            groups = np.unique(X[:, self.group], return_inverse=True)[1]
        rows = Timeline.counted(len(X), groups)
        if self.column is None:
            return rows
        times, known = X[:, self.column].astype(np.float64), observed[:, self.column]
        apart = [times] if groups is None else [times, groups]
        repeated = len(times) - len(np.unique(np.stack(apart), axis=1).T)
        if known.all() and not repeated:
            return Timeline(times, groups)
        if not quiet:
            missing = f"{plural(int((~known).sum()), 'row has', 'rows have')} no time"
            same = f"{plural(repeated, 'row has', 'rows have')} the time of another row"
            warn(TimeColumnWarning(self.label, same if known.all() else missing))
        return rows

    def one_by_one(self, X: Array, observed: BoolArray) -> tuple[Array, BoolArray]:
        """Return a table, n x m, with one group after the other and a constant for their labels.

        What is measured of it does not depend on the order of rows, not even by rounding, and the
        labels are no feature.
        """
        order = self.timeline(X, observed, quiet=True).order
        X, observed = X[order], observed[order]
        X[:, self.group] = 0
        return X, observed

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.max_gap is not None and self.max_gap < 1:
            raise ValueError(f"max_gap must be at least 1; got {self.max_gap}")


def resolve_time(
    time: Any, groups: str | int | None, max_gap: int | None, names: Names, m: int
) -> TimeAxis | None:
    """Return where times and groups come from; None if rows are in no order."""
    if groups is None and (time is None or time is False):
        return None
    group = None if groups is None else find_column(groups, names, m, "groups")
    if time is None or isinstance(time, bool):
        return TimeAxis(None, "", max_gap, group)
    column = find_column(time, names, m, "time")
    if column == group:
        raise ParameterError("groups", "names the same column as {time}.", "time")
    return TimeAxis(column, str(time), max_gap, group)


def number_labels(labels: Sequence[str]) -> IntArray:
    """Return a number for each label of groups, n, in the order of the labels."""
    return np.unique(np.array(labels, dtype=str), return_inverse=True)[1]


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
