"""Bars: what each method takes, a panel for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hirank.report.words import number
from hirank.study.pictures import style
from hirank.study.pictures.lines import found_in
from hirank.study.summary import Row, Summary, failures, pick


def bars(experiment: Any, rows: Sequence[Row], picture: Mapping[str, Any]) -> Any:
    """A measure for each method, "fit seconds" if none is named, on a logarithmic scale.

    A bar is the median over the missing rates of medians over seeds, the thin line goes from the
    lowest rate's to the highest's (with one rate: from quartile to quartile). `panels` is "data"
    (default) or "pattern"; `paper` maps methods to the paper's numbers, drawn as diamonds.
    """
    found = found_in(rows, {"measure": "fit seconds", **picture}, last=True)
    if not found:
        return None
    looks = style.looks(experiment, rows)
    panels = picture.get("panels", "data")
    wanted = picture.get("methods") or list(looks)
    names = [name for name in wanted if pick(found, method=name)]
    titles = list(dict.fromkeys(getattr(group, panels) for group in found))
    shape = style.grid_of(len(titles))
    drawn = style.figure((0.27 * len(names) + 0.95) * shape[0] + 0.2)
    axes = drawn.subplots(*shape, squeeze=False, sharey=True, sharex=True).ravel()
    for ax in axes[len(titles) :]:
        ax.set_visible(False)
    log = picture.get("log", True)
    paper = picture.get("paper", {})
    medians = [spread.median for spread in found.values()] + [*paper.values()]
    low = min((x for x in medians if x > 0), default=0.1) / 2.5 if log else 0.0
    for ax, title in zip(axes, titles, strict=False):
        for place, name in enumerate(names):
            part = pick(found, **{panels: title, "method": name})
            _bar(ax, place, part, looks[name], low, paper.get(name))
        known = [place for place, name in enumerate(names) if name in paper]
        if known:
            _diamonds(ax, known, [paper[names[place]] for place in known])
        ax.set_title(style.panel_title(str(title)))
        if log:
            ax.set_xscale("log")
        ax.set_xlim(low, max(medians) * (4 if log else 1.25))
        ax.grid(axis="y", visible=False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    for ax in axes[: len(titles)]:
        for label, name in zip(ax.get_yticklabels(), names, strict=False):
            label.set_fontweight("bold" if looks[name].own else "normal")
    for ax in axes[max(0, len(titles) - shape[1]) : len(titles)]:
        ax.set_xlabel(_unit(next(iter(found)).measure))
    if paper:
        style.legend(drawn, {"in the paper": axes[0].collections[-1]})
    absent = [name for name in wanted if name not in names]
    style.tell(drawn, absent, [each for each in failures(rows) if each.method in wanted])
    return drawn


def _bar(
    ax: Any, place: int, found: Summary, look: style.Look, low: float, told: float | None
) -> None:
    """From `low` on, its number at the end, beyond what the paper told."""
    if not found:
        ax.text(low * 1.15, place, "not run", va="center", fontsize=8, color="#777777")
        return
    medians = [spread.median for spread in found.values()]
    if len(medians) > 1:
        ends = min(medians), max(medians)
    else:
        (spread,) = found.values()
        ends = spread.low, spread.high
    value = float(np.median(medians))
    ax.barh(place, value - low, 0.68, left=low, color=look.color)
    if ends[1] > ends[0]:
        ax.plot(ends, [place, place], color="#FFFFFF", linewidth=2.6, solid_capstyle="butt")
        ax.plot(ends, [place, place], color="#333333", linewidth=1.1)
    ax.annotate(
        number(value) if told is None else f"{number(value)} (paper {number(told)})",
        (max(value, ends[1], told or 0), place),
        (5 if told is None else 8, -0.5),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color="#333333",
    )


def _diamonds(ax: Any, places: list[int], values: list[float]) -> None:
    ax.scatter(values, places, marker="D", s=26, facecolor="#FFFFFF", edgecolor="#333333", zorder=5)


def _unit(measure: str) -> str:
    return {"fit seconds": "seconds of CPU time", "peak MB": "peak memory (MB)"}.get(
        measure, measure
    )
