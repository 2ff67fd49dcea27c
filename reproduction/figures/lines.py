"""Curves: a measure against the missing rate, iterations, passes or samples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.summary import (
    Row,
    Spread,
    Summary,
    last_points,
    select,
    summarize,
)

ALONG = {
    "passes": "passes",
    "convergence": "iteration",
    "online_cost": "samples seen",
    "growth": "samples",
    "samples": "samples",
    "snapshots": "iteration",
}
"""The meaning of `at`, by task."""

Curve = list[tuple[float, Spread]]


def lines(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw a measure (or several) against `x`, which is "rate" or "at" (`log_x`: logarithmic).

    There is a panel for each of `panels` ("data" by default, or "pattern", "rate", "measure"), and
    for each combination of other fields that differ.
    """
    x = spec.get("x", "rate")
    found = select_shown(rows, spec, last=x == "rate")
    if not found:
        return None
    looks = style.make_looks(experiment, rows)
    panels = _panels(found, spec.get("panels", "data"), x)
    several = len({group.measure for group in found}) > 1
    label = spec.get("x_label") or ALONG.get(experiment.task, "step")
    figure, axes, left = _make_axes(len(panels), 3.1, sharey=not several)
    handles: dict[str, Any] = {}
    for ax, (title, part) in zip(axes, panels.items(), strict=True):
        for name, curve in split_curves(part, x).items():
            scaled = [(100 * place, spread) for place, spread in curve] if x == "rate" else curve
            handles[name] = draw_line(ax, scaled, looks[name])
        ax.set_title(style.wrap_title(title, len(panels)))
        ax.set_xlabel("missing entries (%)" if x == "rate" else str(label))
        if spec.get("log_x"):
            style.make_log(ax, "x", [place for group in part if (place := getattr(group, x)) > 0])
        else:
            ax.xaxis.get_major_locator().set_params(integer=True)  # passes, samples, percent
        if several or ax in left:
            ax.set_ylabel(next(iter(part)).measure)
        _scale(ax, part if several else found, spec)
    _finish(figure, rows, spec, handles, looks)
    return figure


def threshold(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw a measure against the observed share, with rates of the theory as vertical lines.

    `marks` maps a label to a number, or to a measure in the rows, which may differ by data.
    """
    found = select_shown(rows, spec, last=True)
    if not found:
        return None
    looks = style.make_looks(experiment, rows)
    panels = _panels(found, "data", "rate")
    figure, axes, left = _make_axes(len(panels), 3.3, sharey=True)
    handles: dict[str, Any] = {}
    everything = last_points(summarize(rows))
    for ax, (title, part) in zip(axes, panels.items(), strict=True):
        for name, curve in split_curves(part, "rate").items():
            observed = [(100 * (1 - rate), spread) for rate, spread in curve]
            handles[name] = draw_line(ax, observed, looks[name])
        _scale(ax, found, spec)
        theory = select(everything, data=next(iter(part)).data)
        _marks(ax, theory, spec.get("marks", {}), handles)
        ax.set_title(style.wrap_title(title, len(panels)))
        ax.set_xlabel("observed entries (%)")
        if ax in left:
            ax.set_ylabel(next(iter(part)).measure)
    _finish(figure, rows, spec, handles, looks)
    return figure


def _marks(ax: Any, found: Summary, marks: Mapping[str, Any], handles: dict[str, Any]) -> None:
    """Draw vertical lines where recovery starts in theory; beyond 100 %, as text."""
    for place, (label, value) in enumerate(marks.items()):
        if isinstance(value, str):
            values = [spread.median for spread in select(found, measure=value).values()]
            if not values:
                continue
            value = float(np.median(values))
        look = {"color": "#555555", "linestyle": style.DASHES[1 + place % 3], "linewidth": 1.4}
        if value <= 1:
            line = ax.axvline(100 * value, zorder=2, **look)
        else:
            line = ax.plot([], [], **look)[0]
            ax.text(
                0.03,
                0.03 + 0.12 * place,  # few entries, low errors: no curve comes here
                f"{label}:\n{100 * value:.0f} % \N{RIGHTWARDS ARROW}",
                transform=ax.transAxes,
                va="bottom",
                fontsize=8.5,
                color="#444444",
            )
        handles.setdefault(label, line)


def select_shown(rows: Sequence[Row], spec: Mapping[str, Any], *, last: bool) -> Summary:
    """Select what a figure shows; with `last`, the last point of each curve only."""
    found = select(
        summarize(rows),
        measure=spec.get("measure", "relative error"),
        method=spec.get("methods"),
        data=spec.get("data"),
        pattern=spec.get("patterns"),
        rate=spec.get("rates"),
    )
    return last_points(found) if last else found


def _panels(found: Summary, first: str, x: str) -> dict[str, Summary]:
    """Return the panels by title: one for each of `first`, and of other fields that differ."""
    others = ["measure", "data", "pattern", *(["rate"] if x == "at" else [])]
    differ = [name for name in others if len({getattr(group, name) for group in found}) > 1]
    names = [first, *(name for name in differ if name != first)]
    panels: dict[str, Summary] = {}
    for group, spread in found.items():
        title = ", ".join(_title(name, getattr(group, name)) for name in names)
        panels.setdefault(title, {})[group] = spread
    return panels


def _make_axes(count: int, height: float, *, sharey: bool) -> tuple[Any, list[Any], list[Any]]:
    """Return a figure, its axes, and those at the left."""
    shape = style.grid_shape(count)
    figure = style.make_figure(height * shape[0] + 0.5)
    axes = figure.subplots(*shape, squeeze=False, sharey=sharey)
    for ax in axes.ravel()[count:]:
        ax.set_visible(False)
    return figure, list(axes.ravel()[:count]), list(axes[:, 0])


def split_curves(found: Summary, x: str) -> dict[str, Curve]:
    """Return the medians along x, by method."""
    curves: dict[str, dict[float, Spread]] = {}
    for group, spread in found.items():
        curve = curves.setdefault(group.method, {})
        if getattr(group, x) in curve:
            raise ValueError(
                f"{group.method} has several values at the same {x}. Set data, patterns or rates "
                "of the figure."
            )
        curve[getattr(group, x)] = spread
    return {name: sorted(curve.items()) for name, curve in curves.items()}


def draw_line(ax: Any, curve: Curve, look: style.Look) -> Any:
    """Draw medians as a line, quartiles as a band."""
    places = [place for place, _ in curve]
    medians = [spread.median for _, spread in curve]
    arguments = look.line
    if len(curve) > 25:
        arguments["markevery"] = (look.order % 5, max(1, len(curve) // 8))
    line = ax.plot(places, medians, **arguments)[0]
    if any(spread.seeds > 1 for _, spread in curve):
        ax.fill_between(
            places,
            [spread.low for _, spread in curve],
            [spread.high for _, spread in curve],
            color=look.color,
            alpha=0.2 if look.own else 0.1,
            linewidth=0,
            zorder=2,
        )
    return line


def _scale(ax: Any, found: Summary, spec: Mapping[str, Any]) -> None:
    medians = [spread.median for spread in found.values()]
    if spec.get("log", style.spans_decades(medians)):
        style.make_log(ax, "y", [value for value in medians if value > 0])
    elif min(spread.low for spread in found.values()) >= 0:
        highest = max(spread.high for spread in found.values())  # in any panel
        ax.set_ylim(0, 1.04 * highest or 1.0)


def _title(panels: str, name: Any) -> str:
    return f"{100 * name:.3g} % missing" if panels == "rate" else style.panel_title(str(name))


def _finish(
    figure: Any,
    rows: Sequence[Row],
    spec: Mapping[str, Any],
    handles: dict[str, Any],
    looks: Mapping[str, style.Look],
) -> None:
    """Add the legend, in the order of the experiment, and a note on absent methods."""
    order = [name for name in looks if name in handles]
    style.add_legend(figure, {name: handles[name] for name in [*order, *handles]})
    style.add_footnote(figure, rows, spec.get("methods") or list(looks), handles)
