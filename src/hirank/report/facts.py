"""The content of the report: numbers from a table, its imputed values and the model; no HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hirank._text import number, percent, plural
from hirank._typing import Array, IntArray
from hirank.estimators.imputer import Imputer
from hirank.estimators.plot_data import Coverage, check_coverage, evenly_spaced, split_stages
from hirank.estimators.summary import MAX_SPARSE
from hirank.report.table import ImputedTable

MAX_CELLS = 2000  # in the list of imputed values
MAX_LISTED = 20  # rows or cells to check
MIN_ENTRIES = 5  # held-out entries of a column below which its coverage would be chance
MAX_SHARE = 0.5  # of a column that is missing without a remark
MAX_OUTSIDE = 0.1  # part of the observed range that a value may lie outside without being listed

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """An imputed value; `size` is why it is listed, in standard deviations of its column."""

    row: str
    column: str
    value: float
    lower: float
    upper: float
    size: float = np.nan


@dataclass(frozen=True)
class Column:
    """A column and its errors at held-out entries (column mean = 1; NaN if unknown)."""

    name: str
    index: int
    missing: int
    share: float  # of missing entries
    imputed: int
    n_held_out: int
    error: float
    linear_error: float
    remark: str
    width: float  # mean width of intervals, in standard deviations
    coverage: float  # of intervals, at held-out entries


@dataclass(frozen=True)
class Trial:
    """A model that was compared with others."""

    family: str
    settings: str
    error: float
    weight: float
    seconds: float
    failure: str


@dataclass(frozen=True)
class Listing(Generic[T]):
    """The first of `total` items."""

    shown: list[T]
    total: int


@dataclass(frozen=True)
class Facts:
    """All that the report shows except for the pictures."""

    table: ImputedTable
    n_missing: int
    n_imputed: int
    summary: dict[str, Any]
    n_held_out: int
    columns: list[Column]
    trials: list[Trial]
    n_stages: int
    coverage: float
    check: Coverage | None  # of the coverage, at held-out entries
    empty_rows: Listing[str]
    sparse_rows: Listing[tuple[str, int]]  # with the number of observed entries
    outside: Listing[Cell]  # far outside the observed range
    widest: Listing[Cell]
    cells: list[Cell]


def collect_facts(model: Imputer, table: ImputedTable, coverage: float) -> Facts:
    """Return the facts of a fitted model and the table that it has imputed."""
    summary = model.summary()
    check = check_coverage(model, coverage)
    counts, imputed = table.observed.sum(axis=1), table.imputed.any(axis=1)
    empty = np.flatnonzero((counts == 0) & imputed)
    few = imputed & (counts > 0) & (counts <= MAX_SPARSE) & (table.observed.shape[1] > MAX_SPARSE)
    sparse = np.flatnonzero(few)[np.argsort(counts[few], kind="stable")]
    return Facts(
        table=table,
        n_missing=int((~table.observed).sum()),
        n_imputed=int(table.imputed.sum()),
        summary=summary,
        n_held_out=summary["n_held_out"],
        columns=list(_columns(model, table, summary, check)),
        trials=list(_trials(model.search_results_)),
        n_stages=len(split_stages(model.trace_)),
        coverage=coverage,
        check=check,
        empty_rows=Listing([table.label(i) for i in empty[:MAX_LISTED]], len(empty)),
        sparse_rows=Listing(
            [(table.label(i), int(counts[i])) for i in sparse[:MAX_LISTED]], len(sparse)
        ),
        outside=_largest(table, _outside(table)),
        widest=_largest(table, table.widths),
        cells=list(_cells(table, evenly_spaced(len(table.places[0]), MAX_CELLS))),
    )


def sort_by_largest(columns: list[Column], attribute: str) -> list[Column]:
    """Return columns sorted by an attribute, largest first and NaN last."""
    return sorted(columns, key=lambda one: -np.nan_to_num(getattr(one, attribute), nan=-np.inf))


def _columns(
    model: Imputer, table: ImputedTable, summary: dict[str, Any], check: Coverage | None
) -> Iterator[Column]:
    names = list(getattr(model, "feature_names_in_", ()))
    judged = {row["feature"]: row for row in summary.get("features", ())}
    missing, imputed = (~table.observed).sum(axis=0), table.imputed.sum(axis=0)
    widths = _mean_widths(table)
    for j, name in enumerate(table.names):
        row = judged.get(names[j] if names else j, {})
        inside = np.empty(0) if check is None else check.inside[check.feature == j]
        error = row.get("error", np.nan)
        yield Column(
            name,
            j,
            int(missing[j]),
            missing[j] / len(table.observed),
            int(imputed[j]),
            row.get("n_held_out", 0),
            error,
            row.get("linear_error", np.nan),
            row.get("remark") or _remark(table, j, bool(summary["n_held_out"]) and np.isnan(error)),
            widths[j],
            float(inside.mean()) if len(inside) >= MIN_ENTRIES else np.nan,
        )


def _remark(table: ImputedTable, j: int, unknown: bool) -> str:
    """Return why the imputed values of a column may be wrong, apart from its error."""
    observed = table.observed[:, j]
    share = 1 - observed.mean()
    if not share:
        return ""
    if share == 1:
        return "has no observed values to learn from"
    if not table.deviation[j]:
        return "is constant where observed, and imputed with that constant"
    if unknown:
        return "has too few held-out entries to estimate its error"
    return f"{percent(share)} of its values are missing" if share > MAX_SHARE else ""


def _mean_widths(table: ImputedTable) -> Array:
    """Return the mean width of the intervals of each column, m, in standard deviations."""
    m, widths = len(table.names), table.widths
    if widths is None:
        return np.full(m, np.nan)
    finite = np.isfinite(widths)
    columns = table.places[1][finite]
    count, total = np.bincount(columns, minlength=m), np.bincount(columns, widths[finite], m)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _trials(results: dict[str, NDArray[Any]]) -> Iterator[Trial]:
    """Yield the compared models, best first, with failures last."""
    for i in np.argsort(results["error"], kind="stable").tolist():
        row = {name: column[i] for name, column in results.items()}
        settings = [f"{row['kernel']} kernel"] if row["kernel"] else []
        if row["n_components"]:
            settings.append(plural(int(row["n_components"]), "component"))
        settings += [
            f"{name} {number(float(row[name]))}"
            for name in ("bandwidth", "beta", "noise", "ridge")
            if row[name] and not np.isnan(row[name])
        ]
        yield Trial(
            str(row["family"]),
            ", ".join(settings),
            float(row["error"]),
            float(row["weight"]),
            float(row["seconds"]),
            str(row["failure"]),
        )


def _outside(table: ImputedTable) -> Array:
    """Return how far imputed values lie outside the observed range, f; NaN if not far."""
    none = ~table.observed.any(axis=0)
    low, high = (
        np.where(none, np.nan, end)[table.places[1]]
        for end in (
            np.where(table.observed, table.values, np.inf).min(axis=0),
            np.where(table.observed, table.values, -np.inf).max(axis=0),
        )
    )
    values = table.values[table.places]
    beyond = np.maximum(values - high, low - values)
    far = beyond > MAX_OUTSIDE * (high - low) + 1e-9 * np.abs(high)  # rounding is not outside
    size = table.in_deviations(beyond)
    # A constant column has no deviation: whatever differs from it is infinitely far outside.
    return np.where(far, np.where(np.isnan(size), np.inf, size), np.nan)


def _largest(table: ImputedTable, size: Array | None) -> Listing[Cell]:
    """Return the imputed values where `size`, f, is largest; NaN does not count."""
    if size is None:
        return Listing([], 0)
    there = np.flatnonzero(~np.isnan(size))
    best = there[np.argsort(-size[there], kind="stable")][:MAX_LISTED]
    return Listing(list(_cells(table, best, size[best])), len(there))


def _cells(table: ImputedTable, which: IntArray, sizes: Iterable[float] = ()) -> Iterator[Cell]:
    """Yield imputed values by their number in `table.places`."""
    given = iter(sizes)
    for i, j in zip(*(part[which].tolist() for part in table.places), strict=True):
        lower, upper = (
            np.nan if end is None else float(end[i, j]) for end in (table.lower, table.upper)
        )
        size = float(next(given, np.nan))
        yield Cell(table.label(i), table.names[j], float(table.values[i, j]), lower, upper, size)
