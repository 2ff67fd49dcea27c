"""One call that imputes an array or a data frame."""

from __future__ import annotations

from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np

from hirank._typing import Array
from hirank.estimators.imputer import Imputer
from hirank.exceptions import EmptyColumnsWarning, InputError, NonNumericColumnsWarning, warn

Table = TypeVar("Table")


def complete(table: Table, **parameters: Any) -> Table:
    """Impute the missing values of a table, and return a table of the same type.

    Parameters
    ----------
    table : array or data frame, samples x features
        A NumPy array, or a pandas, polars or other data frame that narwhals knows. It is not
        changed.
    **parameters
        Of :class:`hirank.Imputer`, for instance ``random_state=0``.

    Returns
    -------
    table : of the same type
        Column order, names and index stay. Of a data frame, only numeric columns with missing
        values are replaced; all others stay as they were. Columns without any value stay empty,
        with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> import hirank
    >>> table = np.arange(1.0, 41)[:, None] * [1.0, 2.0, 3.0]
    >>> table[3, 1] = np.nan
    >>> float(hirank.complete(table, random_state=0)[3, 1].round(1))
    8.0
    """
    if isinstance(table, np.ndarray):
        return _complete_array(table, parameters)
    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _complete_frame(frame, parameters)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("The data frame is lazy. Call collect() first.")
    return _complete_array(np.asarray(table, dtype=float), parameters)


def _complete_array(X: Any, parameters: dict[str, Any], names: list[str] | None = None) -> Any:
    if X.ndim != 2:
        raise InputError(f"A table must have two dimensions, rows x columns; got {X.ndim}.")
    model = Imputer(**{**parameters, "keep_empty_features": True})
    filled = model.fit_transform(X)
    empty = np.flatnonzero(~model.has_values_)
    if len(empty):
        labels = empty.tolist() if names is None else [names[j] for j in empty]
        warn(EmptyColumnsWarning(tuple(labels)))
        filled[:, empty] = np.nan
    return filled


def _complete_frame(frame: nw.DataFrame[Any], parameters: dict[str, Any]) -> Any:
    X, numeric, others = read_numbers(frame)
    left = [name for name in others if frame.get_column(name).null_count()]
    if left:
        warn(NonNumericColumnsWarning(tuple(left)))
    filled = _complete_array(X, parameters, numeric)
    fills = np.isnan(X) & ~np.isnan(filled)
    replaced = [
        frame.get_column(name)
        .cast(nw.Float64)
        .scatter(np.flatnonzero(rows).tolist(), column[rows].tolist())
        for name, rows, column in zip(numeric, fills.T, filled.T, strict=True)
        if rows.any()
    ]
    return frame.with_columns(*replaced).to_native()


def read_numbers(frame: nw.DataFrame[Any]) -> tuple[Array, list[str], list[str]]:
    """Return the numeric columns of a data frame, n x m, their names, and the other names."""
    numeric = [name for name in frame.columns if frame.get_column(name).dtype.is_numeric()]
    others = [name for name in frame.columns if name not in numeric]
    if not numeric:
        raise InputError(
            f"No column is numeric: {others}. Convert those that contain numbers first."
        )
    return np.column_stack([floats(frame.get_column(name)) for name in numeric]), numeric, others


def floats(column: nw.Series[Any]) -> Any:
    """Return a numeric column as an array of floats, with NaN for nulls."""
    return column.cast(nw.Float64).fill_null(float("nan")).to_numpy()
