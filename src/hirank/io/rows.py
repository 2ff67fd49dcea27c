"""Rows of a stream, one per line: CSV, whose observed cells keep their bytes, or JSON objects."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from hirank.io.cell_format import BadLine, CellFormat
from hirank.io.cells import format_numbers
from hirank.io.dialect import Dialect
from hirank.io.times import write_like


class Row(NamedTuple):
    """The numbers of the wanted columns of a line, NaN = missing, and the whole line in parts."""

    numbers: list[float]
    parts: Any
    label: str = ""  # of its group


Ends: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Lower and upper ends of intervals of the wanted columns of a row."""


STEP = "forecast"
"""The column of forecasts: how many steps ahead a row is, empty for rows of the input."""


def interval_names(wanted: Sequence[str], aside: Sequence[str | None]) -> tuple[str, ...]:
    """Return the names of two columns for each wanted one, but for those of times and groups."""
    names = [name for name in wanted if name not in aside]
    return tuple(f"{name} {end}" for name in names for end in ("lower", "upper"))


class Layout(Protocol):
    """How rows are written on lines."""

    wanted: tuple[str, ...]  # columns of the model, in its order
    absent: set[str]  # those that the input, or a row of it, lacks

    def parse(self, line: str) -> Row:
        """Return the row of a line without its end; raise BadLine."""

    def render(
        self, row: Row, filled: Sequence[float], ends: Ends | None = None, step: int | None = None
    ) -> str:
        """Return the line with imputed values; one that is not finite leaves the cell missing.

        With the ends of intervals, these come last: see `interval_names`; then the step of a
        forecast.
        """

    def blank(self, label: str, seconds: float) -> Row:
        """Return a row with nothing but the label of its group and its time, where there are."""


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
    has_steps : bool
        Whether lines end with the step of a forecast.

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
        *,
        has_steps: bool = False,
    ) -> None:
        self.names, self.cells, self.dialect, self.has_steps = names, cells, dialect, has_steps
        self.wanted, self.output = tuple(wanted), output or names
        self.absent = {name for name in wanted if name not in names}
        self._read = [_find(name, names) for name in wanted]
        self._kept = [_find(name, names) for name in self.output]
        self._written = [_find(name, self.output) for name in wanted]

    def with_names(self, names: tuple[str, ...]) -> Delimited:
        """Return the layout for other columns of the input, with the same output."""
        return self.like(names, self.output)

    def like(self, names: tuple[str, ...], output: tuple[str, ...]) -> Delimited:
        """Return the layout for other columns of input and output."""
        steps = self.has_steps
        return Delimited(names, self.wanted, self.dialect, self.cells, output, has_steps=steps)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Columns of the input that are not in the output."""
        return tuple(name for name in self.names if name not in self.output)

    def parse(self, line: str) -> Row:
        raw = split(line, self.dialect)
        if len(raw) != len(self.names):
            raise BadLine(f"{len(raw)} cells instead of {len(self.names)}")
        numbers: list[float] = []
        label = ""
        for name, j in zip(self.wanted, self._read, strict=True):
            try:
                cell = "" if j is None else self.dialect.unquote(raw[j])
                numbers.append(self.cells.value(name, cell))
                label = self.cells.label(cell) if name == self.cells.group else label
            except BadLine as error:
                raise BadLine(f"column {name}: {error}") from None
        return Row(numbers, ["" if j is None else raw[j] for j in self._kept], label)

    def blank(self, label: str, seconds: float) -> Row:
        known = {self.cells.group: label, self.cells.time: write_like(seconds, self.cells.date)}
        if self.cells.date is None and self.cells.time is not None:
            known[self.cells.time] = known[self.cells.time].replace(".", self.cells.decimal)
        cells = [self.dialect.enquote(known.get(name, "")) for name in self.output]
        return Row([0.0 if name in known else math.nan for name in self.wanted], cells, label)

    def render(
        self, row: Row, filled: Sequence[float], ends: Ends | None = None, step: int | None = None
    ) -> str:
        raw = list(row.parts)
        for j, known, value in zip(self._written, row.numbers, filled, strict=True):
            if j is not None and math.isnan(known) and math.isfinite(value):
                raw[j] = self.dialect.refill(raw[j], self.cells.text(value))
        if ends is not None:
            raw += [
                "" if end is None else self.cells.text(end) for end in _list_ends(self, row, ends)
            ]
        raw += ["" if step is None else str(step)] if self.has_steps else []
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
        numbers, label = [], ""
        for name in self.wanted:
            try:
                numbers.append(self.cells.json_value(name, members.get(name)))
                label = self.cells.label(members.get(name)) if name == self.cells.group else label
            except BadLine as error:
                raise BadLine(f"key {name}: {error}") from None
        return Row(numbers, members, label)

    def blank(self, label: str, seconds: float) -> Row:
        time = write_like(seconds, self.cells.date)
        known = {
            self.cells.group: json.loads(label) if self.cells.has_number_labels else label,
            self.cells.time: time if self.cells.date else json.loads(time),
        }
        numbers = [0.0 if name in known else math.nan for name in self.wanted]
        members = {name: known[name] for name in self.wanted if name in known}
        return Row(numbers, members, label)

    def render(
        self, row: Row, filled: Sequence[float], ends: Ends | None = None, step: int | None = None
    ) -> str:
        members = dict(row.parts)
        for name, known, value in zip(self.wanted, row.numbers, filled, strict=True):
            if math.isnan(known) and math.isfinite(value):
                members[name] = float(format_numbers(np.array([value]), self.cells.digits)[0])
        if ends is not None:
            names = interval_names(self.wanted, self.cells.aside)
            found = zip(names, _list_ends(self, row, ends), strict=True)
            members.update(
                (name, float(format_numbers(np.array([end]), self.cells.digits)[0]))
                for name, end in found
                if end is not None
            )
        if step is not None:
            members[STEP] = step
        return json.dumps(members, ensure_ascii=False)


def _list_ends(layout: Delimited | JsonLines, row: Row, ends: Ends) -> list[float | None]:
    """Return the ends of the intervals of a row, in the order of `interval_names`.

    None where the value is known or nothing is known of it.
    """
    parts = zip(layout.wanted, row.numbers, *ends, strict=True)
    return [
        end if math.isnan(number) and math.isfinite(end) else None
        for name, number, *both in parts
        if name not in layout.cells.aside
        for end in both
    ]


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
