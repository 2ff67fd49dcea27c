"""The record that `advise` returns, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hirank._text import abbreviated, plural

Name = int | str
MAX_SHOWN = 8
"""Rows or columns that the text names."""
NOISY_ERROR = 0.2
"""Error above which estimates of dimensions are lower bounds (oil flow and air quality: 1)."""


@dataclass(frozen=True)
class Advice:
    """How well the missing values of a table can be imputed. ``print`` shows it as text.

    Attributes
    ----------
    n_samples, n_features : int
    observed_rate : float
        Share of the entries that are observed.
    verdict : str
        A sentence on the structure of the table, as in :meth:`hirank.Imputer.summary`.
    n_held_out : int
        Entries that were held out to measure errors.
    error, linear_error : float
        Root mean square error at held-out entries, of the fitted Imputer and of the best linear
        method; column mean = 1. NaN if too few entries were observed to hold some out.
    poor_features : dict
        Features that were hardly recovered better than by their mean, with their errors.
    latent_dimension, linear_rank, feature_rank : int or None
        Estimates of the number of latent variables, the rank of the table (without its mean), and
        the rank in the feature space of a polynomial kernel of degree 2. None if errors are too
        large for an estimate.
    low_rank_rate, kfmc_rate : float or None
        Shares of the entries that should be observed for these ranks, by the paper's rules.
    reachable : float or None
        Share of the missing entries whose row and column have enough observed entries. None if
        nothing is missing.
    row_needs, column_needs : int
        Observed entries that a row and a column require.
    sparse_rows, sparse_features : dict
        Those that have fewer: position or name, and how many they have.
    empty_rows, empty_features, constant_features : tuple
        Rows and features without observed entries, and features with a single value.
    separate_groups : tuple of tuples
        Groups of features such that no row has observed entries of two; empty for a single group.
    ignored_columns : tuple of str
        Columns of a data frame that are not numeric.

    Examples
    --------
    No row has two observed entries, so nothing relates the features:

    >>> import numpy as np
    >>> from hirank.theory import advise
    >>> advice = advise([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan], [np.nan, 5.0]])
    >>> advice.reachable, advice.separate_groups
    (0.0, ((0,), (1,)))
    >>> advice.to_dict()["separate_groups"]
    [[0], [1]]
    """

    n_samples: int
    n_features: int
    observed_rate: float
    verdict: str
    n_held_out: int
    error: float
    linear_error: float
    poor_features: Mapping[Name, float]
    reachable: float | None
    row_needs: int
    column_needs: int
    sparse_rows: Mapping[int, int]
    sparse_features: Mapping[Name, int]
    empty_rows: tuple[int, ...]
    empty_features: tuple[Name, ...]
    constant_features: tuple[Name, ...]
    separate_groups: tuple[tuple[Name, ...], ...]
    ignored_columns: tuple[str, ...]
    latent_dimension: int | None = None
    linear_rank: int | None = None
    feature_rank: int | None = None
    low_rank_rate: float | None = None
    kfmc_rate: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain numbers, strings, lists and dictionaries."""
        return {key: _convert(value) for key, value in asdict(self).items()}

    def __str__(self) -> str:
        return "\n".join(_write_lines(self))


def _convert(value: Any) -> Any:
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, dict):
        return {key: _convert(item) for key, item in value.items()}
    return [_convert(item) for item in value] if isinstance(value, tuple) else value


def _write_lines(a: Advice) -> Iterator[str]:
    yield (
        f"{plural(a.n_samples, 'row')} x {plural(a.n_features, 'column')}, "
        f"{a.observed_rate:.1%} observed."
    )
    yield a.verdict
    if a.n_held_out:
        linear = "" if a.linear_error != a.linear_error else f", linear {a.linear_error:.3f}"
        entries = plural(a.n_held_out, "held-out entry", "held-out entries")
        yield f"Error at {entries} (column mean = 1): hirank {a.error:.3f}{linear}."
    if a.latent_dimension is not None:
        # Directions smaller than the error cannot be seen.
        least = "at least" if a.error > NOISY_ERROR else "about"
        yield (
            f"Estimates: {least} {plural(a.latent_dimension, 'latent dimension')}, rank "
            f"{a.linear_rank}, rank {a.feature_rank} in feature space. By the paper's rules, "
            f"linear completion requires {_rate(a.low_rank_rate)}, KFMC {_rate(a.kfmc_rate)}."
        )
    if a.reachable is not None and a.reachable < 1:
        yield f"{a.reachable:.1%} of the missing entries have enough observed entries around them."
    for what, needs, few in (
        ("row", a.row_needs, a.sparse_rows),
        ("column", a.column_needs, a.sparse_features),
    ):
        if few:
            counted = plural(len(few), f"{what} has", f"{what}s have")
            listed = _list(f"{name} (has {number})" for name, number in few.items())
            yield f"{counted} fewer than the {needs} observed entries required: {listed}."
    if a.separate_groups:
        groups = _list(f"[{_list(group)}]" for group in a.separate_groups)
        yield f"No row has observed entries of two of these groups of columns: {groups}."
    for label, names in (
        ("Hardly recovered better than by their mean", a.poor_features),
        ("Rows without observed entries", a.empty_rows),
        ("Columns without observed entries", a.empty_features),
        ("Columns with a single value", a.constant_features),
        ("Columns that are not numeric and were ignored", a.ignored_columns),
    ):
        if names:
            yield f"{label}: {_list(names)}."


def _rate(rate: float | None) -> str:
    assert rate is not None
    return f"{rate:.0%} of the entries" if rate < 1 else "more than all entries"


def _list(items: Iterable[Any]) -> str:
    return abbreviated([str(item) for item in items], MAX_SHOWN)
