"""Convergence: the objective against iterations, a line for each value of a setting."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hirank._text import number
from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.figures.lines import ALONG, draw_line, select_shown, split_curves
from reproduction.summary import Row, Summary

KERNELS = {"poly": "polynomial kernel", "rbf": "RBF kernel"}


def curves(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw a measure ("objective") along `at`, a panel for each kernel, a line for each momentum.

    `panels` and `lines` name other settings instead. Methods without the setting of lines are
    labeled with their names, those without that of panels are drawn in each panel.
    """
    measure = spec.get("measure", "objective")
    found = select_shown(rows, {**spec, "measure": measure}, last=False)
    settings = {row["method"]: json.loads(row["settings"] or "{}") for row in rows}
    panels, key = spec.get("panels", "kernel"), spec.get("lines", "momentum")
    titles = list(dict.fromkeys(s[panels] for s in settings.values() if panels in s and key in s))
    if not found or not titles:
        return None
    values = sorted({s[key] for s in settings.values() if key in s})
    colors = dict(zip(values, _make_ramp(len(values)), strict=True))
    looks = style.make_looks(experiment, rows)
    figure = style.make_figure(3.8)
    axes = figure.subplots(1, len(titles), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for ax, title in zip(axes, titles, strict=True):
        part = {
            group: spread
            for group, spread in found.items()
            if settings[group.method].get(panels, title) == title
        }
        for name, curve in split_curves(part, "at").items():
            value = settings[name].get(key)
            look = looks[name]
            if value is not None:
                look = style.Look(colors[value], 1.8, "", "-", False, 0)
            label = name if value is None else f"{spec.get('label', key)} {number(value)}"
            handles[label] = draw_line(ax, curve, look)
        ax.set_title(KERNELS.get(title, str(title)))
        ax.set_xlabel(str(spec.get("x_label") or ALONG.get(experiment.task, "iteration")))
        _scale(ax, part, spec)
    axes[0].set_ylabel(measure)
    style.add_legend(figure, handles)
    style.add_footnote(figure, rows, looks, {group.method for group in found})
    return figure


def _scale(ax: Any, found: Summary, spec: Mapping[str, Any]) -> None:
    """Set the scale by the runs that converge: those that diverge leave the panel at the top."""
    first = min(group.at for group in found)
    start = max(spread.median for group, spread in found.items() if group.at == first)
    values = [spread.median for spread in found.values()]
    shown = [value for value in values if value <= 3 * start] or values
    log = spec.get("log", style.spans_decades(shown)) and min(shown) > 0
    if log:
        style.make_log(ax, "y", shown)
    last = {group.method: group.at for group in sorted(found, key=lambda group: group.at)}
    if len(set(last.values())) > 1 or len(shown) < len(values):
        low, high = min(shown), max(shown)
        margin = (high - low) / 20
        ends = (low / 1.2, high * 1.2) if log else (low - margin, high + margin)
        ax.set_ylim(*ends)
        ax.text(
            0.99,
            0.98,
            "lines that end early diverge",
            transform=ax.transAxes,
            ha="right",
            va="top",
            fontsize=8.5,
            color="#555555",
        )


def _make_ramp(count: int) -> list[str]:
    """Return colors from light to dark, which differ without hues."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The yellow end is too light on white.
    return [
        to_hex(colormaps["viridis_r"](0.12 + 0.88 * i / max(1, count - 1))) for i in range(count)
    ]
