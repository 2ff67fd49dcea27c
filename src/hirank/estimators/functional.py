"""One call that imputes an array or a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np

from hirank._integers import EXACT, fit_integers
from hirank._typing import Array, BoolArray
from hirank.estimators.columns import find_column, number_labels
from hirank.estimators.groups import read_labels
from hirank.estimators.imputer import Imputer
from hirank.estimators.validation import (
    check_eager,
    is_missing,
    known_values,
    missing_value,
    unmask,
)
from hirank.exceptions import EmptyColumnsWarning, InputError, NonNumericColumnsWarning, warn

Table = TypeVar("Table")


def complete(
    table: Table, *, random_state: Any = 0, plausible: bool | None = None, **parameters: Any
) -> Table:
    """Impute the missing values of a table, and return a table of the same type.

    Parameters
    ----------
    table : array or data frame, samples x features
        A NumPy array, in which masked entries are missing, or a pandas, polars or other data frame
        that narwhals knows. It is not changed.
    random_state : int, RandomState or None, default=0
        The same table gives the same result in every call, unless this is None.
    plausible : bool, optional
        Imputed values have no more decimals than the observed ones of their column, and stay within
        limits (0, 1 and 100) that none of these crosses. By default in data frames, not in arrays.
    **parameters
        Of :class:`hirank.Imputer`, for instance ``integers="auto"``.

    Returns
    -------
    table : of the same type
        Column order, names and index stay. Of a data frame, only numeric columns with missing
        values are replaced; all others stay as they were. Columns without any value stay empty,
        with a warning.

    Raises
    ------
    InputError
        If an observed value would change: an integer column becomes double precision if imputed
        values are not whole, but its integers may have more than 53 bits.

    Examples
    --------
    >>> import numpy as np
    >>> import hirank
    >>> table = np.arange(1.0, 41)[:, None] * [1.0, 2.0, 3.0]
    >>> table[3, 1] = np.nan
    >>> float(hirank.complete(table)[3, 1].round(1))
    8.0
    """
    parameters["random_state"] = random_state
    check_eager(table)
    frame = nw.from_native(table, pass_through=True)
    if plausible is None:
        plausible = isinstance(frame, nw.DataFrame)
    parameters["plausible"] = plausible
    if isinstance(frame, nw.DataFrame):
        return _complete_frame(frame, parameters)
    values: Any = unmask(table)
    filled = _complete_array(
        values if isinstance(values, np.ndarray) else np.asarray(values, dtype=float), parameters
    )
    return np.ma.masked_invalid(filled) if isinstance(table, np.ma.MaskedArray) else filled


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
    marker = parameters.pop("missing_values", np.nan)
    missing_value("missing_values", marker)
    columns = [frame.get_column(name) for name in numeric]
    missing = np.column_stack(
        [_find_missing(*pair, marker) for pair in zip(columns, X.T, strict=True)]
    )
    X[missing] = np.nan
    names = numeric
    if parameters.get("groups") in others:
        names = [*numeric, parameters["groups"]]
        labels = read_labels(frame.get_column(names[-1]).to_list(), names[-1])
        X = np.column_stack([X, number_labels(labels)])
    filled = _complete_array(X, _by_position(parameters, names), names)[:, : len(numeric)]
    imputed = missing & ~np.isnan(filled)
    replaced = [
        _fill(*one) for one in zip(columns, imputed.T, filled.T, strict=True) if one[1].any()
    ]
    return frame.with_columns(*replaced).to_native()


def read_numbers(frame: nw.DataFrame[Any]) -> tuple[Array, list[str], list[str]]:
    """Return the numeric columns of a data frame, n x m, their names, and the other names.

    Decimals count as not numeric, as in files: imputed values do not have their digits.
    """
    kinds = {name: frame.get_column(name).dtype for name in frame.columns}
    numeric = [name for name, kind in kinds.items() if kind.is_numeric() and kind != nw.Decimal]
    others = [name for name in frame.columns if name not in numeric]
    if not numeric:
        raise InputError(
            f"No column is numeric: {others}. Convert those that contain numbers first."
        )
    return np.column_stack([floats(frame.get_column(name)) for name in numeric]), numeric, others


def floats(column: nw.Series[Any]) -> Array:
    """Return a numeric column as an array of floats, with NaN for nulls."""
    values = np.full(len(column), np.nan)
    values[~column.is_null().to_numpy()] = known_values(column)
    return values


def _find_missing(column: nw.Series[Any], values: Array, marker: float) -> BoolArray:
    """Return where a column, with these `values` as floats, is missing or equal to the marker."""
    if column.dtype == nw.Float32:
        return is_missing(values.astype(np.float32), marker)
    missing = np.isnan(values)
    for i in np.flatnonzero(values == float(marker)).tolist():
        missing[i] = column[i] == marker  # as integers, of which floats may round several to one
    return missing


def _by_position(parameters: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Return parameters in which columns are given by their positions among the numeric ones."""

    def find(key: Any, parameter: str) -> int:
        return find_column(key, np.array(names, dtype=object), len(names), parameter)

    bounds, integers = parameters.get("bounds"), parameters.get("integers")
    found: dict[str, Any] = {
        key: find(parameters[key], key)
        for key in ("time", "groups")
        if isinstance(parameters.get(key), str)
    }
    if isinstance(bounds, Mapping):
        found["bounds"] = {find(key, "bounds"): pair for key, pair in bounds.items()}
    if isinstance(integers, Iterable) and not isinstance(integers, str):
        found["integers"] = [find(key, "integers") for key in integers]
    return {**parameters, **found}


def _fill(column: nw.Series[Any], rows: BoolArray, values: Array) -> nw.Series[Any]:
    """Return a column with `values` in some rows, of its own type if that can hold them."""
    kind = column.dtype
    dtype = np.dtype(str(kind).lower()) if kind in _OWN_TYPES else np.dtype(np.float64)
    if dtype.kind in "iu" and not fit_integers(values[rows], dtype):
        dtype = np.dtype(np.float64)
    if dtype.kind == "f" and kind.is_integer():
        _check_exact(column)
    if dtype == np.float64:
        column = column.cast(nw.Float64)
    own = np.where(rows, values, 0).astype(dtype)
    space = nw.get_native_namespace(column)
    new = nw.new_series(column.name, own, column.dtype, native_namespace=space)
    kept = nw.new_series(column.name, ~rows, nw.Boolean, native_namespace=space)
    return column.zip_with(kept, new)


_OWN_TYPES = (
    *(nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64),
    *(nw.Float32, nw.Float64),
)


def _check_exact(column: nw.Series[Any]) -> None:
    """Raise InputError if double precision may not hold the integers of a column."""
    known = known_values(column)
    large = known[(known > EXACT) | (known < -EXACT)]
    if len(large):
        raise InputError(
            f"Column {column.name!r} contains {large[0]}, but imputed values that are not integers "
            "require double precision, which does not hold all integers of this size. Round the "
            f"imputed values (integers=[{column.name!r}]), or leave the column out."
        )
