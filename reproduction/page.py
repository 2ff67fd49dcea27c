"""The page on the reproduction of the paper, written from the tables of all experiments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hirank._text import duration, plural
from reproduction.claims import Verdict, check_expected, judge
from reproduction.config import Entry, Experiment
from reproduction.median_tables import escape, make_line, make_tables
from reproduction.overview import Study, make_lowest
from reproduction.summary import Row, count_failures
from reproduction.trials import describe_trials

FIGURES = "figures"
"""The folder of figures in that of the results."""

HEAD = """\
# The paper, reproduced

Fan and Udell, *Online high rank matrix completion*, CVPR 2019: its figures and tables, run again \
with hirank. This page is written by `python -m reproduction` from the tables of the runs; the \
claims, and explanations of differences, are in the `config.toml` of each experiment.

Numbers are medians over trials; methods are compared on the trials that all of them have run. A \
claim holds if it does in all cases (tables, patterns, rates), and partly if in half of them or \
more. Settings of the paper's methods are the best of a grid, selected with the truth, as in the \
paper: of the whole grid in trials with a search, and of the settings that are best in the first \
trial in others. hirank selects its settings itself, without the truth. Times are seconds of CPU \
time of the fit alone, with one thread.
"""
QUICK = """
**This is a quick run**: few seeds, few rates and few iterations. It shows that everything works; \
its numbers are not those of the reproduction.
"""


def write_page(studies: Sequence[Study], folder: str | Path, path: str | Path) -> None:
    """Write the page, in Markdown.

    Parameters
    ----------
    studies : list of (Experiment, rows)
        Those without rows are named only.
    folder : path
        The results; existing figures in its ``figures`` are linked.
    path : path
        The page. Links are relative to it.
    """
    path, folder = Path(path), Path(folder)
    ran = [(experiment, rows) for experiment, rows in studies if rows]
    verdicts = {experiment.name: judge(experiment, rows) for experiment, rows in ran}
    parts = [HEAD]
    if any(experiment.quick for experiment, _ in ran):
        parts.append(QUICK)
    parts += _claims(ran, verdicts)
    if lowest := list(make_lowest(ran)):
        parts += ["\n## Lowest errors\n", *lowest]
    absent = [f"`{experiment.name}`" for experiment, rows in studies if not rows]
    if absent:
        parts.append(f"\nNot run yet, or without data: {', '.join(absent)}.\n")
    for experiment, rows in ran:
        parts += _section(experiment, rows, verdicts[experiment.name], folder, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts), encoding="utf-8")


def _claims(ran: Sequence[Study], verdicts: dict[str, list[Verdict]]) -> Iterator[str]:
    """Yield tables of all claims: the paper's, then ours."""
    for ours, title in ((False, "Claims of the paper"), (True, "hirank beside it")):
        claims = [
            (experiment, claim, verdict)
            for experiment, _ in ran
            for claim, verdict in zip(experiment.claims, verdicts[experiment.name], strict=True)
            if verdict.ours == ours
        ]
        if not claims:
            continue
        holds = [verdict.holds for *_, verdict in claims]
        counts = [f"{holds.count(word)} {word}" for word in ("yes", "partly", "no", "not run")]
        yield f"\n## {title}\n\n{plural(len(claims), 'claim')}: {', '.join(counts)}.\n\n"
        yield "| claim | about | our numbers | holds | see |\n|---|---|---|---|---|\n"
        for experiment, claim, verdict in claims:
            about = claim.get("paper", experiment.shows)
            link = f"[{experiment.name}](#{experiment.name})"
            holds_here = f"**{verdict.holds}**"
            yield make_line([verdict.statement, about, verdict.numbers, holds_here, link])


def _section(
    experiment: Experiment,
    rows: Sequence[Row],
    verdicts: Sequence[Verdict],
    folder: Path,
    path: Path,
) -> Iterator[str]:
    yield f"\n## {experiment.name}\n\n**{experiment.title}.** {_end(experiment.shows)}\n\n"
    yield _describe_runs(experiment, rows)
    yield from _figures(experiment, folder, path)
    yield from make_tables(experiment, rows)
    yield from _verdicts(verdicts)
    yield from _problems(experiment, rows)


def _describe_runs(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Return methods, grids, trials, machine, date, time and command."""
    names = [
        f"{each.method.name} ({grid})" if (grid := _describe_grid(each)) else each.method.name
        for each in experiment.methods
    ]
    ran = {row["cell"]: row["cpu_seconds"] for row in rows}
    quick = " --quick" if experiment.quick else ""
    machines = sorted({_describe_machine(row) for row in rows})
    days = sorted({str(row["when"])[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    parts = [
        f"Methods: {'; '.join(names)}.",
        f"{describe_trials(experiment, rows)}.",
        f"{plural(len(ran), 'run')}, {duration(sum(ran.values()))} of CPU time.",
        f"{'; '.join(machines)}; {when}.",
        f"Command: `python -m reproduction {experiment.name}{quick}`.",
    ]
    if any(map(_describe_grid, experiment.methods)):
        parts[0] += " In brackets the grids, of which the best is shown."
    return " ".join(parts) + "\n"


def _describe_grid(entry: Entry) -> str:
    """Return the grid of settings, without those that are set, as in a quick run."""
    return ", ".join(
        f"{name} {' / '.join(map(str, values))}"
        for name, values in entry.grid.items()
        if name not in entry.method.settings
    )


def _describe_machine(row: Row) -> str:
    return (
        f"hirank {row['version']}, Python {row['python']}, NumPy {row['numpy']}, SciPy "
        f"{row['scipy']} on {row['processor'] or 'an unknown processor'} "
        f"({plural(row['cores'], 'core')})"
    )


def _figures(experiment: Experiment, folder: Path, path: Path) -> Iterator[str]:
    for place, figure in enumerate(experiment.figures, start=1):
        file = folder / FIGURES / f"{experiment.name}-{place}.png"
        if file.exists():
            link = os.path.relpath(file, path.parent).replace(os.sep, "/")
            caption = figure.get("caption", "")
            yield f"\n![{escape(caption or experiment.title)}]({link})\n"
            if caption:
                yield f"\n*{caption}*\n"


def _verdicts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield what agrees with the paper, what does not, and why."""
    if verdicts:
        yield "\n"
    words = {
        "yes": "Holds",
        "partly": "Holds in part",
        "no": "Does not hold",
        "not run": "Not run",
    }
    for verdict in verdicts:
        why = f" {_end(verdict.explanation)}" if verdict.explanation else ""
        yield f"- {words[verdict.holds]}: {_end(verdict.statement)} {verdict.numbers}{why}\n"


def _problems(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    """Yield methods without numbers, failed runs, and numbers outside of the expected bands."""
    failed = count_failures(rows)
    known = {row["method"] for row in rows if row["selected"] and not row["failure"]}
    names = [each.method.name for each in experiment.methods]
    absent = [name for name in names if name not in known]
    if absent:
        yield f"\nNo numbers of {', '.join(absent)}.\n"
    if failed:
        text = "; ".join(escape(str(each)) for each in failed)
        yield f"\nFailed runs, left out of the medians: {text}.\n"
    missed = check_expected(experiment, rows)
    if missed:
        yield f"\nOutside of the bands that earlier runs were in: {' '.join(missed)}\n"


def _end(text: str) -> str:
    """Join the lines of a text, and end it with a period."""
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?" else f"{text}."
