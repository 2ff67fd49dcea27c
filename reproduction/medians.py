"""Tables of medians, in Markdown: a column for each method, the best of each row in bold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hirank._text import number
from reproduction.judges import WHOLE, noun
from reproduction.pictures.lines import ALONG
from reproduction.summary import Group, Row, Spread, Summary, at_last, pick, summarize

MEASURES = {
    "lines": "relative error",
    "threshold": "relative error",
    "bars": "fit seconds",
    "curves": "objective",
    "growth": ("fit seconds", "peak MB"),
}
"""What pictures show if they don't say."""
LESS_IS_BETTER = ("error", "seconds", "MB", "iterations")
"""Not objective and cost, which are not the same thing for different kernels."""
MOST_POINTS = 8
"""Of curves so many points are told at most."""
LONG = 12
"""Tables with more rows are folded."""

Key = tuple[str, str, float, float]
"""Data, pattern, rate, at."""


def tables(experiment: Any, rows: Sequence[Row]) -> Iterator[str]:
    """A table for each measure that the pictures of an experiment, or its claims, are about."""
    summary = summarize(rows)
    along = _along(experiment)
    for measure, curve in _measures(experiment).items():
        found = pick(summary, measure=measure)
        if found:
            yield from _table(measure, found if curve else at_last(found), along)


def _measures(experiment: Any) -> dict[str, bool]:
    """Measures that are shown, and whether along curves."""
    found: dict[str, bool] = {}
    for picture in experiment.pictures:
        given = picture.get("measure", MEASURES.get(picture["kind"], ()))
        curve = picture.get("x") == "at" or picture["kind"] in ("curves", "growth")
        for measure in (given,) if isinstance(given, str) else given:
            found[measure] = found.get(measure, False) or curve
    for claim in experiment.claims:
        found[claim["measure"]] = found.get(claim["measure"], False) or claim["kind"] in WHOLE
    return found


def _along(experiment: Any) -> str:
    labels = [picture["x_label"] for picture in experiment.pictures if "x_label" in picture]
    return str(labels[0] if labels else ALONG.get(experiment.task, "step"))


def _table(measure: str, found: Summary, along: str) -> Iterator[str]:
    methods = list(dict.fromkeys(group.method for group in found))
    cells: dict[Key, dict[str, Spread]] = {}
    for group, spread in found.items():
        cells.setdefault(_key(group), {})[group.method] = spread
    cells = _thinned(cells)
    heads = ("data", "pattern", "missing", along)
    # A column in which all is the same says nothing.
    shown = [i for i in range(4) if len({key[i] for key in cells}) > 1] or [0]
    lines = [
        line([*(heads[i] for i in shown), *methods]),
        line(["---"] * len(shown) + ["--:"] * len(methods)),
    ]
    lines += [
        line([*(_words(key, i) for i in shown), *_numbers(values, methods, measure)])
        for key, values in cells.items()
    ]
    title = f"Median {noun(measure)}"
    if len(cells) > LONG:
        yield f"\n<details><summary>{title}</summary>\n\n{''.join(lines)}\n</details>\n"
    else:
        yield f"\n{title}:\n\n{''.join(lines)}"


def _key(group: Group) -> Key:
    return group.data, group.pattern, group.rate, group.at


def _thinned(cells: dict[Key, dict[str, Spread]]) -> dict[Key, dict[str, Spread]]:
    """Of long curves only some points, first and last among them; in order."""
    points = sorted({key[3] for key in cells})
    if len(points) > MOST_POINTS:
        # Not where single methods have a point of their own.
        most = max(map(len, cells.values()))
        points = [at for at in points if 2 * _methods_at(cells, at) >= most]
    if len(points) > MOST_POINTS:
        steps = [round(i * (len(points) - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)]
        points = [points[i] for i in steps]
    places = list(dict.fromkeys(key[:3] for key in cells))
    keys = [(*place, at) for place in places for at in points]
    return {key: cells[key] for key in keys if key in cells}


def _methods_at(cells: Mapping[Key, Mapping[str, Spread]], at: float) -> int:
    return max(len(values) for key, values in cells.items() if key[3] == at)


def _words(key: Key, place: int) -> str:
    value = key[place]
    if place == 2:
        return f"{100 * key[2]:.3g} %"
    return value if isinstance(value, str) else number(value)


def _numbers(values: Mapping[str, Spread], methods: Sequence[str], measure: str) -> list[str]:
    best = None
    if len(values) > 1 and any(word in measure for word in LESS_IS_BETTER):
        best = min(spread.median for spread in values.values())
    told = []
    for name in methods:
        if name not in values:
            told.append("\N{EN DASH}")
            continue
        text = number(values[name].median)
        told.append(f"**{text}**" if values[name].median == best else text)
    return told


def line(cells: Sequence[str]) -> str:
    """A line of a table in Markdown."""
    return f"| {' | '.join(map(cell, cells))} |\n"


def cell(text: str) -> str:
    """Text as it may stand in a table in Markdown."""
    return " ".join(text.replace("|", "\\|").split())
