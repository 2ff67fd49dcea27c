"""Columns of dates as seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.cli.errors import Failure

DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H.%M.%S", " %I:%M %p", " %I:%M:%S %p")


def times_of(cells: Sequence[Any], name: str) -> Array:
    """Numbers as they are (a column of times may be one of ids too), dates as seconds, n."""
    try:
        return np.array([float(cell) for cell in cells])
    except (TypeError, ValueError):
        return seconds_of(cells, name)


def seconds_of(cells: Sequence[Any], name: str) -> Array:
    """Times as seconds, n, from date objects, ISO dates, or dates like 31/12/2024 18:00.

    If days and months could be taken for each other, the way in which rows ascend is taken.
    """
    found = [s for s in (_parsed(cells, read) for read in _readers(cells)) if s is not None]
    if len(found) > 1:
        found = [s for s in found if (np.diff(s) > 0).all()] or found
    if len(found) == 1 or (found and all(np.array_equal(s, found[0]) for s in found)):
        return found[0]
    if found:
        raise Failure(
            f"--time: the dates of column {name!r} can be read with days or months first. Write "
            "them as 2024-12-31 18:00, or use --time rows if rows are evenly spaced."
        )
    bad = next((i for i, cell in enumerate(cells) if _parsed([cell], _iso) is None), 0)
    raise Failure(
        f"--time: {cells[bad]!r} in column {name!r}, row {bad + 1}, is neither a number nor a date "
        "like 2024-12-31 18:00. Convert the column, or use --time rows if rows are evenly spaced."
    )


def _readers(cells: Sequence[Any]) -> list[Callable[[str], datetime]]:
    """Ways to read the first cell; only those are tried on all."""

    def reader(form: str) -> Callable[[str], datetime]:
        return lambda text: datetime.strptime(text, form)

    ways = [_iso, *(reader(day + clock) for day in DAYS for clock in CLOCKS)]
    return [way for way in ways if _parsed(cells[:1], way) is not None]


def _iso(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _parsed(cells: Sequence[Any], read: Callable[[str], datetime]) -> Array | None:
    seconds = np.empty(len(cells))
    try:
        for i, cell in enumerate(cells):
            when = cell if isinstance(cell, datetime) else read(str(cell).strip())
            seconds[i] = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return None
    return seconds
