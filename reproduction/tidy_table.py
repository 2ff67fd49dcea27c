"""The tidy table of an experiment: one row for each measurement, in Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reproduction.cache import Cache, Facts
from reproduction.cells import Cell, CellResult, Measurement
from reproduction.config import Experiment
from reproduction.schedule import make_schedule

Row = dict[str, Any]
Rows = list[Row]


def make_rows(experiment: Experiment, cache: Cache) -> Rows:
    """Return the rows of an experiment in its own order, whichever order they were measured in.

    A failed cell has one row, without a measure. Of settings that are not selected in a trial, only
    single numbers and the ends of curves are included.
    """
    return [
        row
        for group in make_schedule(experiment).groups
        for variant, trials in enumerate(group.cells)
        for trial, cell in enumerate(trials)
        if cell.key in cache.results
        for row in _make_rows(
            experiment, cell, cache, group.select(cache.results, trial) == variant
        )
    ]


def read_results(rows: Rows) -> Iterator[tuple[CellResult, Facts]]:
    """Yield the results of cells in a table, and the machines that they come from."""
    for key, group in groupby(rows, key=lambda row: str(row["cell"])):
        found = list(group)
        first = found[0]
        measurements = tuple(
            Measurement(*(row[name] for name in Measurement._fields))
            for row in found
            if row["measure"]
        )
        times = first["seconds"], first["cpu_seconds"]
        result = CellResult(key, measurements, *times, first["failure"], first["code"])
        names = list(first)
        yield result, {name: first[name] for name in names[names.index("code") + 1 :]}


def _make_rows(experiment: Experiment, cell: Cell, cache: Cache, selected: bool) -> Rows:
    result, method = cache.results[cell.key], cell.method
    first = {
        "experiment": experiment.name,
        "cell": cell.key,
        "task": cell.task,
        "data": cell.data,
        "pattern": cell.pattern,
        "rate": cell.rate,
        "seed": cell.seed,
        "method": method.name,
        "source": method.source,
        "settings": json.dumps(method.settings, sort_keys=True),
        "selected": selected,
    }
    last = {
        "seconds": result.seconds,
        "cpu_seconds": result.cpu_seconds,
        "failure": result.failure,
        "code": result.code,
        **cache.facts[cell.key],
    }
    found = result.measurements or (Measurement("", float("nan")),)
    if not selected:
        found = _ends(found)
    return [{**first, **measurement._asdict(), **last} for measurement in found]


def _ends(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the last number of each measure, without measures that have several items."""
    several = {one.measure for one in measurements if one.item}
    last = {one.measure: one for one in sorted(measurements, key=lambda one: one.at)}
    return tuple(
        one for one in measurements if one is last[one.measure] and one.measure not in several
    )


def write_table(path: Path, rows: Rows) -> None:
    """Write the table; an existing one is replaced only when the new one is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".tmp")
    pq.write_table(pa.Table.from_pylist(rows), new, compression="zstd")
    new.replace(path)


def read_table(path: Path) -> Rows:
    """Read a table that `write_table` wrote."""
    return pq.read_table(path).to_pylist()
