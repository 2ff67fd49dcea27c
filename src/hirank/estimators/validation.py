"""Checks of parameters and tables; every error states what to give instead."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from hirank._checks import Rule, count, number, optional
from hirank._integers import find_rounded
from hirank._text import alternatives
from hirank._typing import Array, BoolArray
from hirank.core.scaling import SCALES
from hirank.exceptions import InputError, ParameterError, RelaxationWarning, warn
from hirank.kernels import KERNELS, Kernel, Poly
from hirank.models.dictionary import MAX_POINTS


def check_params(estimator: Any, rules: Mapping[str, Rule]) -> None:
    """Raise ParameterError if a parameter of the estimator breaks its rule."""
    for name, rule in rules.items():
        rule(name, getattr(estimator, name))


def scale_method(name: str, value: Any) -> None:
    """Require a way to scale features."""
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, str) and value in SCALES):
        allowed = alternatives((*SCALES, True, False))
        raise ParameterError(name, f"must be {allowed}; got {value!r}.")


def missing_value(name: str, value: Any) -> None:
    """Require a number or NaN."""
    if not isinstance(value, Real):
        raise ParameterError(
            name,
            f"must be a number or NaN; got {value!r}. None and nulls of data frames count as NaN.",
        )


def kernel_name(name: str, value: Any) -> None:
    """Require a kernel object or the name of a kernel."""
    named = isinstance(value, str) and value in KERNELS
    if not named and not isinstance(value, Kernel):
        names = ", ".join(map(repr, KERNELS))
        raise ParameterError(name, f"must be {names} or a Kernel object; got {value!r}.")


def job_count(name: str, value: Any) -> None:
    """Require None or a number of threads, as `n_jobs` of scikit-learn."""
    if value is None or (isinstance(value, Integral) and not isinstance(value, bool) and value):
        return
    raise ParameterError(
        name, f"must be None or a number of threads, such as 2 or -1 for all; got {value!r}."
    )


KERNEL_RULES: dict[str, Rule] = {
    "n_components": optional(count(most=MAX_POINTS), "auto"),
    "kernel": kernel_name,
    "bandwidth": optional(number(above=0), "path"),
    "beta": optional(number(above=0)),
    "alpha": number(least=0),
}
"""Rules of the parameters of a dictionary."""

NEWTON_RULES: dict[str, Rule] = {
    "momentum": number(least=0, below=1),
    "relaxation": number(above=0),
}
"""Rules of the parameters of the paper's Newton steps."""


def warn_of_relaxation(relaxation: float) -> None:
    """Warn if Lemma 3 of the paper does not hold for the relaxation of its Newton steps."""
    if relaxation <= 1:
        warn(RelaxationWarning(float(relaxation)))


def make_kernel(estimator: Any) -> Kernel:
    """Return the kernel of an estimator, its bandwidth to be resolved on data."""
    if isinstance(estimator.kernel, Kernel):
        return estimator.kernel
    Poly(estimator.degree, estimator.offset)  # raises, also if another kernel is used
    name = "rbf" if estimator.kernel == "auto" else estimator.kernel
    return KERNELS[name](estimator.degree, estimator.offset)


def make_rng(random_state: Any) -> np.random.Generator:
    """Return a generator seeded by scikit-learn's conventions for `random_state`."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def check_n_components(n_components: int, n: int) -> None:
    """Raise ParameterError if there are more components than rows."""
    if n_components > n:
        raise ParameterError(
            "n_components",
            f"is {n_components}, but only n_samples={n} rows can be used. Use at most {n}, or "
            "'auto'.",
        )


def is_missing(X: Array, missing_values: float) -> BoolArray:
    """Return which entries of X are NaN or equal to `missing_values`."""
    missing, marker = np.isnan(X), X.dtype.type(missing_values)
    # A large integer may be rounded to another number, which it does not stand for.
    if not isinstance(missing_values, Integral) or int(missing_values) == float(marker):
        missing |= marker == X
    return missing


def check_table(estimator: Any, X: Any, *, reset: bool) -> tuple[Array, BoolArray]:
    """Return a table as floats, n x m, and which of its entries are observed."""
    if not reset and _passes_unchanged(estimator, X):
        return X, ~is_missing(X, estimator.missing_values)
    check_eager(X)
    try:
        table = validate_data(
            estimator,
            unmask(X),
            reset=reset,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
    except InputError:
        raise
    except ValueError as error:  # so that a program can tell bad input from a defect
        raise InputError(str(error)) from error
    return table, ~is_missing(table, estimator.missing_values)


def _passes_unchanged(estimator: Any, X: Any) -> bool:
    """Return whether the checks of scikit-learn would return a table as it is.

    They take .2 ms, which is as long as imputing a row (docs/notes/online.md).
    """
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
        and not np.isinf(X).any()
    )


def check_row_independent(model: Any) -> None:
    """Raise ParameterError if imputed values of a fitted model depend on other rows."""
    if getattr(model, "_is_ordered", False):
        raise ParameterError(
            "time" if model.groups is None else "groups",
            "is set, so that imputed values depend on the rows around them, which may be in "
            "another partition or batch. Fit the model without it.",
        )


def check_eager(X: Any) -> None:
    """Raise InputError if a table is not in memory."""
    if hasattr(X, "__dask_graph__"):
        raise InputError(
            "X is a Dask collection. To impute it with a fitted model, call "
            "hirank.dask.transform(model, X); to fit a model, call compute() on X or a part of it."
        )
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise InputError(
            "X is a lazy data frame. To impute it with a fitted model, call "
            "hirank.arrow.transform(model, X); to fit a model, call collect() on X or a part of it."
        )


def to_floats(X: Any) -> Array:
    """Return a table as floats, n x m, with NaN at missing and at masked entries."""
    return check_array(unmask(X), dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")


def unmask(X: Any) -> Any:
    """Return a table with NaN at the masked entries of a masked array; others as they are.

    Raise InputError if floats cannot hold its values: dates, and numbers that would be rounded.
    """
    for label, values in _columns(X):
        check_column(label, values)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    return np.ma.filled(X.astype(np.float64 if X.dtype.kind in "biu" else X.dtype), np.nan)


def check_column(label: str, values: NDArray[Any]) -> None:
    """Raise InputError if floats cannot hold the values of a column, n."""
    dates = values[:0]
    if values.dtype.kind == "O":
        dates = values[[isinstance(value, _DATES) for value in values]]
    if values.dtype.kind in "mM" or len(dates):
        raise InputError(
            f"Column {label} contains dates or durations. Convert them to numbers first, for "
            "instance to seconds, or leave the column out."
        )
    rounded = values[find_rounded(values)]
    if len(rounded):
        raise InputError(
            f"Column {label} contains {rounded[0]}, which would change as a float: double "
            "precision does not hold it. Leave the column out, or subtract a large number first."
        )


_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def _columns(X: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield labels and values, in their own types, of columns that are not floats."""
    if type(X) is np.ndarray and X.dtype in (np.float64, np.float32):
        return  # asking narwhals takes as long as imputing a row
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for name in frame.columns:
            column = frame.get_column(name)
            if column.dtype not in (nw.Float64, nw.Float32):
                yield repr(name), known_values(column)
    elif isinstance(X, list | tuple) or hasattr(X, "__array__"):
        # Python's numbers as they are: next to a float, NumPy would round integers.
        given = isinstance(X, list | tuple)
        values = X if isinstance(X, np.ndarray) else np.asarray(X, object if given else None)
        if values.ndim == 2 and values.dtype not in (np.float64, np.float32):
            yield from ((str(j), np.ma.compressed(values[:, j])) for j in range(values.shape[1]))


def known_values(column: nw.Series[Any]) -> NDArray[Any]:
    """Return the values of a column that are not null, in its own type."""
    return np.asarray(column.drop_nulls().to_numpy())


def check_observed(observed: BoolArray, missing_values: float) -> None:
    """Raise InputError if nothing is observed."""
    if not observed.any():
        raise InputError(
            "X has no observed values, so nothing can be fitted. Check "
            f"missing_values={missing_values!r}."
        )


def check_coverage(coverage: float) -> None:
    """Raise ParameterError if this cannot be the coverage of intervals."""
    number(above=0)("coverage", coverage)
    if not coverage < 1:
        raise ParameterError("coverage", f"must be below 1, such as 0.9; got {coverage!r}.")
