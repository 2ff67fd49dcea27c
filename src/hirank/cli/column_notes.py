"""How the columns of a table were read: what a user should know before relying on the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hirank._text import abbreviated
from hirank._typing import Array
from hirank.io import Table, TableFile

MIN_REPEATS = 3
"""Cells with the same value from which on it may mark missing values."""
MIN_DISTANCE = 1.5
"""Distance of such a value from all others, in ranges of these (5 to 95 %)."""
MAX_LISTED = 12
MAX_EXAMPLES = 6


def column_notes(file: TableFile, table: Table, known: Sequence[str | None]) -> Iterator[str]:
    """Yield sentences about a table as it was read; `known` columns are used in another way."""
    text = [name for name in table.text if name not in known]
    if text:
        yield f"Columns that are not numeric: {quoted(text)}.{almost_numeric(table)}"
    if file.numbered:
        yield f"Columns with the name of another one were numbered: {quoted(file.numbered)}."
    yield from notation_notes(table)
    columns = list(zip(table.numeric, table.numbers.T, strict=True))
    empty = [name for name, x in columns if np.isnan(x).all()]
    if empty:
        yield f"Columns without values, left empty: {quoted(empty)}."
    found = [(name, *one) for name, x in columns for one in _find_markers(x)]
    if found:
        cells = abbreviated(
            [f"{v:g} in {n} cells of {name!r}" for name, v, n in found], MAX_EXAMPLES
        )
        values = " ".join(f"--missing={value:g}" for value in dict.fromkeys(v for _, v, _ in found))
        yield f"Values far from all others: {cells}. If they mark missing values, pass {values}."


def notation_notes(table: Table) -> Iterator[str]:
    """Yield how numbers with a unit or with marks of thousands were read, if there are any."""
    written = [_example(table, name) for name in table.notations]
    if written:
        listed = abbreviated(written, MAX_EXAMPLES)
        yield f"Numbers with a unit or with marks of thousands: {listed}."


def almost_numeric(table: Table) -> str:
    """Return which cells keep columns from being numeric, as a sentence."""
    columns = [
        f"{name!r} contains {quoted(dict.fromkeys(cell for _, cell in cells))} (line {cells[0][0]})"
        for name, cells in table.types.nearly_numeric.items()
    ]
    if not columns:
        return ""
    return f" Almost numeric: {'; '.join(columns)}. If this marks missing values, pass --missing."


def quoted(names: Iterable[object]) -> str:
    """Return names in quotes, only the first ones if there are many."""
    return abbreviated([repr(str(name)) for name in names], MAX_LISTED)


def _example(table: Table, name: str) -> str:
    """Return how the first number of a column was read."""
    x = table.numbers[:, table.numeric.index(name)]
    row = int(np.argmin(np.isnan(x)))
    return f"{table.column(name)[row].strip()} in {name!r} is {x[row]:.15g}"


def _find_markers(x: Array) -> list[tuple[float, int]]:
    """Return the lowest and highest value of a column, n, if repeated far from all others."""
    x = x[~np.isnan(x)]
    found = []
    for value in {x.min(), x.max()} if len(x) else ():
        rest = x[x != value]
        count = len(x) - len(rest)
        if min(count, len(rest)) >= MIN_REPEATS:
            low, high = np.quantile(rest, [0.05, 0.95])
            if high > low and np.abs(rest - value).min() > MIN_DISTANCE * (high - low):
                found.append((float(value), count))
    return found
