"""What the report tells: numbers from a table, its fills and the model; no HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.estimators.plot_data import Covered, covered, missing_rates, spread_out, stages_of
from hirank.estimators.summary import THIN
from hirank.report.filled import Filled
from hirank.report.words import number, percent

MOST_BLOCKS = (200, 100)
"""Of the picture of the pattern, rows x columns."""
MOST_CELLS = 2000
"""Of the preview of filled cells."""
MOST_POINTS, MOST_POINTS_EACH = 10_000, 2000
"""Hidden entries to draw, of all features and of one."""
LISTED = 20
"""The worst cells and rows that are listed."""
MOSTLY = 0.5
"""Share of a column that is missing above which that is told."""
BEYOND = 0.1
"""Part of the range of a feature that a fill may be outside of it before it is told of."""


@dataclass(frozen=True)
class Cell:
    """A filled cell; `size` is why it is listed, in standard deviations of its column."""

    row: str
    column: str
    fill: float
    lower: float = np.nan
    upper: float = np.nan
    size: float = np.nan


@dataclass(frozen=True)
class Feature:
    """A column, and how well it is filled. Errors: of its mean = 1, NaN if not known."""

    name: str
    index: int
    missing: int
    share: float  # of missing entries
    filled: int
    n_hidden: int = 0
    error: float = np.nan
    linear_error: float = np.nan
    remark: str = ""
    width: float = np.nan  # mean width of intervals, in standard deviations
    coverage: float = np.nan  # of intervals at hidden entries


@dataclass(frozen=True)
class Candidate:
    """A model that was tried."""

    name: str
    settings: str
    error: float
    weight: float
    seconds: float
    failure: str


@dataclass(frozen=True)
class Doubts:
    """What not to trust: how much there is of it, and the worst."""

    thin: list[tuple[str, int]] = field(default_factory=list)  # row, observed entries
    n_thin: int = 0
    blank: list[str] = field(default_factory=list)
    n_blank: int = 0
    widest: list[Cell] = field(default_factory=list)
    outside: list[Cell] = field(default_factory=list)
    n_outside: int = 0
    n_empty: int = 0  # missing cells that were left so


@dataclass(frozen=True)
class Facts:
    """All that the report tells."""

    rows: int
    columns: int
    n_missing: int
    n_filled: int
    summary: dict[str, Any]
    features: list[Feature]
    blocks: Array  # shares of missing entries
    row_labels: tuple[str, str]  # the first and the last
    candidates: list[Candidate]
    points: dict[int, Array]  # of each column, 2 x h: truth and fill
    overall: Array  # 2 x h: the same of all, in standard deviations from the column mean
    stages: list[NDArray[np.void]]
    level: float  # of the intervals
    covered: Covered | None
    has_intervals: bool
    doubts: Doubts
    cells: list[Cell]
    numbered: bool  # whether rows have numbers, from 0, for labels


def gather(model: Any, table: Filled, level: float) -> Facts:
    """The facts of a fitted KFMC and the table that it filled."""
    summary = model.summary()
    inside = covered(model, level)
    n, m = table.observed.shape
    return Facts(
        rows=n,
        columns=m,
        n_missing=int((~table.observed).sum()),
        n_filled=int(table.fills.sum()),
        summary=summary,
        features=_features(model, table, summary, inside),
        blocks=missing_rates(table.observed, *MOST_BLOCKS),
        row_labels=(table.label(0), table.label(n - 1)),
        candidates=_candidates(model.search_results_),
        points=_points(model.held_out_),
        overall=_overall(model.held_out_, table),
        stages=stages_of(model.trace_),
        level=level,
        covered=inside,
        has_intervals=table.lower is not None,
        doubts=_doubts(table),
        cells=_preview(table),
        numbered=table.rows is None,
    )


def _features(
    model: Any, table: Filled, summary: dict[str, Any], inside: Covered | None
) -> list[Feature]:
    known = getattr(model, "feature_names_in_", None)
    place = {} if known is None else {str(name): j for j, name in enumerate(known)}
    judged = {place.get(row["feature"], row["feature"]): row for row in summary.get("features", [])}
    n = len(table.observed)
    missing = (~table.observed).sum(axis=0)
    filled, widths = table.fills.sum(axis=0), _mean_widths(table)
    found = []
    for j, name in enumerate(table.names):
        row = judged.get(j, {})
        mine = None if inside is None else inside.inside[inside.feature == j]
        found.append(
            Feature(
                name,
                j,
                int(missing[j]),
                missing[j] / n,
                int(filled[j]),
                row.get("n_hidden", 0),
                row.get("error", np.nan),
                row.get("linear_error", np.nan),
                row.get("remark", "") or _remark(table, j, bool(summary["n_hidden"]), row),
                widths[j],
                float(mine.mean()) if mine is not None and len(mine) >= 5 else np.nan,
            )
        )
    return found


def _remark(table: Filled, j: int, judged: bool, row: dict[str, Any]) -> str:
    """What else there is to say of a column that has missing entries."""
    if table.observed[:, j].all():
        return ""
    if not table.observed[:, j].any():
        return "nothing observed: there is nothing to learn its values from"
    if not table.deviation[j]:
        return "constant where observed: filled with that constant"
    if judged and np.isnan(row.get("error", np.nan)):
        return "too few hidden entries to judge its fills"
    share = 1 - table.observed[:, j].mean()
    return f"{percent(share)} missing: many fills from few values" if share > MOSTLY else ""


def _mean_widths(table: Filled) -> Array:
    """Mean width of the intervals of each column, m, in its standard deviations."""
    m, widths = len(table.names), table.widths
    if widths is None:
        return np.full(m, np.nan)
    there = np.isfinite(widths)
    columns = table.places[1][there]
    count = np.bincount(columns, minlength=m)
    total = np.bincount(columns, widths[there], m)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _candidates(results: dict[str, NDArray[Any]]) -> list[Candidate]:
    found = []
    for i in np.argsort(results["error"], kind="stable").tolist():
        row = {name: column[i] for name, column in results.items()}
        shown = [
            f"{label} {number(float(row[name]))}"
            for name, label in SETTINGS.items()
            if row[name] and not np.isnan(row[name])
        ]
        kernel = [f"{row['kernel']} kernel"] if row["kernel"] else []
        name, error, weight = str(row["candidate"]), float(row["error"]), float(row["weight"])
        settings = ", ".join([*kernel, *_count(name, row["n_components"]), *shown])
        failure = str(row["failure"])
        found.append(Candidate(name, settings, error, weight, float(row["seconds"]), failure))
    return found


SETTINGS = {"bandwidth": "bandwidth", "beta": "ridge", "noise": "noise", "ridge": "ridge"}
COUNTED = {"locally linear": "Gaussians", "kernelized": "points", "low rank": "factors"}


def _count(name: str, count: float) -> list[str]:
    if name == "linear":
        return ["one Gaussian"]
    return [f"{int(count)} {COUNTED[name]}"] if name in COUNTED and count else []


def _points(held_out: dict[str, NDArray[Any]]) -> dict[int, Array]:
    """Hidden entries to draw, of each column, 2 x h."""
    if not held_out:
        return {}
    there = np.unique(held_out["feature"]).tolist()
    most = max(2, min(MOST_POINTS_EACH, MOST_POINTS // len(there)))
    points = {}
    for j in there:
        mine = np.flatnonzero(held_out["feature"] == j)
        mine = mine[spread_out(len(mine), most)]
        points[j] = np.array([held_out["truth"][mine], held_out["fill"][mine]])
    return points


def _overall(held_out: dict[str, NDArray[Any]], table: Filled) -> Array:
    """Hidden entries of all columns to draw, 2 x h."""
    if not held_out:
        return np.empty((2, 0))
    shown = spread_out(len(held_out["truth"]), MOST_POINTS_EACH)
    columns = held_out["feature"][shown]
    pair = np.array([held_out[name][shown] for name in ("truth", "fill")])
    varies = table.deviation[columns] > 0
    columns, pair = columns[varies], pair[:, varies]
    return (pair - table.mean[columns]) / table.deviation[columns]


def _doubts(table: Filled) -> Doubts:
    counts, filled = table.observed.sum(axis=1), table.fills.any(axis=1)
    blank = np.flatnonzero((counts == 0) & filled)
    few = filled & (counts > 0) & (counts <= THIN) & (table.observed.shape[1] > THIN)
    thin = np.flatnonzero(few)[np.argsort(counts[few], kind="stable")]
    low, high = (end[table.places[1]] for end in table.range)
    fills = table.values[table.places]
    beyond = np.maximum(fills - high, low - fills)
    # Never where nothing is observed, which is NaN; rounding is not outside.
    far = beyond > BEYOND * (high - low) + 1e-9 * np.abs(high)
    # A constant column has no deviation, but what is off it is off by a lot.
    outside = np.nan_to_num(table.in_deviations(np.where(far, beyond, np.nan)), nan=-np.inf)
    outside[far & np.isneginf(outside)] = np.inf
    return Doubts(
        [(table.label(i), int(counts[i])) for i in thin[:LISTED]],
        len(thin),
        [table.label(i) for i in blank[:LISTED]],
        len(blank),
        [] if table.widths is None else _largest(table, table.widths),
        _largest(table, outside),
        int(far.sum()),
        int((~table.observed & ~table.fills).sum()),
    )


def _largest(table: Filled, size: Array) -> list[Cell]:
    """The filled cells where `size`, f, is largest; NaN and -inf do not count."""
    there = np.flatnonzero(~np.isnan(size) & ~np.isneginf(size))
    if not len(there):
        return []
    count = min(LISTED, len(there))
    least = np.partition(size[there], -count)[-count]
    best = there[size[there] >= least]
    best = best[np.argsort(-size[best], kind="stable")][:count]
    places = zip(*(part[best].tolist() for part in (*table.places, size)), strict=True)
    return [_cell(table, i, j, value) for i, j, value in places]


def _cell(table: Filled, i: int, j: int, size: float = np.nan) -> Cell:
    ends = (np.nan, np.nan)
    if table.lower is not None and table.upper is not None:
        ends = (float(table.lower[i, j]), float(table.upper[i, j]))
    return Cell(table.label(i), table.names[j], float(table.values[i, j]), *ends, size)


def _preview(table: Filled) -> list[Cell]:
    shown = spread_out(len(table.places[0]), MOST_CELLS)
    places = zip(*(part[shown].tolist() for part in table.places), strict=True)
    return [_cell(table, i, j) for i, j in places]
