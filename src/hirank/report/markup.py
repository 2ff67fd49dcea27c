"""Tables and cards of the report as HTML: what is given as text is escaped here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

import numpy as np

from hirank.report.facts import Cell
from hirank.report.words import number

PRINTED = 40
"""Rows of a table that go on paper."""


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[str],
    *,
    numeric: Sequence[int] = (),
    name: str = "",
    sortable: bool = False,
    strong: Collection[int] = (),
) -> str:
    """A table in a box of its own to scroll.

    Rows are cells that are ready, heads and caption plain text. Numbers stand on the right in the
    `numeric` columns, and `strong` rows stand out.
    """
    cells = "".join(
        f'<th scope="col"{" class=n" if i in numeric else ""}>{escape(head)}</th>'
        if head
        else "<td></td>"
        for i, head in enumerate(heads)
    )
    rows = list(rows)
    body = "".join(f"<tr{_kind(i, strong)}>{row}</tr>" for i, row in enumerate(rows))
    more = len(rows) - PRINTED
    rest = f'<p class="note print-only">{more:,} more rows are on screen.</p>' if more > 0 else ""
    kind = ' class="sortable"' if sortable else ""
    mark = f' id="{name}"' if name else ""
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>"
        f'<div class="box" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table{mark}{kind} aria-label="{escape(caption)}"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{rest}</figure>"
    )


def _kind(i: int, strong: Collection[int]) -> str:
    kinds = ["strong"] * (i in strong) + ["more"] * (i >= PRINTED)
    return f' class="{" ".join(kinds)}"' if kinds else ""


def num(value: float, *, even: bool = False) -> str:
    """A cell with a number, and the number itself to sort by."""
    exact = "" if np.isnan(value) else f"{value:.6g}"
    return f'<td class="n" data-value="{exact}">{number(value, even=even)}</td>'


def whole(value: int) -> str:
    """A cell with a count."""
    return f'<td class="n" data-value="{value}">{value:,}</td>'


def head(text: str) -> str:
    """The first cell of a row."""
    return f'<th scope="row">{escape(text)}</th>'


def card(title: str, big: str, small: str = "") -> str:
    """A large number with a title."""
    rest = f'<dd class="small">{escape(small)}</dd>' if small else ""
    return (
        f'<div class="card"><dt>{escape(title)}</dt><dd class="big">{escape(big)}</dd>{rest}</div>'
    )


def cells_table(caption: str, cells: Sequence[Cell], size: str = "", name: str = "") -> str:
    """Filled cells in a table."""
    ends = any(not np.isnan(cell.lower) for cell in cells)
    heads = ["Row", "Column", "Fill", *(["Lower", "Upper"] if ends else []), *([size] * bool(size))]
    rows = (
        f"{head(cell.row)}<td>{escape(cell.column)}</td>{num(cell.fill)}"
        + (num(cell.lower) + num(cell.upper) if ends else "")
        + (num(cell.size) if size else "")
        for cell in cells
    )
    return table(caption, heads, rows, numeric=range(2, len(heads)), name=name, sortable=True)
