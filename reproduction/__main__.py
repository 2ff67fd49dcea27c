"""``python -m reproduction``: run the experiments of the paper again."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hirank._text import plural
from reproduction import config, machine, runner, tidy_table
from reproduction.cache import Cache
from reproduction.claims import check_expected
from reproduction.config import Experiment
from reproduction.console import Console
from reproduction.data import DataNotFoundError
from reproduction.figures import draw
from reproduction.fingerprint import fingerprint
from reproduction.overview import make_lowest, make_trials, write_overview
from reproduction.page import write_page
from reproduction.readers.files import VARIABLE
from reproduction.schedule import make_schedule
from reproduction.summary import count_failures
from reproduction.tidy_table import Rows

EXPERIMENTS, RESULTS = (Path(__file__).parent / name for name in ("experiments", "results"))
OVERVIEW = Path(__file__).parents[1] / "docs" / "reproduction.md"
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
    help_names = 'experiments, or "all", or "summary" to write the pages only; without: list them'
    add("names", nargs="*", metavar="NAME", help=help_names)
    add("--list", action="store_true", help="list the experiments")
    add("--quick", action="store_true", help="run a small version that takes seconds")
    add("--data", type=Path, metavar="FOLDER", help=f"data files (default: ${VARIABLE}, or data/)")
    add("-o", "--output", type=Path, metavar="FOLDER", help="where to write tables and figures")
    add("--experiments", type=Path, default=EXPERIMENTS, metavar="FOLDER", help="their folder")
    add("--method", action="append", metavar="NAME", help="run this method only; can be repeated")
    add("--seeds", type=_count, help="run at most this many trials; more can be added later")
    help_cpu = "stop before an experiment takes more CPU time; the same command continues"
    help_search = "where to search grids of settings, in place of what the experiment states"
    add("--search", choices=config.SEARCHES, metavar="WHERE", help=help_search)
    add("--max-cpu", type=_hours, default=math.inf, metavar="HOURS", help=help_cpu)
    add("--min-trials", type=_count, default=0, help="run so many trials whatever time they take")
    add("--jobs", type=_count, default=os.cpu_count() or 1, help="processes (default: all cores)")
    help_rerun = "run again what was measured with other code, or everything"
    add("--rerun", choices=("stale", "all"), help=help_rerun)
    add("--json", action="store_true", help="print the result as one JSON object")
    add("--quiet", action="store_true", help="print errors only")
    return parser


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1; got {number}")
    return number


def _hours(text: str) -> float:
    if not (number := float(text)) > 0:
        raise argparse.ArgumentTypeError(f"must be positive; got {number}")
    return number


def list_experiments(folder: Path, console: Console) -> None:
    """Print the names and titles of the experiments in a folder."""
    titles = {name: config.load(folder, name).title for name in config.list_names(folder)}
    width = max(map(len, titles), default=0)
    lines = [f"{name:{width}}  {title}" for name, title in titles.items()]
    text = "\n".join([*lines, "", "Run: python -m reproduction NAME ... | all [--quick]"])
    console.result({"experiments": titles}, text)


def run_experiments(options: argparse.Namespace, console: Console) -> None:
    """Run the experiments that are named, and write the pages from all tables in the output."""
    folder: Path = options.experiments
    known = config.list_names(folder)
    wanted = {"all": known, "summary": []}.get(" ".join(options.names), options.names)
    experiments = [config.load(folder, name, quick=options.quick) for name in wanted]
    output = options.output or folder.parent / ("build" if options.quick else "results")
    for experiment in experiments:
        _check_methods(experiment, options.method)
    facts = {one.name: _run(one, output, options, console) for one in experiments}
    page = output / "README.md"
    everything = [config.load(folder, name, quick=options.quick) for name in known]
    studies = [(one, _read_table(one.name, output)) for one in everything]
    write_page(studies, output, page)
    if output == RESULTS:
        write_overview(studies, OVERVIEW)
    n_run = sum(bool(found["cells"]) for found in facts.values())
    text = f"Ran {n_run} of {len(wanted)} experiments. Results: {page}"
    if not wanted:
        text = "".join([*make_lowest(studies), *make_trials(studies)]).strip() or "No tables."
    console.result({"experiments": facts, "page": str(page)}, text)


def _check_methods(experiment: Experiment, names: Sequence[str] | None) -> None:
    known = [entry.method.name for entry in experiment.methods]
    for name in names or ():
        if name not in known:
            raise config.ConfigError(
                f"{experiment.name} has no method {name!r}; expected one of {', '.join(known)}."
            )


def _run(
    experiment: Experiment, output: Path, options: argparse.Namespace, console: Console
) -> dict[str, Any]:
    """Run what is missing of one experiment, then write its table and figures."""
    name = experiment.name
    tables = [_read_table(each, output) for each in (*experiment.reuse, name)]
    saved = (result for rows in tables for result in tidy_table.read_results(rows))
    cache = Cache(output / "cells" / f"{name}.jsonl", saved)
    part = _limit(experiment, options)
    _mark_outdated(part, cache, options, console)
    cache.begin(machine.collect_facts())
    budget = runner.Budget(3600 * options.max_cpu, options.min_trials)
    try:
        left = runner.run(
            part, cache, jobs=options.jobs, budget=budget, callback=console.progress(name)
        )
    except DataNotFoundError as error:
        console.note(f"{name} was skipped: {error}")
        return {"cells": 0, "skipped": str(error)}
    rows = tidy_table.make_rows(experiment, cache)
    tidy_table.write_table(_table_path(name, output), rows)
    cache.remove_journal()
    figures = draw(experiment, rows, output / "figures")
    failed = [str(one) for one in count_failures(rows)]
    missed = check_expected(experiment, rows)
    stopped = [f"stopped at --max-cpu, {plural(left, 'run')} left"] if left else []
    for sentence in (*stopped, *missed, *(f"failed: {one}" for one in failed)):
        console.note(f"{name}: {sentence}")
    return {
        "cells": len({row["cell"] for row in rows}),
        "left": left,
        "failures": failed,
        "outside": missed,
        "figures": [str(figure) for figure in figures],
    }


def _limit(experiment: Experiment, options: argparse.Namespace) -> Experiment:
    """Return the part of an experiment that is asked for: trials, methods, settings."""
    entries = experiment.methods
    if options.method:
        entries = tuple(each for each in entries if each.method.name in options.method)
    seeds = min(options.seeds or experiment.seeds, experiment.seeds)
    search = options.search or experiment.search
    return replace(experiment, methods=entries, seeds=seeds, search=search)


def _mark_outdated(
    experiment: Experiment, cache: Cache, options: argparse.Namespace, console: Console
) -> None:
    """Mark results to measure again, or note that there are results of other code."""
    known = [cell for cell in make_schedule(experiment).cells if cell.key in cache.results]
    stale = [cell for cell in known if cache.results[cell.key].code != fingerprint(cell)]
    if options.rerun:
        cache.outdated |= {cell.key for cell in (known if options.rerun == "all" else stale)}
    elif stale:
        console.note(
            f"{experiment.name}: {plural(len(stale), 'run')} of {len(known)} were measured with "
            "other code. Pass --rerun stale to run them again."
        )


def _read_table(name: str, output: Path) -> Rows:
    """Return the table of an experiment as it was last written; empty if there is none."""
    path = _table_path(name, output)
    return tidy_table.read_table(path) if path.exists() else []


def _table_path(name: str, output: Path) -> Path:
    return output / "tables" / f"{name}.parquet"


if __name__ == "__main__":
    sys.exit(main())
