"""From the tidy table of an experiment to medians and quartiles over seeds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Row = Mapping[str, Any]
"""One measurement, with the columns of the tidy table as keys."""


class Group(NamedTuple):
    """What is the same in all rows that a median is taken over."""

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


class Failed(NamedTuple):
    """Runs of a method of which there is no number."""

    method: str
    failed: int
    runs: int
    reason: str  # the most frequent one

    def __str__(self) -> str:
        return f"{self.method}: {self.failed} of {self.runs} runs ({self.reason})"


def summarize(rows: Iterable[Row]) -> Summary:
    """Medians and quartiles over seeds, of chosen settings only, in the order of the rows.

    Where a run has several items (samples, features), their mean is what counts for its seed.
    Failed runs and numbers that are not finite are left out: `failures` counts them.

    Examples
    --------
    >>> from reproduction.summary import summarize
    >>> row = dict(data="a", pattern="random", rate=0.3, method="LRF", measure="rank", at=0.0)
    >>> rows = [row | dict(seed=i, value=i, chosen=True, failure="", item=0) for i in range(5)]
    >>> list(summarize(rows).values())
    [Spread(median=2.0, low=1.0, high=3.0, seeds=5)]
    """
    values: dict[Group, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["chosen"] and not row["failure"] and math.isfinite(row["value"]):
            values[_group(row)][row["seed"]].append(float(row["value"]))
    return {
        group: _spread([float(np.mean(items)) for items in seeds.values()])
        for group, seeds in values.items()
    }


def pick(summary: Summary, **wanted: Any) -> Summary:
    """The groups whose fields have the wanted value, or one of several; None: any.

    Examples
    --------
    >>> from reproduction.summary import Group, Spread, pick
    >>> one = Group("a", "random", 0.1, "LRF", "rank", 0.0)
    >>> summary = {one: Spread(1, 1, 1, 1), one._replace(rate=0.2): Spread(2, 2, 2, 1)}
    >>> [group.rate for group in pick(summary, rate=[0.2, 0.3], method="LRF")]
    [0.2]
    """
    sets = {name: _several(value) for name, value in wanted.items() if value is not None}
    if "rate" in sets:
        sets["rate"] = [_share(rate) for rate in sets["rate"]]
    return {
        group: spread
        for group, spread in summary.items()
        if all(getattr(group, name) in values for name, values in sets.items())
    }


def at_last(summary: Summary) -> Summary:
    """Of curves only their last point: the groups with the largest `at` of their kind."""
    last: dict[Group, Group] = {}
    for group in summary:
        curve = group._replace(at=0.0)
        if curve not in last or last[curve].at < group.at:
            last[curve] = group
    return {group: summary[group] for group in last.values()}


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of log y over log x: 2 if y grows like x^2.

    Examples
    --------
    >>> from reproduction.summary import exponent
    >>> round(exponent([1, 2, 4], [5, 20, 80]), 6)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def late_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The same of the larger half of x only, three places at least: fixed costs hide growth.

    Examples
    --------
    >>> from reproduction.summary import late_exponent
    >>> sizes = [1, 10, 100, 1000, 10000]
    >>> round(late_exponent(sizes, [100 + x**2 for x in sizes]), 2)
    2.0
    """
    first = min(len(x) // 2, max(0, len(x) - 3))
    return exponent(x[first:], y[first:])


def failures(rows: Iterable[Row]) -> list[Failed]:
    """Methods with failed runs, grids included, with how many there are of how many.

    A run with a number that is not finite has failed too.
    """
    runs: dict[str, set[Any]] = defaultdict(set)
    bad: dict[str, dict[Any, str]] = defaultdict(dict)
    for row in rows:
        method, run = row["method"], run_of(row)
        runs[method].add(run)
        if row["failure"]:
            bad[method][run] = str(row["failure"]).strip().splitlines()[-1]
        elif not math.isfinite(row["value"]):
            bad[method].setdefault(run, f"{row['measure']} is not a finite number")
    return [
        Failed(
            method, len(why), len(runs[method]), Counter(sorted(why.values())).most_common(1)[0][0]
        )
        for method, why in bad.items()
    ]


def run_of(row: Row) -> tuple[Any, ...]:
    """What tells runs of an experiment apart: the same for all rows of one."""
    # Runs of different sizes differ in nothing but their time.
    names = ("data", "pattern", "rate", "seed", "method", "settings", "seconds", "cpu_seconds")
    return tuple(row[name] for name in names)


def methods_of(rows: Iterable[Row]) -> list[str]:
    """The methods in the order of the rows."""
    return list(dict.fromkeys(row["method"] for row in rows))


def _group(row: Row) -> Group:
    at = float(row["at"])
    return Group(
        row["data"], row["pattern"], _share(row["rate"]), row["method"], row["measure"], at
    )


def _share(rate: Any) -> float:
    """0.1 + 0.2 is 0.3 here."""
    return round(float(rate), 9)


def _spread(values: list[float]) -> Spread:
    low, median, high = (float(x) for x in np.percentile(values, [25, 50, 75]))
    return Spread(median, low, high, len(values))


def _several(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple | set | frozenset) else (value,)
