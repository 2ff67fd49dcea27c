"""Rows of a stream, one per line: CSV, whose observed cells keep their bytes, or JSON objects."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from hirank.io.cells import Missing, format_numbers, is_number, parse_number
from hirank.io.dialect import Dialect


class BadLine(ValueError):
    """A line that is not a row; the message states why."""


class Row(NamedTuple):
    """The numbers of the wanted columns of a line, NaN = missing, and the whole line in parts."""

    numbers: list[float]
    parts: Any


Ends: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Lower and upper ends of intervals of the wanted columns of a row."""


def interval_names(wanted: Sequence[str], time: str | None) -> tuple[str, ...]:
    """Return the names of two columns for each wanted one, but for that of the times."""
    return tuple(f"{name} {end}" for name in wanted if name != time for end in ("lower", "upper"))


class Layout(Protocol):
    """How rows are written on lines."""

    wanted: tuple[str, ...]  # columns of the model, in its order
    absent: set[str]  # those that the input, or a row of it, lacks

    def parse(self, line: str) -> Row:
        """Return the row of a line without its end; raise BadLine."""

    def render(self, row: Row, filled: Sequence[float], ends: Ends | None = None) -> str:
        """Return the line with imputed values; one that is not finite leaves the cell missing.

        With the ends of intervals, these come last: see `interval_names`.
        """


class CellFormat:
    """How cells are read as numbers or missing values, and how imputed values are written.

    Parameters
    ----------
    missing : words
        In addition to empty cells, NaN, null, NA, N/A and None. "-200" also matches "-200.0".
    decimal : {".", ","}
    digits : int, optional
        Significant digits of imputed values; by default as many as single precision has.
    time : str, optional
        The column with the times of rows, numbers or ISO dates, which are read as seconds.

    Examples
    --------
    >>> cells = CellFormat(time="when")
    >>> cells.value("when", "1970-01-02"), cells.value("a", "2.5")
    (86400.0, 2.5)
    """

    def __init__(
        self,
        missing: Iterable[str] = (),
        decimal: str = ".",
        digits: int | None = None,
        time: str | None = None,
    ) -> None:
        self.missing, self.decimal, self.digits = Missing(missing), decimal, digits
        self.time = time

    def value(self, column: str, cell: str) -> float:
        """Return the value of a cell of a column, NaN if missing; raise BadLine."""
        return self.number(cell) if column != self.time else self._seconds(cell, self.number)

    def json_value(self, key: str, value: Any) -> float:
        """Return the value of a member of an object, NaN if missing; raise BadLine."""
        return (
            self.json_number(value) if key != self.time else self._seconds(value, self.json_number)
        )

    def _seconds(self, cell: Any, number: Callable[[Any], float]) -> float:
        try:
            return number(cell)
        except BadLine:
            try:
                time = datetime.fromisoformat(cell.strip())
            except (ValueError, AttributeError):
                raise BadLine(f"{_shorten(cell)} is neither a number nor an ISO date") from None
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()

    def number(self, cell: str) -> float:
        """Return the value of a cell, NaN if missing; raise BadLine."""
        value = parse_number(cell, self.missing, self.decimal)
        if value is None:
            comma = self.decimal == "." and is_number(cell.replace(",", "."))
            hint = " (--decimal ,?)" if comma else ""
            raise BadLine(f"{_shorten(cell)} is not a number{hint}")
        return value

    def json_number(self, value: Any) -> float:
        """Return a JSON value as a number, NaN if missing; raise BadLine."""
        if value is None or (isinstance(value, str) and self.missing.matches(value)):
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadLine(f"{_shorten(value)} is not a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            raise BadLine(f"{_shorten(value)} is not finite")
        is_marker = number in self.missing.values and self.missing.marks(str(value))
        return math.nan if is_marker else number

    def ends(self, layout: Layout, row: Row, ends: Ends) -> list[float | None]:
        """Return the ends of the intervals of a row, in the order of `interval_names`.

        None where the value is known or nothing is known of it.
        """
        parts = zip(layout.wanted, row.numbers, *ends, strict=True)
        return [
            end if math.isnan(number) and math.isfinite(end) else None
            for name, number, *both in parts
            if name != self.time
            for end in both
        ]

    def text(self, value: float) -> str:
        """Return an imputed value as it is written."""
        return format_numbers(np.array([value]), self.digits, self.decimal)[0]


class Delimited:
    """Lines of cells with a delimiter between. A cell in quotes must end on its line.

    Parameters
    ----------
    names : names
        Columns of the input.
    wanted : names
        Columns of the model. Those that the input lacks are missing in all rows.
    dialect : Dialect
    cells : CellFormat
    output : names, optional
        Columns of the output, by default those of the input. A cell of a column that the input
        lacks is empty, or imputed if it is wanted.

    Examples
    --------
    >>> layout = Delimited(("id", "a", "b"), ("b", "a"), Dialect(), CellFormat())
    >>> row = layout.parse('"x, y",1.50,')
    >>> row.numbers
    [nan, 1.5]
    >>> layout.render(row, [2.25, 1.5])
    '"x, y",1.50,2.25'
    >>> other = layout.with_names(("b", "a", "new"))
    >>> other.render(other.parse("2.50,,7"), [2.5, 1.25])
    ',1.25,2.50'
    """

    def __init__(
        self,
        names: tuple[str, ...],
        wanted: Sequence[str],
        dialect: Dialect,
        cells: CellFormat,
        output: tuple[str, ...] | None = None,
    ) -> None:
        self.names, self.cells, self.dialect = names, cells, dialect
        self.wanted, self.output = tuple(wanted), output or names
        self.absent = {name for name in wanted if name not in names}
        self._read = [_find(name, names) for name in wanted]
        self._kept = [_find(name, names) for name in self.output]
        self._written = [_find(name, self.output) for name in wanted]

    def with_names(self, names: tuple[str, ...]) -> Delimited:
        """Return the layout for other columns of the input, with the same output."""
        return Delimited(names, self.wanted, self.dialect, self.cells, self.output)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns of the input that are not in the output."""
        return tuple(name for name in self.names if name not in self.output)

    def parse(self, line: str) -> Row:
        raw = split(line, self.dialect)
        if len(raw) != len(self.names):
            raise BadLine(f"{len(raw)} cells instead of {len(self.names)}")
        numbers: list[float] = []
        for j in self._read:
            try:
                cell = "" if j is None else self.dialect.unquote(raw[j])
                numbers.append(self.cells.value(self.wanted[len(numbers)], cell))
            except BadLine as error:
                raise BadLine(f"column {self.names[j or 0]}: {error}") from None
        return Row(numbers, ["" if j is None else raw[j] for j in self._kept])

    def render(self, row: Row, filled: Sequence[float], ends: Ends | None = None) -> str:
        raw = list(row.parts)
        for j, known, value in zip(self._written, row.numbers, filled, strict=True):
            if j is not None and math.isnan(known) and math.isfinite(value):
                raw[j] = self.dialect.refill(raw[j], self.cells.text(value))
        if ends is not None:
            raw += [
                "" if end is None else self.cells.text(end)
                for end in self.cells.ends(self, row, ends)
            ]
        return self.dialect.join(raw)


class JsonLines:
    """Lines that are JSON objects; a missing value is null, NaN or an absent key.

    Examples
    --------
    >>> layout = JsonLines(("a", "b", "c"), CellFormat())
    >>> row = layout.parse('{"id": "x", "b": 1.50, "a": null}')
    >>> row.numbers
    [nan, 1.5, nan]
    >>> layout.render(row, [0.5, 1.5, 3.0])
    '{"id": "x", "b": 1.5, "a": 0.5, "c": 3.0}'
    """

    def __init__(self, wanted: Sequence[str], cells: CellFormat) -> None:
        self.wanted, self.cells = tuple(wanted), cells
        self.absent: set[str] = set()

    def parse(self, line: str) -> Row:
        members = parse_object(line)
        if not members.keys() >= set(self.wanted):
            self.absent |= set(self.wanted) - members.keys()
        numbers = []
        for name in self.wanted:
            try:
                numbers.append(self.cells.json_value(name, members.get(name)))
            except BadLine as error:
                raise BadLine(f"key {name}: {error}") from None
        return Row(numbers, members)

    def render(self, row: Row, filled: Sequence[float], ends: Ends | None = None) -> str:
        members = dict(row.parts)
        for name, known, value in zip(self.wanted, row.numbers, filled, strict=True):
            if math.isnan(known) and math.isfinite(value):
                members[name] = float(format_numbers(np.array([value]), self.cells.digits)[0])
        if ends is not None:
            names = interval_names(self.wanted, self.cells.time)
            found = zip(names, self.cells.ends(self, row, ends), strict=True)
            members.update(
                (name, float(format_numbers(np.array([end]), self.cells.digits)[0]))
                for name, end in found
                if end is not None
            )
        return json.dumps(members, ensure_ascii=False)


def split(line: str, dialect: Dialect) -> list[str]:
    """Return the raw cells of a line without its end; raise BadLine."""
    if dialect.quote in line and dialect.leaves_open(line):
        raise BadLine("a quoted cell does not end on the line where it began")
    return dialect.split(line)[0]


def parse_object(line: str) -> dict[str, Any]:
    """Return the JSON object of a line; raise BadLine."""
    try:
        members = json.loads(line, object_pairs_hook=_make_object)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise BadLine(f"not a JSON object: {reason}") from None
    if not isinstance(members, dict):
        raise BadLine("not a JSON object")
    return members


def _find(name: str, names: Sequence[str]) -> int | None:
    return names.index(name) if name in names else None


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key occurs twice")
    return members


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 42 else text[:38] + "..." + text[-1]
