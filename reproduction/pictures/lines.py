"""Curves: a measure against the missing share, against iterations, passes or samples seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reproduction.pictures import style
from reproduction.summary import Row, Spread, Summary, at_last, failures, pick, summarize

ALONG = {
    "passes": "passes",
    "convergence": "iteration",
    "online_cost": "samples seen",
    "growth": "samples",
    "snapshots": "iteration",
}
"""What `at` is, by task."""

Curve = list[tuple[float, Spread]]


def lines(experiment: Any, rows: Sequence[Row], picture: Mapping[str, Any]) -> Any:
    """A measure (or several) against `x`, which is "rate" or "at".

    There is a panel for each of `panels` ("data" by default, or "pattern", "rate", "measure"), and
    for whatever else differs.
    """
    x = picture.get("x", "rate")
    found = found_in(rows, picture, last=x == "rate")
    if not found:
        return None
    looks = style.looks(experiment, rows)
    panels = _panels(found, picture.get("panels", "data"), x)
    measures = list(dict.fromkeys(group.measure for group in found))
    drawn, axes, left = _axes(len(panels), 3.1, sharey=len(measures) == 1)
    handles: dict[str, Any] = {}
    for ax, (title, part) in zip(axes, panels.items(), strict=True):
        for name, curve in curves_of(part, x).items():
            scaled = [(100 * place, spread) for place, spread in curve] if x == "rate" else curve
            handles[name] = draw_line(ax, scaled, looks[name])
        ax.set_title(style.wrapped(title, len(panels)))
        ax.set_xlabel(_along(experiment, picture, x))
        ax.xaxis.get_major_locator().set_params(integer=True)  # passes, samples, percent
        if len(measures) > 1 or ax in left:
            ax.set_ylabel(next(iter(part)).measure)
        _scale(ax, part if len(measures) > 1 else found, picture)
    _finish(drawn, rows, picture, handles, looks)
    return drawn


def threshold(experiment: Any, rows: Sequence[Row], picture: Mapping[str, Any]) -> Any:
    """A measure against the observed share, with rates from theory as vertical lines.

    `marks` maps a label to a number, or to the measure in the rows that holds it (which may then
    differ by data).
    """
    found = found_in(rows, picture, last=True)
    if not found:
        return None
    looks = style.looks(experiment, rows)
    panels = _panels(found, "data", "rate")
    drawn, axes, left = _axes(len(panels), 3.3, sharey=True)
    handles: dict[str, Any] = {}
    everything = at_last(summarize(rows))
    for ax, (title, part) in zip(axes, panels.items(), strict=True):
        for name, curve in curves_of(part, "rate").items():
            observed = [(100 * (1 - rate), spread) for rate, spread in curve]
            handles[name] = draw_line(ax, observed, looks[name])
        _scale(ax, found, picture)
        theory = pick(everything, data=next(iter(part)).data)
        _marks(ax, theory, picture.get("marks", {}), handles)
        ax.set_title(style.wrapped(title, len(panels)))
        ax.set_xlabel("observed entries (%)")
        if ax in left:
            ax.set_ylabel(next(iter(part)).measure)
    _finish(drawn, rows, picture, handles, looks)
    return drawn


def _marks(ax: Any, found: Summary, marks: Mapping[str, Any], handles: dict[str, Any]) -> None:
    """Vertical lines where theory says that recovery starts; beyond 100 % words say so."""
    for place, (label, value) in enumerate(marks.items()):
        if isinstance(value, str):
            values = [spread.median for spread in pick(found, measure=value).values()]
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


def found_in(rows: Sequence[Row], picture: Mapping[str, Any], *, last: bool) -> Summary:
    """What a picture is about; of curves the last point only, if `last`."""
    wanted = {
        name: picture.get(plural)
        for name, plural in (
            ("measure", "measure"),
            ("method", "methods"),
            ("data", "data"),
            ("pattern", "patterns"),
            ("rate", "rates"),
        )
    }
    wanted["measure"] = wanted["measure"] or "relative error"
    found = pick(summarize(rows), **wanted)
    return at_last(found) if last else found


def _panels(found: Summary, first: str, x: str) -> dict[str, Summary]:
    """A panel for each of `first`, and for whatever else differs; by title."""
    others = ["measure", "data", "pattern", *(["rate"] if x == "at" else [])]
    differ = [name for name in others if len({getattr(group, name) for group in found}) > 1]
    names = [first, *(name for name in differ if name != first)]
    panels: dict[str, Summary] = {}
    for group, spread in found.items():
        title = ", ".join(_title(name, getattr(group, name)) for name in names)
        panels.setdefault(title, {})[group] = spread
    return panels


def _axes(many: int, height: float, *, sharey: bool) -> tuple[Any, list[Any], list[Any]]:
    """A figure, its panels, and those at the left."""
    shape = style.grid_of(many)
    drawn = style.figure(height * shape[0] + 0.5)
    axes = drawn.subplots(*shape, squeeze=False, sharey=sharey)
    for ax in axes.ravel()[many:]:
        ax.set_visible(False)
    return drawn, list(axes.ravel()[:many]), list(axes[:, 0])


def curves_of(found: Summary, x: str) -> dict[str, Curve]:
    """For each method its medians along x."""
    curves: dict[str, dict[float, Spread]] = {}
    for group, spread in found.items():
        curve = curves.setdefault(group.method, {})
        if getattr(group, x) in curve:
            raise ValueError(
                f"Two curves of {group.method} would be one: name the data, patterns or rates that "
                "the picture is about."
            )
        curve[getattr(group, x)] = spread
    return {name: sorted(curve.items()) for name, curve in curves.items()}


def draw_line(ax: Any, curve: Curve, look: style.Look) -> Any:
    """Medians as a line, quartiles as a band."""
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


def _scale(ax: Any, found: Summary, picture: Mapping[str, Any]) -> None:
    medians = [spread.median for spread in found.values()]
    if picture.get("log", style.spans_decades(medians)):
        style.make_log(ax, "y", [value for value in medians if value > 0])
    elif min(spread.low for spread in found.values()) >= 0:
        highest = max(spread.high for spread in found.values())  # in any panel
        ax.set_ylim(0, 1.04 * highest or 1.0)


def _title(panels: str, name: Any) -> str:
    return f"{100 * name:.3g} % missing" if panels == "rate" else style.panel_title(str(name))


def _along(experiment: Any, picture: Mapping[str, Any], x: str) -> str:
    if x == "rate":
        return "missing entries (%)"
    return str(picture.get("x_label") or ALONG.get(experiment.task, "step"))


def _finish(
    drawn: Any,
    rows: Sequence[Row],
    picture: Mapping[str, Any],
    handles: dict[str, Any],
    looks: Mapping[str, style.Look],
) -> None:
    """The legend in the order of the experiment, and what is not in the picture."""
    wanted = picture.get("methods") or list(looks)
    style.legend(drawn, dict(sorted(handles.items(), key=lambda each: _order(looks, each[0]))))
    absent = [name for name in wanted if name not in handles]
    style.tell(drawn, absent, [each for each in failures(rows) if each.method in wanted])


def _order(looks: Mapping[str, style.Look], name: str) -> int:
    return looks[name].order if name in looks else len(looks)
