"""The sections of the report on single columns, rows and cells: doubts, and the preview."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hirank.report.facts import Facts
from hirank.report.markup import cells_table, head, table, whole
from hirank.report.words import count


def doubts(facts: Facts) -> str:
    """Columns, rows and cells to be careful with."""
    found, parts = facts.doubts, []
    remarks = [one for one in facts.features if one.remark]
    if remarks:
        rows = (
            f"{head(one.name)}<td>{escape(one.remark)}</td>{whole(one.filled)}" for one in remarks
        )
        parts += [
            "<h3>Columns</h3>",
            table("Columns to be careful with", ["Column", "Why", "Filled"], rows, numeric=(2,)),
        ]
    if found.n_blank:
        rows_named = ", ".join(escape(row) for row in found.blank)
        parts.append(
            f'<p class="warning"><strong>{count(found.n_blank, "row")} without any observed entry'
            f"</strong> got the column means: {rows_named}{_and_more(found.n_blank, found.blank)}."
            "</p>"
        )
    if found.n_thin:
        rows_named = ", ".join(f"{escape(row)} ({known})" for row, known in found.thin)
        parts.append(
            f'<p class="warning"><strong>{count(found.n_thin, "row")} with one or two observed '
            f"entries</strong> (their number in brackets), whose fills are guesses: {rows_named}"
            f"{_and_more(found.n_thin, found.thin)}.</p>"
        )
    if found.n_empty:
        parts.append(
            f'<p class="warning"><strong>{count(found.n_empty, "missing cell")}</strong> could not '
            "be filled, or should not be, and stayed empty.</p>"
        )
    if found.outside:
        parts += [
            "<h3>Fills outside the observed range</h3>",
            f"<p>{count(found.n_outside, 'fill')} beyond the least or largest observed value of "
            "the column by more than a tenth of its range.</p>",
            cells_table("Furthest outside, in standard deviations", found.outside, "Outside by"),
        ]
    if found.widest:
        parts += [
            "<h3>Least certain fills</h3>",
            cells_table(
                "Widest intervals, in standard deviations of the column", found.widest, "Width"
            ),
        ]
    return "".join(parts) or "<p>Nothing stands out.</p>"


def _and_more(total: int, listed: Sequence[object]) -> str:
    rest = total - len(listed)
    return f" and {rest:,} more" if rest else ""


def preview(facts: Facts) -> str:
    """Filled cells to search."""
    if not facts.cells:
        return "<p>No cell was filled.</p>"
    shown = len(facts.cells)
    told = (
        f"All {shown:,} filled cells."
        if shown == facts.n_filled
        else f"{shown:,} of {facts.n_filled:,} filled cells, evenly spread over the table."
    )
    if facts.numbered:
        told += " Rows are counted from 0."
    return (
        '<div class="controls needs-script" hidden><label for="search">Search rows and columns '
        '<input id="search" type="search" autocomplete="off"></label>'
        '<output id="found" for="search"></output></div>'
        + cells_table(told, facts.cells, name="cells")
    )
