"""The pictures of the report as SVG; their colors are variables of the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.estimators.plot_data import bend_of
from hirank.report.axes import Axes, Scale
from hirank.report.facts import Candidate
from hirank.report.words import number, percent

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9999)
"""Shares of missing entries at which the shade of a block gets darker."""
NAMED = 24
"""Columns up to which the picture of the pattern has their names."""
LONG = 18
"""Letters of a name that fit into a picture."""
SHAPES = {
    "column means": "M-4 0H4M0-4V4",
    "linear": "M-4-4H4V4H-4Z",
    "locally linear": "M-5 4L0-5L5 4Z",
    "low rank": "M0-5.5L5 0L0 5.5L-5 0Z",
    "kernelized": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0",
}
"""Of the kinds of candidates: told apart by shape, not by color."""


def bar(
    value: float,
    most: float,
    *,
    kind: str = "own",
    tick: float = np.nan,
    line: float = np.nan,
) -> str:
    """A bar for a cell of a table: of `most`; a diamond at `tick` and a line across at `line`."""
    parts = []
    if np.isfinite(value):
        parts.append(
            f'<rect class="{kind}" y="4" height="10" width="{_part(value, most)}" rx="1"/>'
        )
    if np.isfinite(line):
        x = _part(line, most)
        parts.append(f'<line class="mean" x1="{x}" x2="{x}" y1="0" y2="18"/>')
    if np.isfinite(tick):
        x = _part(tick, most)
        parts.append(
            f'<svg x="{x}" y="9" overflow="visible"><path class="linear" d="M0-6L5 0L0 6L-5 0Z"/>'
            "</svg>"
        )
    return f'<svg class="bar" width="100%" height="18" aria-hidden="true">{"".join(parts)}</svg>'


def _part(value: float, most: float) -> str:
    return f"{100 * min(max(value, 0) / most, 1) if most > 0 else 0:.2f}%"


def short(name: str, letters: int = LONG) -> str:
    """A name that fits."""
    return name if len(name) <= letters else name[: letters - 1] + "\N{HORIZONTAL ELLIPSIS}"


def pattern(blocks: Array, names: Sequence[str], labels: tuple[str, str]) -> str:
    """Which parts of a table are missing: blocks, R x C, each the darker the more is."""
    R, C = blocks.shape
    named = len(names) <= NAMED
    left, wide, below = 52, 360, 106 if named else 24
    tall = int(np.clip(R * 12, 60, 260))
    level = np.searchsorted(LEVELS, blocks)
    layers = "".join(
        f'<path class="level level-{k}" d="{_runs(level == k)}"/>'
        for k in range(1, len(LEVELS) + 1)
        if (level == k).any()
    )
    first, last = (escape(short(label, 6)) for label in labels)
    width, height = left + wide + 8, 8 + tall + below
    parts = [
        f'<svg x="{left}" y="8" width="{wide}" height="{tall}" viewBox="0 0 {C} {R}" '
        f'preserveAspectRatio="none" shape-rendering="crispEdges"><rect class="ground" width="{C}" '
        f'height="{R}"/>{layers}</svg>',
        f'<rect class="outline" x="{left}" y="8" width="{wide}" height="{tall}"/>',
        f'<text class="end" x="{left - 5}" y="19">{first}</text>',
    ]
    if R > 1:
        parts.append(f'<text class="end" x="{left - 5}" y="{4 + tall}">{last}</text>')
    center = 8 + tall / 2
    parts.append(
        f'<text class="mid" transform="translate(14 {center:.0f}) rotate(-90)">rows</text>'
    )
    if named:
        for j, name in enumerate(names):
            x = left + (j + 0.5) * wide / len(names) + 4
            parts.append(
                f'<text class="end" transform="translate({x:.1f} {tall + 20}) rotate(-55)">'
                f"{escape(short(name, 14))}</text>"
            )
    else:
        x, y = left + wide / 2, tall + 24
        parts.append(f'<text class="mid" x="{x:.0f}" y="{y}">{len(names)} columns</text>')
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Pattern of missing entries: '
        f'{percent(float(blocks.mean()))} of the table">{"".join(parts)}</svg>'
    )


def _runs(there: BoolArray) -> str:
    """The path around all true blocks, R x C, neighbors in a row joined."""
    wall = np.zeros((len(there), 1), np.int8)
    steps = np.diff(np.hstack([wall, there.astype(np.int8), wall]), axis=1)
    rows, begins = np.nonzero(steps == 1)
    ends = np.nonzero(steps == -1)[1]
    return "".join(
        f"M{a} {i}h{b - a}v1h{a - b}z"
        for i, a, b in zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True)
    )


def legend_of_levels(*, cells: bool) -> str:
    """What the shades of the pattern stand for, if blocks are single cells or not."""
    shares = [f"\N{LESS-THAN OR EQUAL TO} {100 * share:.0f} %" for share in LEVELS[1:-1]]
    words = dict(enumerate(["none", *shares, "more", "all"]))
    if cells:
        words = {0: "observed", len(LEVELS): "missing"}
    items = "".join(
        f'<li><svg width="16" height="16" aria-hidden="true"><rect class="ground" width="16" '
        f'height="16"/><rect class="level level-{k}" width="16" height="16"/></svg> {word}</li>'
        for k, word in words.items()
    )
    return f'<ul class="legend" aria-label="Share of cells missing">{items}</ul>'


def scatter(points: Array, x_label: str, y_label: str, label: str) -> str:
    """Predicted against true values, 2 x h, and the line where both are the same."""
    points = points[:, np.isfinite(points).all(axis=0)]
    scale = Scale.around(points)
    axes = Axes(scale, scale, x_label, y_label, height=380)
    ends = np.array([scale.low, scale.high])
    (x1, x2), (y1, y2) = axes.across(ends), axes.up(ends)
    line = f'<path class="diagonal" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'
    places = zip(axes.across(points[0]).tolist(), axes.up(points[1]).tolist(), strict=True)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>' for x, y in places)
    return axes.svg(f'{line}<g class="dots">{dots}</g>', label)


def costs(candidates: Sequence[Candidate]) -> str:
    """What each candidate cost in seconds, and its error; those in use are filled."""
    shown = [one for one in candidates if np.isfinite(one.error) and one.name in SHAPES]
    seconds = np.maximum([one.seconds for one in shown], 1e-3)
    errors = [one.error for one in shown]
    scales = Scale.around(seconds, log=True), Scale.around([0, *errors])
    axes = Axes(*scales, "seconds it took", "error at hidden entries")
    marks = []
    for one, x, y in zip(shown, axes.across(seconds), axes.up(errors), strict=True):
        kind = "chosen" if one.weight else "tried"
        title = f"{one.name}, {one.settings}: error {number(one.error)}"
        marks.append(
            f'<path class="{kind}" transform="translate({x:.1f} {y:.1f})" d="{SHAPES[one.name]}">'
            f"<title>{escape(title)}</title></path>"
        )
    return axes.svg("".join(marks), "Error of each candidate against the seconds it took")


def legend_of_shapes(names: Sequence[str]) -> str:
    """Which shape is which kind of candidate."""
    items = "".join(
        f'<li><svg width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true"><path '
        f'class="tried" d="{path}"/></svg> {name}</li>'
        for name, path in SHAPES.items()
        if name in names
    )
    chosen = (
        '<li><svg width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true"><path '
        f'class="chosen" d="{SHAPES["linear"]}"/></svg> filled: in use</li>'
    )
    return f'<ul class="legend">{items}{chosen}</ul>'


def trace(stages: Sequence[NDArray[np.void]]) -> str:
    """The objective over time, a piece of line for each stage."""
    objective = np.concatenate([stage["objective"] for stage in stages])
    seconds = np.concatenate([stage["seconds"] for stage in stages])
    bend = bend_of(objective)
    scales = Scale.around([0, *seconds]), Scale.around(objective, log=not bend, bend=bend)
    axes = Axes(*scales, "seconds", "objective")
    lines = []
    for stage in stages:
        x, y = axes.across(stage["seconds"]), axes.up(stage["objective"])
        pairs = zip(x.tolist(), y.tolist(), strict=True)
        points = "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs)
        lines.append(f"M{points}" + ("h0.1" if len(stage) == 1 else ""))
    return axes.svg(f'<path class="trace" d="{"".join(lines)}"/>', "Objective over time")
