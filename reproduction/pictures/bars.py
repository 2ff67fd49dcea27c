"""Bars: what each method takes, a panel for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hirank._text import number
from reproduction.pictures import style
from reproduction.pictures.lines import found_in
from reproduction.summary import Row, Summary, failures, pick

UNITS = {"fit seconds": "seconds of CPU time", "peak MB": "peak memory (MB)"}

APART = 2.0
"""Times the end of a bar: from where a number of the paper leaves room for ours."""


class Bar(NamedTuple):
    """What a bar shows."""

    label: str
    found: Summary
    look: style.Look
    paper: float | None


def bars(experiment: Any, rows: Sequence[Row], picture: Mapping[str, Any]) -> Any:
    """A measure for each method, "fit seconds" if none is named, on a logarithmic scale.

    A bar is the median over the missing rates of medians over seeds, the thin line goes from the
    lowest to the highest of them (with one rate: from quartile to quartile). `panels` is "data"
    (default) or "pattern"; `paper` maps methods to the paper's numbers, drawn as diamonds; `log`
    may be false. If there is one method only, its panels become bars.
    """
    found = found_in(rows, {"measure": "fit seconds", **picture}, last=True)
    if not found:
        return None
    looks = style.looks(experiment, rows)
    wanted = picture.get("methods") or list(looks)
    panels = _panels(found, [name for name in wanted if name in looks], looks, picture)
    shape = style.grid_of(len(panels))
    many = max(map(len, panels.values()))
    drawn = style.figure((0.27 * many + 0.95) * shape[0] + 0.2)
    axes = drawn.subplots(*shape, squeeze=False, sharey=True, sharex=True).ravel()
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    paper = picture.get("paper", {})
    medians = [spread.median for spread in found.values()] + [*paper.values()]
    log = picture.get("log", True)
    low = min((x for x in medians if x > 0), default=0.1) / 2.5 if log else 0.0
    for place, (ax, (title, each)) in enumerate(zip(axes, panels.items(), strict=False)):
        for height, bar in enumerate(each):
            _draw(ax, height, bar, low)
        ax.set_title(title)
        if log:
            style.make_log(ax, "x", [low, max(medians)])
        ax.set_xlim(low, max(medians) * (4 if log else 1.25))
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.set_yticks(range(len(each)), [bar.label for bar in each])
        for text, bar in zip(ax.get_yticklabels(), each, strict=False):  # none but at the left
            text.set_fontweight("bold" if bar.look.own else "normal")
        if place >= len(panels) - shape[1]:  # nothing below
            ax.set_xlabel(UNITS.get(next(iter(found)).measure, next(iter(found)).measure))
            ax.tick_params(axis="x", labelbottom=True)
    axes[0].invert_yaxis()
    if paper:
        style.legend(drawn, {"in the paper": axes[0].collections[-1]})
    absent = [name for name in wanted if not pick(found, method=name)]
    style.tell(drawn, absent, [each for each in failures(rows) if each.method in wanted])
    return drawn


def _panels(
    found: Summary,
    names: Sequence[str],
    looks: Mapping[str, style.Look],
    picture: Mapping[str, Any],
) -> dict[str, list[Bar]]:
    """The bars of each panel, by title."""
    field, paper = picture.get("panels", "data"), picture.get("paper", {})
    names = [name for name in names if pick(found, method=name)]
    values = list(dict.fromkeys(getattr(group, field) for group in found))
    bars_of = {
        value: [
            Bar(name, pick(found, **{field: value, "method": name}), looks[name], paper.get(name))
            for name in names
        ]
        for value in values
    }
    if len(names) == 1:
        return {names[0]: [bar._replace(label=str(value)) for value, (bar,) in bars_of.items()]}
    return {style.panel_title(str(value)): each for value, each in bars_of.items()}


def _draw(ax: Any, place: int, bar: Bar, low: float) -> None:
    """From `low` on, its number at the end."""
    told = bar.paper
    if told is not None:
        look = {"facecolor": "#FFFFFF", "edgecolor": "#333333"}
        ax.scatter([told], [place], marker="D", s=26, zorder=5, **look)
    if not bar.found:
        ax.text(low * 1.15, place, "not run", va="center", fontsize=8, color="#777777")
        return
    medians = [spread.median for spread in bar.found.values()]
    ends = min(medians), max(medians)
    if len(medians) == 1:
        (spread,) = bar.found.values()
        ends = spread.low, spread.high
    value = float(np.median(medians))
    ax.barh(place, value - low, 0.68, left=low, color=bar.look.color)
    if ends[1] > ends[0]:
        ax.plot(ends, [place, place], color="#FFFFFF", linewidth=2.6, solid_capstyle="butt")
        ax.plot(ends, [place, place], color="#333333", linewidth=1.1)
    end = max(value, ends[1])
    if told is None:
        _label(ax, place, end, number(value))
    elif told > APART * end:
        _label(ax, place, end, number(value))
        _label(ax, place, told, number(told), gap=8)
    else:
        _label(ax, place, max(end, told), f"{number(value)} (paper {number(told)})", gap=8)


def _label(ax: Any, place: int, x: float, text: str, gap: float = 5) -> None:
    ax.annotate(
        text,
        (x, place),
        (gap, -0.5),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color="#333333",
    )
