"""Medians and quartiles over seeds, from the tidy table of an experiment."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Row = Mapping[str, Any]
"""One measurement, with the columns of the tidy table as keys."""


class Group(NamedTuple):
    """What all rows of a median have in common."""

    data: str
    pattern: str
    rate: float
    method: str
    measure: str
    at: float


class Spread(NamedTuple):
    """Median and quartiles over seeds."""

    median: float
    low: float
    high: float
    seeds: int


Summary = dict[Group, Spread]


class FailedRuns(NamedTuple):
    """The number of failed runs of a method."""

    method: str
    failed: int
    runs: int
    reason: str  # the most frequent one

    def __str__(self) -> str:
        return f"{self.method}: {self.failed} of {self.runs} runs ({self.reason})"


def summarize(rows: Iterable[Row]) -> Summary:
    """Return medians and quartiles over seeds, of selected settings only, in the order of rows.

    Where a run has several items (samples, features), their mean is the value of its seed. Failed
    runs and numbers that are not finite are excluded; `count_failures` counts them.

    Examples
    --------
    >>> from reproduction.summary import summarize
    >>> row = dict(data="a", pattern="random", rate=0.3, method="LRF", measure="rank", at=0.0)
    >>> rows = [row | dict(seed=i, value=i, selected=True, failure="", item=0) for i in range(5)]
    >>> list(summarize(rows).values())
    [Spread(median=2.0, low=1.0, high=3.0, seeds=5)]
    """
    values: dict[Group, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["selected"] and not row["failure"] and math.isfinite(row["value"]):
            values[_group(row)][row["seed"]].append(float(row["value"]))
    return {
        group: _spread([float(np.mean(items)) for items in seeds.values()])
        for group, seeds in values.items()
    }


def select(summary: Summary, **wanted: Any) -> Summary:
    """Return the groups whose fields have the wanted value, or one of several; None means any.

    Examples
    --------
    >>> from reproduction.summary import Group, Spread, select
    >>> one = Group("a", "random", 0.1, "LRF", "rank", 0.0)
    >>> summary = {one: Spread(1, 1, 1, 1), one._replace(rate=0.2): Spread(2, 2, 2, 1)}
    >>> [group.rate for group in select(summary, rate=[0.2, 0.3], method="LRF")]
    [0.2]
    """
    sets = {name: _collect(value) for name, value in wanted.items() if value is not None}
    if "rate" in sets:
        sets["rate"] = [_round_rate(rate) for rate in sets["rate"]]
    return {
        group: spread
        for group, spread in summary.items()
        if all(getattr(group, name) in values for name, values in sets.items())
    }


def last_points(summary: Summary) -> Summary:
    """Return the last point of each curve: the groups with the largest `at`."""
    last: dict[Group, Group] = {}
    for group in summary:
        curve = group._replace(at=0.0)
        if curve not in last or last[curve].at < group.at:
            last[curve] = group
    return {group: summary[group] for group in last.values()}


def pair_trials(rows: Iterable[Row], methods: Collection[str]) -> list[Row]:
    """Return the rows of methods in the trials that all of them have run, place by place.

    A place is data x pattern x rate; methods without any run there are ignored. A failed run counts
    as one.

    Examples
    --------
    >>> from reproduction.summary import pair_trials
    >>> row = dict(data="a", pattern="random", rate=0.3, selected=True, failure="")
    >>> runs = [("LRF", 0), ("VMC", 0), ("VMC", 1)]
    >>> rows = [row | dict(method=method, seed=seed) for method, seed in runs]
    >>> [(one["method"], one["seed"]) for one in pair_trials(rows, ["LRF", "VMC"])]
    [('LRF', 0), ('VMC', 0)]
    """
    wanted = [row for row in rows if row["method"] in methods]
    ran: dict[Any, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row in wanted:
        if row["selected"] or row["failure"]:
            ran[get_place(row)][row["method"]].add(row["seed"])
    common = {place: set.intersection(*found.values()) for place, found in ran.items()}
    return [row for row in wanted if row["seed"] in common.get(get_place(row), ())]


def get_place(row: Row) -> tuple[str, str, float]:
    """Return data, pattern and rate of a row."""
    return row["data"], row["pattern"], _round_rate(row["rate"])


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y over log x: 2 if y grows like x^2.

    Examples
    --------
    >>> from reproduction.summary import exponent
    >>> round(exponent([1, 2, 4], [5, 20, 80]), 6)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def late_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent for the larger half of x, at least three points.

    At small x the fixed costs dominate the growth.

    Examples
    --------
    >>> from reproduction.summary import late_exponent
    >>> sizes = [1, 10, 100, 1000, 10000]
    >>> round(late_exponent(sizes, [100 + x**2 for x in sizes]), 2)
    2.0
    """
    first = min(len(x) // 2, max(0, len(x) - 3))
    return exponent(x[first:], y[first:])


def count_failures(rows: Iterable[Row]) -> list[FailedRuns]:
    """Count the failed runs of each method that has any, over all settings.

    A run with a number that is not finite has failed as well.
    """
    runs: dict[str, set[Any]] = defaultdict(set)
    failed: dict[str, dict[Any, str]] = defaultdict(dict)
    for row in rows:
        method, run = row["method"], row["cell"]
        runs[method].add(run)
        if row["failure"]:
            failed[method][run] = str(row["failure"]).strip().splitlines()[-1]
        elif not math.isfinite(row["value"]):
            failed[method].setdefault(run, f"{row['measure']} is not a finite number")
    return [
        FailedRuns(
            method, len(why), len(runs[method]), Counter(sorted(why.values())).most_common(1)[0][0]
        )
        for method, why in failed.items()
    ]


def _group(row: Row) -> Group:
    return Group(*get_place(row), row["method"], row["measure"], float(row["at"]))


def _round_rate(rate: Any) -> float:
    """Round a rate, such that 0.1 + 0.2 equals 0.3."""
    return round(float(rate), 9)


def _spread(values: list[float]) -> Spread:
    low, median, high = (float(x) for x in np.percentile(values, [25, 50, 75]))
    return Spread(median, low, high, len(values))


def _collect(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)
