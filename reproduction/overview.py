"""Numbers of trials, and of cells with the lowest error, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hirank._text import duration, number
from reproduction.config import Experiment
from reproduction.lowest import compare_cells, find_claim
from reproduction.median_tables import make_line
from reproduction.summary import Row
from reproduction.trials import describe_trials

Study = tuple[Experiment, Sequence[Row]]
"""An experiment and its table, which is empty if it was not run."""

TITLE = "\n## Results in short\n"
"""The heading of the section of docs/reproduction.md that is written from the tables."""


def write_overview(studies: Sequence[Study], page: Path) -> None:
    """Replace the last section of a page, which begins with `TITLE`."""
    head = page.read_text(encoding="utf-8").partition(TITLE)[0].rstrip("\n")
    text = "".join([*make_lowest(studies), *make_trials(studies)])
    intro = "\nWritten by `python -m reproduction summary` from the tables of the runs.\n"
    page.write_text(f"{head}\n{TITLE}{intro}{text}", encoding="utf-8")


def make_lowest(studies: Sequence[Study]) -> Iterator[str]:
    """Yield the number of cells in which hirank has the lowest error, and the other cells."""
    compared = [
        (experiment, cells)
        for experiment, rows in studies
        if (cells := compare_cells(experiment, rows))
    ]
    if not compared:
        return
    yield (
        "\nCells (table, pattern, missing rate) in which hirank without arguments has the lowest "
        "error of all, also of methods with settings selected with the truth. Medians over the "
        "trials that all methods of a cell have run.\n\n"
    )
    yield make_line(["experiment", "about", "measure", "against", "lowest in"])
    yield make_line(["---"] * 5)
    for experiment, cells in compared:
        claim = find_claim(experiment)
        assert claim is not None
        lowest = f"**{sum(cell.is_lowest for cell in cells)} of {len(cells)}**"
        rivals = ", ".join(claim["than"])
        yield make_line([experiment.name, experiment.shows, claim["measure"], rivals, lowest])
    lost = [(one.name, cell) for one, cells in compared for cell in cells if not cell.is_lowest]
    if lost:
        yield "\nCells in which another method has a lower error:\n\n"
        yield make_line(["experiment", "cell", "hirank", "lowest", "of", "trials"])
        yield make_line(["---", "---", "--:", "--:", "---", "--:"])
    for name, cell in lost:
        errors = [number(cell.ours), number(cell.theirs)]
        yield make_line([name, cell.place, *errors, cell.rival, str(cell.trials)])


def make_trials(studies: Sequence[Study]) -> Iterator[str]:
    """Yield the number of trials of each experiment, and the CPU time of all runs."""
    ran = [(experiment, rows) for experiment, rows in studies if rows]
    if not ran:
        return
    yield "\nTrials in each cell, as far as they were run:\n\n"
    yield make_line(["experiment", "about", "trials", "runs", "CPU time"])
    yield make_line(["---", "---", "---", "--:", "--:"])
    for experiment, rows in ran:
        seconds = {row["cell"]: row["cpu_seconds"] for row in rows}
        times = [str(len(seconds)), duration(sum(seconds.values()))]
        yield make_line(
            [experiment.name, experiment.shows, describe_trials(experiment, rows), *times]
        )
