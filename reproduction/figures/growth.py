"""Growth: time and memory against a size, with slopes for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.figures.bars import UNITS
from reproduction.figures.lines import draw_line, select_shown, split_curves
from reproduction.summary import Row, late_exponent, select

SHORT = {
    "fit seconds": "time",
    "peak MB": "memory",
    "seconds per sample": "time for a sample",
    "seconds per new sample": "a new one",
}
"""Measures in the heading of the legend."""
ABSENT = "\N{EN DASH}"


def growth(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw measures against `at`, a number of samples, on log-log scales, a panel for each.

    The legend shows the exponents, fitted to the larger half of the sizes. `x_label` names another
    size, and ends with its symbol.
    """
    measures = spec.get("measure", ["fit seconds", "peak MB"])
    measures = [measures] if isinstance(measures, str) else list(measures)
    found = select_shown(rows, {**spec, "measure": measures}, last=False)
    shown = [name for name in measures if select(found, measure=name)]
    if not shown:
        return None
    looks = style.make_looks(experiment, rows)
    figure = style.make_figure(4.4)
    wanted = spec.get("methods") or list(looks)
    label = spec.get("x_label", "samples n")
    handles: dict[str, Any] = {}
    powers: dict[str, list[str]] = {name: [] for name in wanted}
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for ax, measure in zip(axes, shown, strict=True):
        curves = {
            name: [(at, spread) for at, spread in curve if spread.median > 0]
            for name, curve in split_curves(select(found, measure=measure), "at").items()
        }
        for name in wanted:
            curve = curves.get(name, [])
            if curve:
                handles[name] = draw_line(ax, curve, looks[name])
            stated = spec.get("paper_exponents", {}).get(measure, {}).get(name)
            powers[name].append(_power(curve) + ("" if stated is None else f" ({stated})"))
        points = [point for curve in curves.values() for point in curve]
        ax.set(xscale="log", xlabel=label, ylabel=UNITS.get(measure, measure))
        style.make_log(ax, "y", [spread.median for _, spread in points])
        _slopes(ax, points, label.split()[-1], max_ticks=6 if len(shown) < 3 else 3)
    labels = {name: powers[name] for name in wanted if name in handles}
    _add_legend(figure, handles, labels, shown, spec)
    style.add_footnote(figure, rows, wanted, handles)
    return figure


def _add_legend(
    figure: Any,
    handles: Mapping[str, Any],
    powers: Mapping[str, Sequence[str]],
    shown: Sequence[str],
    spec: Mapping[str, Any],
) -> None:
    """Add a legend with the exponents of each method, in the order of the panels."""
    heading = f"exponent of {' | '.join(SHORT.get(each, each) for each in shown)}"
    if len(shown) > 2:  # of different methods: each has an exponent or two
        heading = "exponent"
        powers = {
            name: [text for text in found if text != ABSENT] for name, found in powers.items()
        }
    if "paper_exponents" in spec:
        heading += "\n(in brackets: Table 1 of the paper)"
    labels = {f"{name}   {' | '.join(found)}": handles[name] for name, found in powers.items()}
    style.add_legend(figure, labels, title=heading, title_fontsize=9.5, alignment="left")


def _power(curve: Sequence[tuple[float, Any]]) -> str:
    if len(curve) < 2:
        return ABSENT
    power = late_exponent([at for at, _ in curve], [spread.median for _, spread in curve])
    return f"{round(power, 1) + 0.0:.1f}"  # no -0.0


def _slopes(ax: Any, points: Sequence[tuple[float, Any]], symbol: str, max_ticks: int) -> None:
    """Draw dotted lines of n, n^2 and n^3 from the left end, at the mean height there."""
    x = np.asarray([at for at, _ in points])
    y = np.asarray([spread.median for _, spread in points])
    low, high = x.min(), x.max()
    if low == high:
        return
    start = np.exp(np.mean(np.log(y[x == low])))
    bottom, top = y.min() / 2, y.max() * 2
    for power, label in ((1, symbol), (2, f"{symbol}²"), (3, f"{symbol}³")):
        end = min(high, low * (top / start) ** (1 / power))
        height = start * (end / low) ** power
        ax.plot([low, end], [start, height], ":", color="#888888", lw=1.1, zorder=1)
        look = {"textcoords": "offset points", "fontsize": 9, "color": "#666666"}
        ax.annotate(label, (end, height), (3, 2), **look)
    ax.set_ylim(bottom, top * 1.6)
    sizes = np.unique(x)
    shown = sizes[:: -(-len(sizes) // max_ticks)]
    ax.set_xticks(shown, [f"{size:,.0f}" for size in shown])
    ax.minorticks_off()
    ax.set_xlim(low / 1.1, high * 1.25)
