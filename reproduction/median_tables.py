"""Tables of medians in Markdown: a column for each method, the best of each row in bold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hirank._text import number
from reproduction.claim_kinds import CURVE_KINDS, noun
from reproduction.config import Experiment
from reproduction.figures.lines import ALONG
from reproduction.summary import (
    Row,
    Spread,
    Summary,
    last_points,
    late_exponent,
    select,
    summarize,
)

MEASURES = {
    "lines": "relative error",
    "threshold": "relative error",
    "bars": "fit seconds",
    "curves": "objective",
    "growth": ("fit seconds", "peak MB"),
}
"""Default measures of figures, by kind."""
LOWER_IS_BETTER = ("error", "seconds", "MB", "iterations")
"""Not objective and cost, which cannot be compared between kernels."""
ABSENT = "\N{EN DASH}"
MAX_POINTS = 8  # of a curve
MAX_ROWS = 12  # longer tables are folded

Key = tuple[str, str, float, float]
"""Data, pattern, rate, at."""


def make_tables(experiment: Experiment, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table for each measure in the figures or the claims of an experiment."""
    summary = summarize(rows)
    along = _along(experiment)
    for measure, curve in _measures(experiment).items():
        found = select(summary, measure=measure)
        if found:
            yield from _table(measure, found if curve else last_points(found), along)
    yield from _exponents(experiment, summary)


def _measures(experiment: Experiment) -> dict[str, bool]:
    """Return the measures to show, and whether along curves."""
    found: dict[str, bool] = {}
    for figure in experiment.figures:
        given = figure.get("measure", MEASURES.get(figure["kind"], ()))
        curve = figure.get("x") == "at" or figure["kind"] in ("curves", "growth")
        for measure in (given,) if isinstance(given, str) else given:
            found[measure] = found.get(measure, False) or curve
    for claim in experiment.claims:
        found[claim["measure"]] = found.get(claim["measure"], False) or claim["kind"] in CURVE_KINDS
    return found


def _exponents(experiment: Experiment, summary: Summary) -> Iterator[str]:
    """Yield a table of the exponents of growth, and those of the paper in brackets."""
    for figure in experiment.figures:
        if figure["kind"] != "growth":
            continue
        given = figure.get("measure", MEASURES["growth"])
        measures = [given] if isinstance(given, str) else list(given)
        paper = figure.get("paper_exponents", {})
        lines = []
        for entry in experiment.methods:
            name = entry.method.name
            powers = [_exponent(select(summary, measure=each, method=name)) for each in measures]
            if any(powers):
                stated = [paper.get(each, {}).get(name) for each in measures]
                texts = [
                    f"{power or ABSENT}" + (f" ({text})" if text is not None else "")
                    for power, text in zip(powers, stated, strict=True)
                ]
                lines.append(make_line([name, *texts]))
        if lines:
            head = make_line(["method", *map(noun, measures)])
            rule = make_line(["---", *("--:" for _ in measures)])
            yield "\nExponents, fitted to the larger half of the sizes (in brackets: Table 1):\n\n"
            yield head + rule + "".join(lines)


def _exponent(found: Summary) -> str:
    points = sorted((group.at, spread.median) for group, spread in found.items())
    if len(points) < 2 or points[0][1] <= 0:
        return ""
    return f"{late_exponent(*zip(*points, strict=True)):.2f}"


def _along(experiment: Experiment) -> str:
    labels = [figure["x_label"] for figure in experiment.figures if "x_label" in figure]
    return str(labels[0] if labels else ALONG.get(experiment.task, "step"))


def _table(measure: str, found: Summary, along: str) -> Iterator[str]:
    methods = list(dict.fromkeys(group.method for group in found))
    cells: dict[Key, dict[str, Spread]] = {}
    for group, spread in found.items():
        key = group.data, group.pattern, group.rate, group.at
        cells.setdefault(key, {})[group.method] = spread
    cells = _thin(cells)
    heads = ("data", "pattern", "missing", along)
    # Columns with one value only are omitted.
    shown = [i for i in range(4) if len({key[i] for key in cells}) > 1] or [0]
    lines = [
        make_line([*(heads[i] for i in shown), *methods]),
        make_line(["---"] * len(shown) + ["--:"] * len(methods)),
    ]
    lines += [
        make_line([*(_describe(key, i) for i in shown), *_format(values, methods, measure)])
        for key, values in cells.items()
    ]
    title = f"Median {noun(measure)}"
    if len(cells) > MAX_ROWS:
        yield f"\n<details><summary>{title}</summary>\n\n{''.join(lines)}\n</details>\n"
    else:
        yield f"\n{title}:\n\n{''.join(lines)}"


def _thin(cells: dict[Key, dict[str, Spread]]) -> dict[Key, dict[str, Spread]]:
    """Return some points of long curves, the first and the last among them, in order."""
    points = sorted({key[3] for key in cells})
    if len(points) > MAX_POINTS:
        # Omit points that only few methods have.
        n_methods = max(map(len, cells.values()))
        points = [at for at in points if 2 * _methods_at(cells, at) >= n_methods]
    if len(points) > MAX_POINTS:
        steps = [round(i * (len(points) - 1) / (MAX_POINTS - 1)) for i in range(MAX_POINTS)]
        points = [points[i] for i in steps]
    places = list(dict.fromkeys(key[:3] for key in cells))
    keys = [(*place, at) for place in places for at in points]
    return {key: cells[key] for key in keys if key in cells}


def _methods_at(cells: Mapping[Key, Mapping[str, Spread]], at: float) -> int:
    return max(len(values) for key, values in cells.items() if key[3] == at)


def _describe(key: Key, place: int) -> str:
    value = key[place]
    if place == 2:
        return f"{100 * key[2]:.3g} %"
    return value if isinstance(value, str) else number(value)


def _format(values: Mapping[str, Spread], methods: Sequence[str], measure: str) -> list[str]:
    best = None
    if len(values) > 1 and any(word in measure for word in LOWER_IS_BETTER):
        best = min(spread.median for spread in values.values())
    texts = []
    for name in methods:
        if name not in values:
            texts.append(ABSENT)
            continue
        text = number(values[name].median)
        texts.append(f"**{text}**" if values[name].median == best else text)
    return texts


def make_line(cells: Sequence[str]) -> str:
    """Return a line of a table in Markdown."""
    return f"| {' | '.join(map(escape, cells))} |\n"


def escape(text: str) -> str:
    """Escape text for a cell of a table in Markdown."""
    return " ".join(text.replace("|", "\\|").split())
