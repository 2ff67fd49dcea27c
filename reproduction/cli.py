"""``hirank reproduce``: the paper's figures and tables, run again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hirank.cli.errors import INTERRUPTED, USAGE, Failure
from hirank.cli.reporter import Told

if TYPE_CHECKING:
    from reproduction.config import Experiment
    from reproduction.runner import Progress
    from reproduction.tidy_table import Rows

FOLDER = "experiments"
WHERE_RESULTS, WHERE_QUICK = Path("docs/reproduction"), Path("build/reproduction")
"""Where results go, from the folder that holds the experiments."""
TOLD_EVERY = 60.0
"""Seconds between sentences on progress where there is no terminal."""


def run(
    *,
    names: list[str] | None,
    quick: bool,
    output: Path | None,
    experiments: Path | None,
    seeds: int | None,
    jobs: int | None,
    fresh: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run experiments one after the other, and write the page from all tables there are."""
    from reproduction import config
    from reproduction.page import write_page

    told = Told(as_json=as_json, quiet=quiet)
    folder = _folder(experiments)
    known = config.names(folder)
    if not names:
        listed = {name: config.load(folder, name).title for name in known}
        width = max(map(len, listed))
        lines = [f"{name:{width}}  {title}" for name, title in listed.items()]
        told.result({"experiments": listed}, "\n".join([*lines, "", "hirank reproduce NAME | all"]))
        return
    wanted = known if names == ["all"] else names
    studies = [config.load(folder, name, quick=quick) for name in wanted]  # before any is run
    if seeds is not None:
        studies = [replace(one, seeds=min(seeds, one.seeds)) for one in studies]
    base = folder.resolve().parent
    output = output or base / (WHERE_QUICK if quick else WHERE_RESULTS)
    if (data := base.parent / "shared" / "data").is_dir():
        os.environ.setdefault("HIRANK_DATA", str(data))
    facts: dict[str, Any] = {}
    for experiment in studies:
        facts[experiment.name] = _study(experiment, output, told, jobs, fresh)
    page = output.with_suffix(".md")
    everything = [config.load(folder, name, quick=quick) for name in known]
    write_page([(one, _table(one, output)) for one in everything], output, page)
    ran = [name for name, found in facts.items() if found["cells"]]
    text = f"{len(ran)} of {len(wanted)} experiments are in {output}; the page is {page}."
    told.result({"experiments": facts, "page": str(page)}, text)


def _study(
    experiment: Experiment, output: Path, told: Told, jobs: int | None, fresh: bool
) -> dict[str, Any]:
    """Run what is missing of one experiment, then its table and pictures."""
    from reproduction import machine, runner, tidy_table
    from reproduction.cache import Cache
    from reproduction.claims import check_expected
    from reproduction.data import NoData
    from reproduction.pictures import draw
    from reproduction.summary import failures, run_of

    cache = Cache(output / "cells" / f"{experiment.name}.jsonl")
    if fresh:
        cache.clear()
    here = machine.facts()
    other = sum(facts.get("code") != here["code"] for facts in cache.facts.values())
    if other:
        told.note(
            f"{experiment.name}: {other} runs are kept from other code; --fresh runs them again."
        )
    cache.begin(here)
    try:
        with _telling(experiment, told) as tell:
            runner.run(experiment, cache, jobs=jobs or os.cpu_count() or 1, tell=tell)
    except NoData as error:
        told.note(f"{experiment.name} is left out: {error}")
        return {"cells": 0, "left out": str(error)}
    except KeyboardInterrupt:
        raise Failure(
            "Interrupted; the runs that are done are kept, and the same command goes on from them.",
            INTERRUPTED,
        ) from None
    except runner.WorkerDied as error:
        raise Failure(str(error)) from error
    rows = tidy_table.rows(experiment, cache)
    tidy_table.write(_path(experiment, output), rows)
    pictures = draw(experiment, rows, output / "figures")
    missed = check_expected(experiment, rows)
    for sentence in missed:
        told.note(f"{experiment.name}: {sentence}")
    failed = [str(one) for one in failures(rows)]
    for sentence in failed:
        told.note(f"{experiment.name}: failed: {sentence}")
    return {
        "cells": len({run_of(row) for row in rows}),
        "failures": failed,
        "outside": missed,
        "pictures": [str(picture) for picture in pictures],
    }


def _table(experiment: Experiment, output: Path) -> Rows:
    """The table of an experiment as it was last written; empty if there is none."""
    from reproduction import tidy_table

    path = _path(experiment, output)
    return tidy_table.read(path) if path.exists() else []


def _path(experiment: Experiment, output: Path) -> Path:
    return output / "tables" / f"{experiment.name}.parquet"


def _folder(given: Path | None) -> Path:
    """Where the experiments are: as given, here or above, or beside an editable installation."""
    import hirank

    if given is not None:
        if not any(given.glob("*/config.toml")):
            raise Failure(
                f"There is no folder {str(given)!r} with experiments: each is a folder in it with "
                "a config.toml.",
                USAGE,
            )
        return given
    here = Path.cwd()
    above = [folder / FOLDER for folder in (here, *here.parents)]
    beside = Path(hirank.__file__).parents[2] / FOLDER
    for folder in (*above, beside):
        if any(folder.glob("*/config.toml")):
            return folder
    raise Failure(
        "The experiments are not part of the installed package: get hirank's repository and run "
        "this there, or give their folder with --experiments.",
        USAGE,
    )


@contextmanager
def _telling(experiment: Experiment, told: Told) -> Iterator[Callable[[Progress], None]]:
    """A line with how far an experiment is; without a terminal, a sentence every minute."""
    if told.quiet or told.as_json:
        yield lambda progress: None
        return
    if not told.live:
        yield _now_and_then(experiment.name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn(experiment.name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(progress: Progress) -> None:
            text = f"{_left(progress)} ({progress.cell.method.name}, {progress.cell.data})"
            bar.update(task, completed=progress.done, total=progress.total, description=text)

        yield tell


def _now_and_then(name: str) -> Callable[[Progress], None]:
    last = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last > TOLD_EVERY:
            last = time.monotonic()
            sys.stderr.write(
                f"{name}: {progress.done} of {progress.total} runs, {_left(progress)}\n"
            )

    return tell


def _left(progress: Progress) -> str:
    minutes = progress.seconds_left / 60
    return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
