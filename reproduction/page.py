"""The page on the reproduction of the paper, written from the tables of all experiments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hirank._text import duration, plural
from reproduction.claims import Verdict, check_expected, judge
from reproduction.medians import cell, line, tables
from reproduction.summary import Row, failures, run_of

Study = tuple[Any, Sequence[Row]]
"""An experiment and its table; empty if it was not run."""

FIGURES = "figures"
"""Where in the folder of results the pictures are."""

HEAD = """\
# The paper, reproduced

Fan and Udell, *Online high rank matrix completion*, CVPR 2019: its figures and tables, run again \
with hirank. This page is written by `python -m reproduction` from the tables of the runs; the \
claims, and the words on why something differs, stand in the `config.toml` of each experiment.

Numbers are medians over seeds. A claim holds if it does in all cases (tables, patterns, rates), \
and partly if in half of them or more. Settings of the paper's methods are the best of a grid, \
chosen with the truth at hand, as the paper does, on the first seed, and kept for the others; \
hirank's rows choose for themselves and see no truth. Times are seconds of CPU time of the fit \
alone, with one thread.
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
        Those without rows are only named.
    folder : path
        The results: pictures are linked from its ``figures``, those that are there.
    path : path
        The page. Links are relative to it.
    """
    path, folder = Path(path), Path(folder)
    ran = [(experiment, rows) for experiment, rows in studies if rows]
    verdicts = {experiment.name: judge(experiment, rows) for experiment, rows in ran}
    parts = [HEAD]
    if any(getattr(experiment, "quick", False) for experiment, _ in ran):
        parts.append(QUICK)
    parts += _claims(ran, verdicts)
    absent = [f"`{experiment.name}`" for experiment, rows in studies if not rows]
    if absent:
        parts.append(f"\nNot run yet, or its data was not found: {', '.join(absent)}.\n")
    for experiment, rows in ran:
        parts += _section(experiment, rows, verdicts[experiment.name], folder, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(parts), encoding="utf-8")


def _claims(ran: Sequence[Study], verdicts: dict[str, list[Verdict]]) -> Iterator[str]:
    """Tables of all claims: the paper's, then ours."""
    for ours, title in ((False, "Claims of the paper"), (True, "hirank beside it")):
        told = [
            (experiment, claim, verdict)
            for experiment, _ in ran
            for claim, verdict in zip(experiment.claims, verdicts[experiment.name], strict=True)
            if verdict.ours == ours
        ]
        if not told:
            continue
        holds = [verdict.holds for *_, verdict in told]
        counts = [f"{holds.count(word)} {word}" for word in ("yes", "partly", "no", "not run")]
        yield f"\n## {title}\n\n{plural(len(told), 'claim')}: {', '.join(counts)}.\n\n"
        yield "| claim | about | our numbers | holds | see |\n|---|---|---|---|---|\n"
        for experiment, claim, verdict in told:
            about = claim.get("paper", experiment.shows)
            link = f"[{experiment.name}](#{experiment.name})"
            yield line([verdict.says, about, verdict.numbers, f"**{verdict.holds}**", link])


def _section(
    experiment: Any, rows: Sequence[Row], verdicts: Sequence[Verdict], folder: Path, path: Path
) -> Iterator[str]:
    yield f"\n## {experiment.name}\n\n**{experiment.title}.** {_sentence(experiment.shows)}\n\n"
    yield _how(experiment, rows)
    yield from _figures(experiment, folder, path)
    yield from tables(experiment, rows)
    yield from _agreement(verdicts)
    yield from _trouble(experiment, rows)


def _how(experiment: Any, rows: Sequence[Row]) -> str:
    """Methods, grids, seeds, machine, date, time and command."""
    names = [
        f"{each.method.name} ({grid})" if (grid := _grid(each)) else each.method.name
        for each in experiment.methods
    ]
    ran = {run_of(row): row["cpu_seconds"] for row in rows}
    quick = " --quick" if getattr(experiment, "quick", False) else ""
    spent = duration(sum(ran.values()))
    machines = sorted({_machine(row) for row in rows})
    days = sorted({str(row["when"])[:10] for row in rows})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    parts = [
        f"Methods: {'; '.join(names)}.",
        f"{plural(len({row['seed'] for row in rows}), 'seed')}; {plural(len(ran), 'run')}, "
        f"{spent} of CPU time.",
        f"{'; '.join(machines)}; {when}.",
        f"Again: `python -m reproduction {experiment.name}{quick}`.",
    ]
    if any(map(_grid, experiment.methods)):
        parts[0] += " In brackets the grids, of which the best is shown."
    return " ".join(parts) + "\n"


def _grid(entry: Any) -> str:
    """The settings that are tried; one that is given, in a quick run, leaves the grid."""
    return ", ".join(
        f"{name} {' / '.join(map(str, values))}"
        for name, values in entry.grid.items()
        if name not in entry.method.settings
    )


def _machine(row: Row) -> str:
    return (
        f"hirank {row['version']}, Python {row['python']}, NumPy {row['numpy']}, SciPy "
        f"{row['scipy']} on {row['processor'] or 'an unknown processor'} "
        f"({plural(row['cores'], 'core')})"
    )


def _figures(experiment: Any, folder: Path, path: Path) -> Iterator[str]:
    for place, picture in enumerate(experiment.pictures, start=1):
        file = folder / FIGURES / f"{experiment.name}-{place}.png"
        if file.exists():
            link = os.path.relpath(file, path.parent).replace(os.sep, "/")
            caption = picture.get("caption", "")
            yield f"\n![{cell(caption or experiment.title)}]({link})\n"
            if caption:
                yield f"\n*{caption}*\n"


def _agreement(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What agrees with the paper, what does not, and why."""
    if verdicts:
        yield "\n"
    words = {
        "yes": "Holds",
        "partly": "Holds in part",
        "no": "Does not hold",
        "not run": "Not run",
    }
    for verdict in verdicts:
        why = f" {_sentence(verdict.because)}" if verdict.because else ""
        yield f"- {words[verdict.holds]}: {_sentence(verdict.says)} {verdict.numbers}{why}\n"


def _trouble(experiment: Any, rows: Sequence[Row]) -> Iterator[str]:
    """Methods without numbers, failed runs, and numbers outside of what was expected."""
    failed = failures(rows)
    known = {row["method"] for row in rows if row["chosen"] and not row["failure"]}
    names = [each.method.name for each in experiment.methods]
    absent = [name for name in names if name not in known]
    if absent:
        yield f"\nNo numbers of {', '.join(absent)}.\n"
    if failed:
        told = "; ".join(cell(str(each)) for each in failed)
        yield f"\nFailed runs, left out of the medians: {told}.\n"
    missed = check_expected(experiment, rows)
    if missed:
        yield f"\nOutside of the bands that earlier runs were in: {' '.join(missed)}\n"


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?" else f"{text}."
