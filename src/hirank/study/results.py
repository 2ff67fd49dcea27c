"""The tidy table of an experiment: one row per number, in Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hirank.study.cache import Cache
from hirank.study.config import Experiment
from hirank.study.plan import cell, chosen, groups

Row = dict[str, Any]
Rows = list[Row]


def rows(experiment: Experiment, cache: Cache) -> Rows:
    """All numbers of an experiment, in its own order, whatever order they came in.

    A cell that failed has one row, without a measure.
    """
    found: Rows = []
    for group in groups(experiment):
        best = chosen(experiment, group, cache.outcomes)
        for method in group.variants:
            for seed in range(experiment.seeds):
                one = cell(experiment, group, method, seed)
                outcome = cache.outcomes.get(one.key)
                if outcome is None:
                    continue
                common = {
                    "experiment": experiment.name,
                    "task": one.task,
                    "data": one.data,
                    "pattern": one.pattern,
                    "rate": one.rate,
                    "seed": one.seed,
                    "method": method.name,
                    "source": method.source,
                    "settings": json.dumps(method.settings, sort_keys=True),
                    "chosen": method == best,
                }
                ending = {
                    "seconds": outcome.seconds,
                    "cpu_seconds": outcome.cpu_seconds,
                    "failure": outcome.failure,
                    **cache.facts[one.key],
                }
                found += [
                    {**common, **measurement._asdict(), **ending}
                    for measurement in outcome.measurements
                ]
                if not outcome.measurements:
                    nothing = {"measure": "", "value": float("nan"), "at": 0.0, "item": 0}
                    found.append({**common, **nothing, **ending})
    return found


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
