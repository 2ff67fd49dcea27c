"""A table before and after imputation, checked, with all columns of the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hirank._typing import Array, BoolArray, IntArray
from hirank.estimators.imputer import Imputer
from hirank.estimators.plot_data import column_names, restore_columns
from hirank.estimators.validation import is_missing, to_floats


@dataclass(frozen=True)
class ImputedTable:
    """A table, n x m, with observed and imputed values."""

    names: list[str]  # m
    observed: BoolArray
    values: Array  # observed and imputed; NaN where a value is still missing
    lower: Array | None  # ends of intervals
    upper: Array | None
    labels: list[str] | None  # n, of the rows; numbers from 0 if None

    @cached_property
    def imputed(self) -> BoolArray:
        """Which entries were imputed."""
        return ~self.observed & ~np.isnan(self.values)

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Rows and columns of the imputed entries, f each."""
        rows, columns = np.nonzero(self.imputed)
        return rows, columns

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations of the observed entries of each column, m; 0 without any."""
        count = np.maximum(self.observed.sum(axis=0), 1)
        known = np.where(self.observed, self.values, 0)
        size = np.abs(known).max(axis=0)
        unit = np.where(size > 0, size, 1)  # squares must not overflow
        off = np.where(self.observed, (self.values - (known / count).sum(axis=0)) / unit, 0)
        spread = np.sqrt((off**2).sum(axis=0) / count)
        return np.where(spread > 10 * np.finfo(float).eps, spread, 0) * unit

    @cached_property
    def widths(self) -> Array | None:
        """Widths of the intervals of imputed entries, f, in standard deviations; NaN without."""
        if self.lower is None or self.upper is None:
            return None
        return self.in_deviations(self.upper[self.places] - self.lower[self.places])

    def in_deviations(self, sizes: Array) -> Array:
        """Return f sizes in standard deviations of their columns; NaN for constant columns."""
        unit = np.where(self.deviation > 0, self.deviation, np.nan)
        return sizes / unit[self.places[1]]

    def label(self, i: int) -> str:
        """Return the label of row i."""
        return str(i) if self.labels is None else self.labels[i]


def make_table(
    model: Imputer,
    X: Any,
    filled: Any,
    names: Sequence[object] | None,
    interval: tuple[Any, Any] | None,
    labels: Sequence[object] | None,
) -> ImputedTable:
    """Return the table of a report; raise if its parts do not fit together."""
    if not isinstance(model, Imputer):
        raise TypeError(f"model must be a fitted hirank.Imputer; got {type(model).__name__}.")
    check_is_fitted(model)
    names = getattr(X, "columns", None) if names is None else names
    table = to_floats(X)
    n, m = table.shape
    if m != model.n_features_in_:
        raise ValueError(
            f"X has {m} columns, but the model was fitted to {model.n_features_in_}. Pass the "
            "table that it has imputed."
        )
    if labels is not None and len(labels) != n:
        raise ValueError(f"rows must have one label per row, {n}; got {len(labels)}.")
    observed = ~is_missing(table, model.missing_values)
    values = _to_shape("filled", filled, table, model.has_values_)
    ends = [_to_shape("interval", end, table, model.has_values_) for end in interval or ()]
    return ImputedTable(
        [_to_text(name) for name in column_names(m, names, model)],
        observed,
        np.where(observed, table, values),
        ends[0] if ends else None,
        ends[1] if ends else None,
        None if labels is None else [_to_text(label) for label in labels],
    )


def _to_text(label: object) -> str:
    """Return a text that can be encoded: file names may contain lone surrogates."""
    return str(label).encode("utf-8", "replace").decode("utf-8")


def _to_shape(name: str, values: Any, table: Array, has_values: BoolArray) -> Array:
    found = restore_columns(to_floats(values), has_values)
    if found.shape != table.shape:
        raise ValueError(
            f"{name} must have the shape of X, {table.shape}, or only its columns with values; "
            f"got {np.shape(values)}."
        )
    return found
