"""``python -m reproduction``: run the experiments of the paper again."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction import config, machine, runner, tidy_table
from reproduction.cache import Cache
from reproduction.claims import check_expected
from reproduction.config import Experiment
from reproduction.console import Console
from reproduction.data import DataNotFoundError
from reproduction.figures import draw
from reproduction.page import write_page
from reproduction.readers.files import VARIABLE
from reproduction.summary import count_failures, run_key
from reproduction.tidy_table import Rows

EXPERIMENTS = Path(__file__).parent / "experiments"
USAGE, INTERRUPTED = 2, 130
"""Exit codes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    options = make_parser().parse_args(argv)
    console = Console(as_json=options.json, quiet=options.quiet)
    if options.data is not None:
        os.environ[VARIABLE] = str(options.data)  # for this process and those that it starts
    try:
        if options.list or not options.names:
            list_experiments(options.experiments, console)
        else:
            run_experiments(options, console)
    except config.ConfigError as error:
        sys.stderr.write(f"reproduction: {error}\n")
        return USAGE
    except runner.WorkerCrashedError as error:
        sys.stderr.write(f"reproduction: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nreproduction: Interrupted. Finished runs are saved; the same command continues.\n"
        )
        return INTERRUPTED
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description='Run the experiments of "Online high rank matrix completion" (Fan and Udell, '
        "2019) again, with hirank beside the paper's methods. An interrupted run continues where "
        "it stopped.",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help='experiments, or "all"; without: list them')
    add("--list", action="store_true", help="list the experiments")
    add("--quick", action="store_true", help="run a small version that takes seconds")
    add("--data", type=Path, metavar="FOLDER", help=f"data files (default: ${VARIABLE}, or data/)")
    add("-o", "--output", type=Path, metavar="FOLDER", help="where to write tables and figures")
    add("--experiments", type=Path, default=EXPERIMENTS, metavar="FOLDER", help="their folder")
    add("--seeds", type=_count, help="use at most this many seeds; more can be added later")
    add("--jobs", type=_count, default=os.cpu_count() or 1, help="processes (default: all cores)")
    add("--fresh", action="store_true", help="run everything again, not only what is missing")
    add("--json", action="store_true", help="print the result as one JSON object")
    add("--quiet", action="store_true", help="print errors only")
    return parser


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {number}")
    return number


def list_experiments(folder: Path, console: Console) -> None:
    """Print the names and titles of the experiments in a folder."""
    titles = {name: config.load(folder, name).title for name in config.list_names(folder)}
    width = max(map(len, titles), default=0)
    lines = [f"{name:{width}}  {title}" for name, title in titles.items()]
    text = "\n".join([*lines, "", "Run: python -m reproduction NAME ... | all [--quick]"])
    console.result({"experiments": titles}, text)


def run_experiments(options: argparse.Namespace, console: Console) -> None:
    """Run the experiments that are named, and write the page from all tables in the output."""
    folder: Path = options.experiments
    known = config.list_names(folder)
    wanted = known if options.names == ["all"] else options.names
    experiments = [config.load(folder, name, quick=options.quick) for name in wanted]
    output = options.output or folder.parent / ("build" if options.quick else "results")
    facts = {}
    for experiment in experiments:
        if options.seeds is not None:
            experiment = replace(experiment, seeds=min(options.seeds, experiment.seeds))
        facts[experiment.name] = _run(experiment, output, options, console)
    page = output / "README.md"
    everything = [config.load(folder, name, quick=options.quick) for name in known]
    write_page([(one, _read_table(one, output)) for one in everything], output, page)
    n_run = sum(bool(found["cells"]) for found in facts.values())
    text = f"Ran {n_run} of {len(wanted)} experiments. Results: {page}"
    console.result({"experiments": facts, "page": str(page)}, text)


def _run(
    experiment: Experiment, output: Path, options: argparse.Namespace, console: Console
) -> dict[str, Any]:
    """Run what is missing of one experiment, then write its table and figures."""
    name = experiment.name
    cache = Cache(output / "cells" / f"{name}.jsonl")
    if options.fresh:
        cache.clear()
    here = machine.collect_facts()
    other = sum(facts.get("code") != here["code"] for facts in cache.facts.values())
    if other:
        console.note(f"{name}: {other} runs are from other code. Pass --fresh to run them again.")
    cache.begin(here)
    try:
        runner.run(experiment, cache, jobs=options.jobs, callback=console.progress(name))
    except DataNotFoundError as error:
        console.note(f"{name} was skipped: {error}")
        return {"cells": 0, "skipped": str(error)}
    rows = tidy_table.make_rows(experiment, cache)
    tidy_table.write_table(_table_path(experiment, output), rows)
    figures = draw(experiment, rows, output / "figures")
    failed = [str(one) for one in count_failures(rows)]
    missed = check_expected(experiment, rows)
    for sentence in (*missed, *(f"failed: {one}" for one in failed)):
        console.note(f"{name}: {sentence}")
    return {
        "cells": len({run_key(row) for row in rows}),
        "failures": failed,
        "outside": missed,
        "figures": [str(figure) for figure in figures],
    }


def _read_table(experiment: Experiment, output: Path) -> Rows:
    """Return the table of an experiment as it was last written; empty if there is none."""
    path = _table_path(experiment, output)
    return tidy_table.read_table(path) if path.exists() else []


def _table_path(experiment: Experiment, output: Path) -> Path:
    return output / "tables" / f"{experiment.name}.parquet"


if __name__ == "__main__":
    sys.exit(main())
