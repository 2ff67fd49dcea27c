"""The column of groups: rows of one group, such as a device, follow each other.

A label is text or a number; 7, 7.0 and "7" are the same one. The column passes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.utils._set_output import _get_output_config

from hirank._text import abbreviated, plural
from hirank._typing import Array
from hirank.estimators.columns import Names, find_column
from hirank.exceptions import InputError, ParameterError


def group_column(name: str, value: Any) -> None:
    """Require None, or the name or number of a column."""
    is_column = isinstance(value, str | Integral) and not isinstance(value, bool)
    if value is not None and not is_column:
        allowed = "None, or the name or number of the column with the labels of groups"
        raise ParameterError(name, f"must be {allowed}; got {value!r}.")


@dataclass(frozen=True)
class Labels:
    """The labels of n rows, and how they stand in the table."""

    names: tuple[str, ...]  # n
    column: int
    given: Any = None  # the column as it was given; None where the table contains it as numbers

    def restore(self, out: Array, X: Any, estimator: Any) -> Any:
        """Return imputed rows with the labels in their column; text makes them objects.

        Where the estimator was told to return data frames, they are one.
        """
        if self.given is None:
            return out
        container = _get_output_config("transform", estimator)["dense"]
        if container not in ("pandas", "polars"):
            mixed = out.astype(object)
            mixed[:, self.column] = [*self.given]
            return mixed
        columns: list[Any] = [*out.T]
        columns[self.column] = self.given
        frame = dict(zip(estimator.get_feature_names_out(), columns, strict=True))
        if container == "polars":
            import polars as pl

            return pl.DataFrame(frame)
        import pandas as pd

        return pd.DataFrame(frame, index=X.index if isinstance(X, pd.DataFrame) else None)


def take_labels(X: Any, key: str | int | None, names: Names) -> tuple[Any, Labels | None]:
    """Return a table in which numbers take the place of text labels, and the labels.

    `names` are those of the columns of a table without names. What is not a table is returned as
    it is, for the checks of scikit-learn.
    """
    if key is None:
        return X, None
    if not isinstance(X, np.ndarray):  # narwhals takes .1 ms to reject an array
        frame = nw.from_native(X, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return _take_from_frame(frame, key)
    table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if table.ndim != 2 or not table.size:
        return X, None
    column = find_column(key, names, table.shape[1], "groups")
    values = table[:, column]
    found = read_labels(values.tolist(), key)
    if values.dtype.kind in "iuf" or all(isinstance(value, Real) for value in values):
        return X, Labels(found, column)
    rest = table.astype(object)
    rest[:, column] = 0.0
    return rest, Labels(found, column, values)


def _take_from_frame(frame: nw.DataFrame[Any], key: str | int) -> tuple[Any, Labels | None]:
    names = frame.columns
    are_text = all(isinstance(name, str) for name in names)
    known = np.array(names, dtype=object) if are_text else None
    column = find_column(key, known, len(names), "groups")
    series = frame.get_column(names[column])
    found = read_labels(series.to_list(), key)
    if series.dtype.is_numeric():
        return frame.to_native(), Labels(found, column)
    given = series.to_native()
    if series.implementation.is_pandas_like():
        given = given.array  # without its index
    elif not series.implementation.is_polars():
        given = series.to_list()
    rest = frame.with_columns(nw.lit(0.0).alias(names[column]))
    return rest.to_native(), Labels(found, column, given)


def read_labels(values: Sequence[Any], key: Any) -> tuple[str, ...]:
    """Return labels as text; raise InputError if a row has none, or what cannot be one."""
    found = [read_label(value, key) for value in values]
    missing = [i for i, label in enumerate(found) if label is None]
    if missing:
        rows = plural(len(missing), "row has", "rows have")
        raise InputError(
            f"{rows} no label in the column of groups, {key!r} (positions {abbreviated(missing)}). "
            "Write there which device or other group they are from, or leave them out."
        )
    return tuple(label for label in found if label is not None)


def read_label(value: Any, key: Any) -> str | None:
    """Return a label as text, None if it is missing; raise InputError if it cannot be one."""
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return None
    if isinstance(value, str):
        return str(value) or None
    if isinstance(value, Integral | np.bool_):
        return str(int(value))
    if isinstance(value, Real) and np.isfinite(float(value)):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Real) and np.isnan(float(value)):
        return None
    raise InputError(
        f"Labels in the column of groups, {key!r}, must be text or finite numbers; got {value!r}."
    )


def label_number(label: str) -> float:
    """Return the number that a label is the text of; NaN for other text."""
    try:
        number = float(label)
    except ValueError:
        return np.nan
    return number if read_label(number, None) == label else np.nan
