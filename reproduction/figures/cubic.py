"""The twisted cubic in space: complete data in red, imputed data in blue."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hirank._text import plural
from hirank._typing import Array
from reproduction.config import Experiment
from reproduction.figures import style
from reproduction.summary import Row

TRUE, FILLED = "#C8321E", "#0B5FA5"
"""Red and blue as in the paper; size and shape differ as well."""
EDGE = 1.25
"""The curve lies in the cube from -1 to 1."""


def cubic(experiment: Experiment, rows: Sequence[Row], spec: Mapping[str, Any]) -> Any:
    """Draw points of the first seed, from the measures "x1" to "x3" and "true x1" to "true x3".

    `show` is "methods" (default): columns are methods, rows are rates, after the last iteration; or
    "iterations": snapshots of one method (`method`) at the lowest rate (or `rate`).
    """
    seed = min((row["seed"] for row in rows), default=0)
    shown = [row for row in rows if row["seed"] == seed and row["selected"] and not row["failure"]]
    truth = _points(shown, "true x")
    filled = _points(shown, "x")
    if not truth or not filled:
        return None
    if spec.get("show", "methods") == "iterations":
        panels, columns = _iterations(filled, spec)
    else:
        panels, columns = _methods(experiment, filled, spec)
    lines = -(-len(panels) // columns)
    figure = style.make_figure(2.75 * lines + 0.45, width=min(style.WIDTH, 3.1 * columns + 0.4))
    handles: dict[str, Any] = {}
    for place, (title, key) in enumerate(panels, start=1):
        ax = figure.add_subplot(lines, columns, place, projection="3d")
        if key in filled:
            _panel(ax, truth[key[0], key[1], 0.0], filled[key], handles)
            title += _outside(filled[key])
        else:
            ax.set_axis_off()
            ax.text2D(0.5, 0.5, "no numbers", ha="center", transform=ax.transAxes)
        ax.set_title(title, y=0.98)
    style.add_legend(figure, handles, loc="outside lower center", ncols=2)
    names = {key[0] for _, key in panels}
    style.add_footnote(figure, rows, names, names)
    return figure


Key = tuple[str, float, float]
"""Method, rate, at."""


def _points(rows: Sequence[Row], name: str) -> dict[Key, Array]:
    """Return the points, n x 3, of each method, rate and iteration."""
    entries: dict[Key, dict[tuple[int, int], float]] = {}
    for row in rows:
        measure = row["measure"]
        if measure.startswith(name) and measure[len(name) :] in ("1", "2", "3"):
            key = row["method"], round(float(row["rate"]), 9), float(row["at"])
            entries.setdefault(key, {})[row["item"], int(measure[-1]) - 1] = row["value"]
    found = {}
    for key, values in entries.items():
        points = np.full((1 + max(item for item, _ in values), 3), math.nan)
        for place, value in values.items():
            points[place] = value
        found[key] = points
    return found


def _methods(
    experiment: Experiment, filled: Mapping[Key, Array], spec: Mapping[str, Any]
) -> tuple[list[tuple[str, Key]], int]:
    names = spec.get("methods") or [each.method.name for each in experiment.methods]
    rates = sorted({rate for _, rate, _ in filled})
    last = {
        (name, rate): max(e[2] for e in filled if e[:2] == (name, rate)) for name, rate, _ in filled
    }
    panels = [
        (f"{name}\n{_describe_rate(rate)}", (name, rate, last.get((name, rate), 0.0)))
        for rate in rates
        for name in names
    ]
    return panels, len(names)


def _iterations(
    filled: Mapping[Key, Array], spec: Mapping[str, Any]
) -> tuple[list[tuple[str, Key]], int]:
    # By default the method with most snapshots.
    counts = [name for name, _, _ in filled]
    method = spec.get("method") or max(dict.fromkeys(counts), key=counts.count)
    rates = sorted({rate for name, rate, _ in filled if name == method})
    rate = round(spec["rate"], 9) if "rate" in spec else rates[0] if rates else 0.0
    steps = sorted(at for name, share, at in filled if (name, share) == (method, rate))
    panels = [
        ("start" if step == 0 else f"iteration {step:.0f}", (method, rate, step)) for step in steps
    ]
    return panels, style.grid_shape(max(1, len(panels)))[1]


def _describe_rate(rate: float) -> str:
    """Return a share of three entries as text."""
    return {1: "one entry removed", 2: "two entries removed"}.get(
        round(3 * rate), f"{100 * rate:.0f} % removed"
    )


def _inside(points: Array) -> Any:
    """Return which points are in the cube that is drawn; others would make the curve a dot."""
    return np.all(np.abs(points) <= EDGE, axis=1)


def _outside(points: Array) -> str:
    outside = int(np.sum(~_inside(points)))
    return f" ({plural(outside, 'point')} outside)" if outside else ""


def _panel(ax: Any, truth: Array, filled: Array, handles: dict[str, Any]) -> None:
    inside = _inside(filled)
    handles["complete data"] = ax.scatter(
        *truth.T, s=20, color=TRUE, alpha=0.55, linewidth=0, depthshade=False
    )
    handles["completed"] = ax.scatter(
        *filled[inside].T, s=13, facecolor="none", edgecolor=FILLED, linewidth=0.9, depthshade=False
    )
    ax.view_init(elev=18, azim=-62)
    ax.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), zlim=(-EDGE, EDGE))
    for axis, label in ((ax.xaxis, "$x_1$"), (ax.yaxis, "$x_2$"), (ax.zaxis, "$x_3$")):
        axis.set_ticks([-1, 0, 1])
        axis.set_label_text(label)
        axis.labelpad = -6
        axis.set_tick_params(labelsize=8, pad=-2)
        axis.pane.set_facecolor("#FAFAFA")
    ax.set_box_aspect((1, 1, 1), zoom=1.02)
