"""The pictures of the report: those of `hirank.plot`, as SVG that belongs to the page."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from html import escape
from io import StringIO
from typing import TypeAlias

import matplotlib.style
import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hirank import plot
from hirank._text import percent
from hirank.estimators.imputer import Imputer
from hirank.report.facts import Facts, sort_by_largest

MAX_COLUMNS = 20  # with a picture of their held-out entries
MAX_POINTS = 5000  # in all of these pictures
INK, MUTED = "#1b2127", "#56606b"
VARIABLES = {
    plot.BLUE: "own",
    plot.VERMILION: "linear",
    plot.GRAY: "mean",
    plot.GRID: "line",
    plot.GROUND: "card",
    INK: "ink",
    MUTED: "muted",
}
"""Variables of the style sheet for the colors of a picture, so that dark pages have others."""
Draw: TypeAlias = Callable[..., Axes]
STYLE = {
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.titlecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), MUTED),
}


def draw_pictures(model: Imputer, facts: Facts) -> dict[str, Markup]:
    """Return the pictures of the whole table by the names of the functions that draw them."""
    table = facts.table
    known = np.where(table.observed, table.values, np.nan)
    label = f"Pattern of missing values: {percent(facts.n_missing / known.size)} of the table"
    draw: Draw = partial(plot.missingness, known, names=table.names)
    # Names of columns take much of the height.
    found = {"missingness": make_svg("missingness", label, draw, height=4.8)}
    if facts.n_stages:
        draw = partial(plot.convergence, model)
        found["convergence"] = make_svg("convergence", "Objective over time", draw)
    if any(np.isfinite(trial.error) for trial in facts.trials):
        label = "Error of each compared model against the seconds that it took"
        found["candidates"] = make_svg("candidates", label, partial(plot.candidates, model))
    if facts.n_held_out:
        label = "Imputed against true values of all columns, in standard deviations"
        found["held_out"] = make_svg("held_out", label, partial(plot.held_out, model))
    return found


def draw_columns(model: Imputer, facts: Facts, max_columns: int = MAX_COLUMNS) -> dict[int, Markup]:
    """Return pictures of the held-out entries of the columns with the largest errors."""
    judged = [column for column in facts.columns if column.n_held_out]
    found = {}
    for column in sort_by_largest(judged, "error")[:max_columns]:
        label = f"Imputed against true values of {column.name}"
        max_points = MAX_POINTS // min(len(judged), max_columns)
        draw = partial(plot.held_out, model, feature=column.index, max_points=max_points)
        found[column.index] = make_svg(f"column {column.index}", label, draw)
    return found


def make_svg(key: str, label: str, draw: Draw, *, height: float = 4.0) -> Markup:
    """Return a picture for a page of HTML: one element, without styles or ids that others have.

    Texts stay texts, in the font of the page. The same picture gives the same characters.
    """
    style = matplotlib.style.context(["default", STYLE | {"svg.hashsalt": f"hirank {key}"}])
    with style, warnings.catch_warnings():
        # Glyphs that matplotlib's font does not have: browsers take them from another one.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(5.0, height), layout="constrained")
        draw(ax=figure.subplots())
        text = StringIO()
        absent = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", metadata=absent)
    svg = text.getvalue()
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None
    inside = re.sub(r"<[^>]*>", _adapt_tag, svg[svg.index("</style>") :])
    inside = inside.partition("</defs>")[2]
    return Markup(f'<svg {view[0]} role="img" aria-label="{escape(label)}">{inside}')


def _adapt_tag(tag: re.Match[str]) -> str:
    """Replace colors by variables, and drop ids that no other element refers to."""
    text = tag[0].replace("xlink:href", "href")
    if text.startswith(("<g ", "<image ")):
        text = re.sub(r' id="[^"]*"', "", text)
    return re.sub(
        r"(?<=: )#[0-9a-f]{6}\b",
        lambda color: f"var(--{VARIABLES[color[0]]})" if color[0] in VARIABLES else color[0],
        text,
    )
