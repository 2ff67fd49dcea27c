"""The tidy table of an experiment: one row per number, in Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduction.cache import Cache
from reproduction.cells import Cell, Measurement
from reproduction.config import Experiment
from reproduction.plan import plan_of

Row = dict[str, Any]
Rows = list[Row]


def rows(experiment: Experiment, cache: Cache) -> Rows:
    """All numbers of an experiment, in its own order, whatever order they came in.

    A cell that failed has one row, without a measure. Of settings that were not chosen only single
    numbers and the ends of curves are kept.
    """
    return [
        row
        for group in plan_of(experiment).groups
        for variant, seeds in enumerate(group.cells)
        for cell in seeds
        if cell.key in cache.outcomes
        for row in _rows(experiment, cell, cache, group.chosen(cache.outcomes) == variant)
    ]


def _rows(experiment: Experiment, cell: Cell, cache: Cache, chosen: bool) -> Rows:
    outcome, method = cache.outcomes[cell.key], cell.method
    common = {
        "experiment": experiment.name,
        "task": cell.task,
        "data": cell.data,
        "pattern": cell.pattern,
        "rate": cell.rate,
        "seed": cell.seed,
        "method": method.name,
        "source": method.source,
        "settings": json.dumps(method.settings, sort_keys=True),
        "chosen": chosen,
    }
    ending = {
        "seconds": outcome.seconds,
        "cpu_seconds": outcome.cpu_seconds,
        "failure": outcome.failure,
        **cache.facts[cell.key],
    }
    found = outcome.measurements or (Measurement("", float("nan")),)
    if not chosen:
        found = _ends(found)
    return [{**common, **measurement._asdict(), **ending} for measurement in found]


def _ends(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The last number of each measure, without those that are told of many samples."""
    many = {one.measure for one in measurements if one.item}
    last = {one.measure: one for one in sorted(measurements, key=lambda one: one.at)}
    return tuple(
        one for one in measurements if one is last[one.measure] and one.measure not in many
    )


def write(path: Path, table: Rows) -> None:
    """Write the table; the old one is replaced only when the new one is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(table), new, compression="zstd")
    new.replace(path)


def read(path: Path) -> Rows:
    """A table as `write` left it."""
    import pyarrow.parquet as pq

    return pq.read_table(path).to_pylist()
