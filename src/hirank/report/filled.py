"""A table and its fills as the report takes them: checked, in columns of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank._typing import Array, BoolArray, IntArray
from hirank.estimators.plot_data import all_columns, column_names
from hirank.estimators.validation import is_missing


@dataclass(frozen=True)
class Filled:
    """A table, n x m, before and after."""

    names: list[str]  # m
    observed: BoolArray
    values: Array  # observed ones and fills; NaN where nothing was filled
    lower: Array | None  # ends of intervals
    upper: Array | None
    rows: Sequence[Any] | None  # n labels; numbers from 0 if None

    @cached_property
    def fills(self) -> BoolArray:
        """Which entries were filled."""
        return ~self.observed & ~np.isnan(self.values)

    @cached_property
    def mean(self) -> Array:
        """Means of the observed entries of each column, m; 0 without any."""
        count = np.maximum(self.observed.sum(axis=0), 1)
        mean: Array = (np.where(self.observed, self.values, 0) / count).sum(axis=0)
        return mean

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations of the observed entries of each column, m; 0 without any."""
        count = np.maximum(self.observed.sum(axis=0), 1)
        size = np.abs(np.where(self.observed, self.values, 0)).max(axis=0)
        unit = np.where(size > 0, size, 1)  # squares must not overflow
        off = np.where(self.observed, (self.values - self.mean) / unit, 0)
        spread = np.sqrt((off**2).sum(axis=0) / count)
        return np.where(spread > 10 * np.finfo(float).eps, spread, 0) * unit

    @cached_property
    def range(self) -> tuple[Array, Array]:
        """Least and largest observed entry of each column, m each; NaN without any."""
        low = np.where(self.observed, self.values, np.inf).min(axis=0)
        high = np.where(self.observed, self.values, -np.inf).max(axis=0)
        none = ~self.observed.any(axis=0)
        return np.where(none, np.nan, low), np.where(none, np.nan, high)

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of the entries that were filled, f each."""
        rows, columns = np.nonzero(self.fills)
        return rows, columns

    @cached_property
    def widths(self) -> Array | None:
        """Widths of the intervals of filled entries, f, in standard deviations; NaN without."""
        if self.lower is None or self.upper is None:
            return None
        return self.in_deviations(self.upper[self.places] - self.lower[self.places])

    def in_deviations(self, sizes: Array) -> Array:
        """Sizes of filled entries, f, in standard deviations of their columns; NaN if constant."""
        unit = np.where(self.deviation > 0, self.deviation, np.nan)
        return sizes / unit[self.places[1]]

    def label(self, i: int) -> str:
        """Of row i."""
        return str(i if self.rows is None else self.rows[i])


def filled_table(
    model: Any, X: Any, filled: Any, names: Any, interval: Any, rows: Sequence[Any] | None
) -> Filled:
    """The table of a report; raise if its parts do not fit together."""
    check_is_fitted(model)
    if not hasattr(model, "search_results_"):
        raise TypeError(f"A report needs a fitted hirank.KFMC; got {type(model).__name__}.")
    if names is None:
        names = getattr(X, "columns", None)
    table = _floats(X)
    if table.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has {table.shape[1]} columns but the model was fitted to "
            f"{model.n_features_in_}: give the table that it has filled."
        )
    observed = ~is_missing(table, model.missing_values)
    values = _like("filled", filled, table, model.has_values_)
    lower = upper = None
    if interval is not None:
        lower, upper = (_like("interval", end, table, model.has_values_) for end in interval)
    if rows is not None and len(rows) != len(table):
        raise ValueError(f"There are {len(rows)} labels for {len(table)} rows: give one for each.")
    return Filled(
        column_names(names, model, table.shape[1]),
        observed,
        np.where(observed, table, values),
        lower,
        upper,
        None if rows is None else list(rows),
    )


def _floats(values: Any) -> Array:
    return check_array(values, dtype=np.float64, ensure_all_finite="allow-nan")


def _like(name: str, values: Any, table: Array, has_values: BoolArray) -> Array:
    found = all_columns(_floats(values), has_values)
    if found.shape != table.shape:
        raise ValueError(
            f"{name} must have the shape of X, {table.shape}, or its columns with values only; "
            f"got {np.shape(values)}."
        )
    return found
