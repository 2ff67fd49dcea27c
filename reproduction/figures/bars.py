"""Bars: a measure for each method, a panel for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hirank._text import number
from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.figures.lines import select_shown
from reproduction.summary import Row, Summary, select

UNITS = {"fit seconds": "seconds of CPU time", "peak MB": "peak memory (MB)"}

MIN_RATIO = 2.0
"""A number of the paper that exceeds the bar by this factor has a label of its own."""


class Bar(NamedTuple):
    """The content of a bar."""

    label: str
    found: Summary
    look: style.Look
    paper: float | None


def bars(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw a measure of each method, by default "fit seconds", on a logarithmic scale.

    A bar is the median over missing rates of medians over seeds; the thin line is their range (with
    one rate: the range of the quartiles). `panels` is "data" (default) or "pattern"; `paper` maps
    methods to the paper's numbers, drawn as diamonds; `log` may be false. If there is one method
    only, its panels become bars.
    """
    found = select_shown(rows, {"measure": "fit seconds", **spec}, last=True)
    if not found:
        return None
    looks = style.make_looks(experiment, rows)
    wanted = spec.get("methods") or list(looks)
    panels = _panels(found, [name for name in wanted if name in looks], looks, spec)
    shape = style.grid_shape(len(panels))
    n_bars = max(map(len, panels.values()))
    figure = style.make_figure((0.27 * n_bars + 0.95) * shape[0] + 0.2)
    axes = figure.subplots(*shape, squeeze=False, sharey=True, sharex=True).ravel()
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    paper = spec.get("paper", {})
    medians = [spread.median for spread in found.values()] + [*paper.values()]
    log = spec.get("log", True)
    low = min((x for x in medians if x > 0), default=0.1) / 2.5 if log else 0.0
    for place, (ax, (title, each)) in enumerate(zip(axes, panels.items(), strict=False)):
        for height, bar in enumerate(each):
            _draw(ax, height, bar, low)
        ax.set_title(title)
        if log:
            style.make_log(ax, "x", [low, max(medians)])
        ax.set_xlim(low, max(medians) * (4 if log else 1.25))
        _label_bars(ax, each)
        if place >= len(panels) - shape[1]:  # nothing below
            ax.set_xlabel(UNITS.get(next(iter(found)).measure, next(iter(found)).measure))
            ax.tick_params(axis="x", labelbottom=True)
    axes[0].invert_yaxis()
    if paper:
        style.add_legend(figure, {"in the paper": axes[0].collections[-1]})
    style.add_footnote(figure, rows, wanted, {group.method for group in found})
    return figure


def _panels(
    found: Summary,
    names: Sequence[str],
    looks: Mapping[str, style.Look],
    spec: Mapping[str, Any],
) -> dict[str, list[Bar]]:
    """Return the bars of each panel, by title."""
    field, paper = spec.get("panels", "data"), spec.get("paper", {})
    names = [name for name in names if select(found, method=name)]
    values = list(dict.fromkeys(getattr(group, field) for group in found))
    panels = {
        value: [
            Bar(name, select(found, **{field: value, "method": name}), looks[name], paper.get(name))
            for name in names
        ]
        for value in values
    }
    if len(names) == 1:
        return {names[0]: [bar._replace(label=str(value)) for value, (bar,) in panels.items()]}
    return {style.panel_title(str(value)): each for value, each in panels.items()}


def _draw(ax: Any, place: int, bar: Bar, low: float) -> None:
    """Draw a bar from `low` on, with its number at the end."""
    paper = bar.paper
    if paper is not None:
        look = {"facecolor": "#FFFFFF", "edgecolor": "#333333"}
        ax.scatter([paper], [place], marker="D", s=26, zorder=5, **look)
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
    if paper is None:
        _label(ax, place, end, number(value))
    elif paper > MIN_RATIO * end:
        _label(ax, place, end, number(value))
        _label(ax, place, paper, number(paper), gap=8)
    else:
        _label(ax, place, max(end, paper), f"{number(value)} (paper {number(paper)})", gap=8)


def _label_bars(ax: Any, bars: Sequence[Bar]) -> None:
    """Write the labels at the left of the bars, hirank's in bold."""
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_yticks(range(len(bars)), [bar.label for bar in bars])
    for text, bar in zip(ax.get_yticklabels(), bars, strict=False):  # the left panels only
        text.set_fontweight("bold" if bar.look.own else "normal")


def _label(ax: Any, place: int, x: float, text: str, gap: float = 5) -> None:
    look = {"textcoords": "offset points", "va": "center", "fontsize": 8.5, "color": "#333333"}
    ax.annotate(text, (x, place), (gap, -0.5), **look)
