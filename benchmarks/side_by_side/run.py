"""Imputers side by side: every set, pattern, rate, seed and solver is a row of one table.

Rows are appended as they come, and cells that are in the table are skipped: a run can be stopped
and started again. `report.py` makes tables and pictures of it.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.util
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))  # before NumPy is there; cell.py lifts it

from cell import Catalog, Cell, catalog, run  # noqa: E402
from data_sets import PATTERNS, RATES, load  # noqa: E402
from objective import MEASURES  # noqa: E402

COLUMNS = [*Cell._fields, "rows", "columns", "version", *MEASURES, "when"]
ONCE = 120
"""Seconds of seed 0 above which the other seeds of a cell are not run."""

Done = dict[Cell, dict[str, str]]


def read(path: Path) -> Done:
    """The table: the last row of each cell counts, others were run again."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        Cell(row["set"], row["pattern"], float(row["rate"]), int(row["seed"]), row["solver"]): row
        for row in rows
    }


def append(path: Path, cell: Cell, found: dict[str, Any]) -> dict[str, str]:
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = {name: _text(value) for name, value in (cell._asdict() | found | {"when": when}).items()}
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        if new:
            writer.writeheader()
        writer.writerow(row)
    return row


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def too_slow(row: dict[str, str] | None) -> bool:
    """Whether a cell took so long that other seeds of it are left out.

    The smaller of wall clock and processor time: neither waiting on a busy machine nor using
    several threads counts.
    """
    if row is None:
        return False
    if row["failure"]:
        return row["failure"].startswith("more than")
    return min(float(row["seconds"]), float(row["cpu_seconds"])) > ONCE


def cells(args: argparse.Namespace, known: Catalog) -> Iterator[Cell]:
    """Seed by seed, small sets first."""
    sizes = {}
    for name in args.sets or known.sets:
        try:
            sizes[name] = load(known.sets[name], 0).size
        except OSError as error:
            print(f"{name}: left out, its file was not found ({error}).")
    names = []
    for name in args.solvers or known.solvers:
        if importlib.util.find_spec(known.solvers[name].module.partition(".")[0]):
            names.append(name)
        else:
            print(f"{name}: left out, {known.solvers[name].package} is not installed.")
    ordered = sorted(sizes, key=sizes.__getitem__)
    for seed, *rest, solver in product(args.seeds, ordered, args.patterns, args.rates, names):
        yield Cell(*rest, seed, solver)


def select(text: str, known: Any) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else []
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: not one of {', '.join(known)}.")
    return names


def arguments() -> tuple[argparse.Namespace, Catalog]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, default=Path("side_by_side.csv"))
    parser.add_argument("--sets", default="", help="names between commas")
    parser.add_argument("--solvers", default="", help="names between commas")
    parser.add_argument("--again", default="", help="solvers to run even where rows exist")
    parser.add_argument("--patterns", default=",".join(PATTERNS))
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="shares missing")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--limit", type=float, default=240, help="seconds a cell may take")
    parser.add_argument("--extra", type=Path, help="a file with more SETS and SOLVERS")
    args = parser.parse_args()
    known = catalog(args.extra)
    args.again = select(args.again, known.solvers)
    args.solvers = select(args.solvers, known.solvers) or args.again
    args.sets = select(args.sets, known.sets)
    args.patterns = select(args.patterns, PATTERNS)
    args.rates = [float(rate) for rate in args.rates.split(",")]
    args.seeds = [int(seed) for seed in args.seeds.split(",")]
    return args, known


def main() -> None:
    args, known = arguments()
    done, count = read(args.csv), 0
    for cell in cells(args, known):
        first = cell._replace(seed=0)
        if cell in done and cell.solver not in args.again:
            continue
        if cell != first and too_slow(done.get(first)):
            continue
        row = append(args.csv, cell, run(cell, args.extra, args.limit))
        done[cell] = row
        count += 1
        where = f"{cell.seed} {cell.set}, {cell.pattern} {cell.rate:.0%}, {cell.solver}"
        score = row["failure"] or f"{float(row['rmse']):.4f} in {float(row['seconds']):.2f} s"
        print(f"{where}: {score}", flush=True)
    print(f"{count} cells run, {len(done)} in {args.csv}.")


if __name__ == "__main__":
    main()
