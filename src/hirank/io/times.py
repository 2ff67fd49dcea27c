"""Times of rows: numbers, or dates as seconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.exceptions import InputError

_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H.%M.%S", " %I:%M %p", " %I:%M:%S %p")
_REMEDY = "Write dates as 2024-12-31 18:00, or pass --in-order if the rows are evenly spaced."


def parse_times(cells: Sequence[Any], name: str) -> Array:
    """Return the times of n rows: numbers as they are, dates as seconds.

    Dates are date objects, ISO dates, or dates like 31/12/2024 18:00. If days and months could be
    confused, the order in which the rows ascend is used.
    """
    try:
        return np.array([float(cell) for cell in cells])
    except (TypeError, ValueError):
        pass
    found = [s for s in (_parse(cells, read) for read in _readers(cells)) if s is not None]
    if len(found) > 1:
        found = [s for s in found if (np.diff(s) > 0).all()] or found
    if found and all(np.array_equal(s, found[0]) for s in found):
        return found[0]
    if found:
        raise InputError(
            f"Time column {name!r}: the day or the month may come first in its dates. {_REMEDY}"
        )
    bad = next((i for i, cell in enumerate(cells) if _parse([cell], _read_iso) is None), 0)
    raise InputError(
        f"Time column {name!r}: {cells[bad]!r} in row {bad + 1} is neither a number nor a date. "
        f"{_REMEDY}"
    )


def _readers(cells: Sequence[Any]) -> list[Callable[[str], datetime]]:
    """Return the functions that can read the first cell."""

    def reader(form: str) -> Callable[[str], datetime]:
        return lambda text: datetime.strptime(text, form)

    readers = [_read_iso, *(reader(day + clock) for day in _DAYS for clock in _CLOCKS)]
    return [read for read in readers if _parse(cells[:1], read) is not None]


def _read_iso(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _parse(cells: Sequence[Any], read: Callable[[str], datetime]) -> Array | None:
    """Return the seconds of all cells; None if one cannot be read."""
    seconds = np.empty(len(cells))
    try:
        for i, cell in enumerate(cells):
            when = cell if isinstance(cell, datetime) else read(str(cell).strip())
            seconds[i] = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return None
    return seconds


def read_iso_seconds(cell: str) -> tuple[float, datetime]:
    """Return an ISO date as seconds, in UTC if it names no zone, and as it is; raise ValueError."""
    when = datetime.fromisoformat(cell.strip())
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), when


def write_like(seconds: float, cell: str | None) -> str:
    """Return a time as text in the form of a cell with an ISO date; without one as a number.

    Examples
    --------
    >>> from hirank.io.times import write_like
    >>> write_like(86400.0, None), write_like(86400.0, "2024-12-31")
    ('86400', '1970-01-02')
    >>> write_like(86400.5, "2024-12-31 18:00+01:00")
    '1970-01-02 01:00:00.500+01:00'
    """
    if cell is None:
        return f"{seconds:.15g}"
    _, example = read_iso_seconds(cell)
    when = datetime.fromtimestamp(round(seconds, 3), example.tzinfo or UTC)
    if example.tzinfo is None:
        when = when.replace(tzinfo=None)
    text = cell.strip()
    if len(text) <= 10 and when == when.replace(hour=0, minute=0, second=0, microsecond=0):
        return when.date().isoformat()
    unit = "milliseconds" if when.microsecond else "seconds"
    if unit == "seconds" and not when.second and len(re.findall(":", text.split("+")[0])) == 1:
        unit = "minutes"
    return when.isoformat(text[10:11] or " ", unit)
