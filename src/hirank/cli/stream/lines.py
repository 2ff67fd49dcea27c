"""Rows of a stream, one a line: CSV or JSON, read and written so that only holes change."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple, Protocol

import numpy as np

from hirank.io.cells import Missing, is_number, number
from hirank.io.text_output import as_text

DELIMITERS = ",;\t|"
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class BadLine(ValueError):
    """A line that is no row; the message says why."""


class Row(NamedTuple):
    """What a line says: the numbers of the wanted columns, NaN = missing, and its own text."""

    numbers: list[float]
    parts: Any


class Layout(Protocol):
    """How rows are written on lines."""

    wanted: tuple[str, ...]  # columns of the model, in its order

    def parse(self, line: str) -> Row:
        """What a line without its end says; raises BadLine."""

    def render(self, row: Row, filled: Sequence[float]) -> str:
        """The line with holes filled; a fill that is no number leaves the hole."""


class Cells:
    """What cells mean: numbers, or words and numbers that stand for a missing value.

    Parameters
    ----------
    missing : words
        Besides empty cells, NaN, null, NA, N/A and None. "-200" stands for "-200.0" as well.
    decimal : {".", ","}
    digits : int, optional
        Significant digits of fills; by default as many as single precision has.
    """

    def __init__(
        self, missing: Iterable[str] = (), decimal: str = ".", digits: int | None = None
    ) -> None:
        self.decimal, self.digits = decimal, digits
        self.missing = Missing(missing)

    def number(self, text: str) -> float:
        """What a cell says, NaN if it is missing; raises BadLine if it is no number."""
        value = number(text, self.missing, self.decimal)
        if value is None:
            comma = self.decimal == "." and is_number(text.replace(",", "."))
            raise BadLine(f"{_short(text)} is not a number" + (" (--decimal ,?)" if comma else ""))
        return value

    def checked(self, value: float, text: str) -> float:
        """A number that stands there as `text`; NaN if it stands for a missing value."""
        if not math.isfinite(value):
            raise BadLine(f"{_short(text)} is not finite")
        return math.nan if value in self.missing.values else value

    def text(self, value: float) -> str:
        """A fill as it is written."""
        return as_text(np.array([value]), self.digits, self.decimal)[0]


class Delimited:
    """Lines of cells with a delimiter between. A cell in quotes can't go over several lines.

    Examples
    --------
    >>> layout = Delimited(("id", "a", "b"), ("b", "a"), ",", Cells())
    >>> row = layout.parse('"x, y",1.50,')
    >>> row.numbers
    [nan, 1.5]
    >>> layout.render(row, [2.25, 1.5])
    '"x, y",1.50,2.25'
    """

    def __init__(
        self, names: tuple[str, ...], wanted: Sequence[str], delimiter: str, cells: Cells
    ) -> None:
        self.names, self.cells, self.delimiter = names, cells, delimiter
        self.wanted = tuple(wanted)
        self.places = [names.index(name) for name in wanted]

    def parse(self, line: str) -> Row:
        fields = split(line, self.delimiter)
        if len(fields) != len(self.names):
            raise BadLine(f"{len(fields)} cells instead of {len(self.names)}")
        numbers = []
        for j in self.places:
            try:
                numbers.append(self.cells.number(plain(fields[j])))
            except BadLine as error:
                raise BadLine(f"column {self.names[j]}: {error}") from None
        return Row(numbers, fields)

    def render(self, row: Row, filled: Sequence[float]) -> str:
        fields = list(row.parts)
        for j, known, fill in zip(self.places, row.numbers, filled, strict=True):
            if math.isnan(known) and math.isfinite(fill):
                fields[j] = self.cells.text(fill)
        return self.delimiter.join(fields)


class JsonLines:
    """Lines that are JSON objects; a missing value is null, NaN or an absent key.

    Examples
    --------
    >>> layout = JsonLines(("a", "b", "c"), Cells())
    >>> row = layout.parse('{"id": "x", "b": 1.50, "a": null}')
    >>> row.numbers
    [nan, 1.5, nan]
    >>> layout.render(row, [0.5, 1.5, 3.0])
    '{"id": "x", "b": 1.50, "a": 0.5, "c": 3.0}'
    """

    def __init__(self, wanted: Sequence[str], cells: Cells) -> None:
        self.wanted, self.cells = tuple(wanted), cells
        self.places = {name: j for j, name in enumerate(wanted)}

    def parse(self, line: str) -> Row:
        numbers = [math.nan] * len(self.wanted)
        spans: dict[int, tuple[int, int]] = {}
        members, end = members_of(line)
        for key, value, start, stop in members:
            j = self.places.get(key)
            if j is None:
                continue
            if j in spans:
                raise BadLine(f"the key {_short(key)} is there twice")
            spans[j] = (start, stop)
            try:
                numbers[j] = self.number(value, line[start:stop])
            except BadLine as error:
                raise BadLine(f"key {key}: {error}") from None
        return Row(numbers, (line, spans, end, bool(members)))

    def number(self, value: Any, text: str) -> float:
        """What a value says that stands there as `text`."""
        if value is None:
            return math.nan
        if isinstance(value, str) and self.cells.missing.word(value):
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadLine(f"{_short(text)} is not a number")
        if isinstance(value, float) and math.isnan(value):
            return math.nan
        try:
            return self.cells.checked(float(value), text)
        except OverflowError:
            raise BadLine(f"{_short(text)} is too large") from None

    def render(self, row: Row, filled: Sequence[float]) -> str:
        line, spans, end, more = row.parts
        added = []
        changed: list[tuple[int, int, str]] = []
        for j, (known, fill) in enumerate(zip(row.numbers, filled, strict=True)):
            if not math.isnan(known) or not math.isfinite(fill):
                continue
            text = self.cells.text(fill)
            if j in spans:
                changed.append((*spans[j], text))
            else:
                added.append(f"{json.dumps(self.wanted[j], ensure_ascii=False)}: {text}")
        if added:
            changed.append((end, end, (", " if more else "") + ", ".join(added)))
        for start, stop, text in sorted(changed, reverse=True):
            line = line[:start] + text + line[stop:]
        return line


def split(line: str, delimiter: str) -> list[str]:
    """The cells of a line as they stand, quotes and all."""
    if '"' not in line:
        return line.split(delimiter)
    fields, start = [], 0
    while True:
        stop = _end_of_quotes(line, start) if line.startswith('"', start) else start
        end = line.find(delimiter, stop)
        end = len(line) if end < 0 else end
        if stop > start and line[stop:end].strip():
            raise BadLine(f"{_short(line[stop:end])} after the end of a quoted cell")
        fields.append(line[start:end])
        if end == len(line):
            return fields
        start = end + len(delimiter)


def _end_of_quotes(line: str, start: int) -> int:
    at = start + 1
    while True:
        at = line.find('"', at) + 1
        if not at:
            raise BadLine("a quoted cell does not end on the line where it began")
        if not line.startswith('"', at):
            return at
        at += 1


def plain(field: str) -> str:
    """A cell without its quotes."""
    if field.startswith('"'):
        return field.rstrip()[1:-1].replace('""', '"')
    return field


def delimiter_of(header: str) -> str:
    """The delimiter that cuts a line in most cells."""

    def cells(delimiter: str) -> int:
        try:
            return len(split(header, delimiter))
        except BadLine:
            return 0

    return max(DELIMITERS, key=cells)


def members_of(line: str) -> tuple[list[tuple[str, Any, int, int]], int]:
    """Keys and values of a JSON object and where the values stand; and where the last one ends."""
    try:
        return _members(line)
    except (json.JSONDecodeError, StopIteration, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "not JSON"
        raise BadLine(f"not a JSON object: {reason}") from None
    except ValueError as error:  # whole numbers with thousands of digits
        raise BadLine(f"not a JSON object: {error}") from None


def _members(line: str) -> tuple[list[tuple[str, Any, int, int]], int]:
    end = at = _skip(line, _after("{", line, 0))
    members: list[tuple[str, Any, int, int]] = []
    more = not line.startswith("}", at)
    while more:
        key, at = scanstring(line, _after('"', line, at), True)
        start = _skip(line, _after(":", line, at))
        value, end = _DECODER.raw_decode(line, start)
        members.append((key, value, start, end))
        at = _skip(line, end)
        more = line.startswith(",", at)
        at += more
    if _skip(line, _after("}", line, at)) != len(line):
        raise json.JSONDecodeError("there is more after its end", line, at)
    return members, end


def _after(character: str, line: str, at: int) -> int:
    at = _skip(line, at)
    if not line.startswith(character, at):
        raise json.JSONDecodeError(f"{character} expected at character {at + 1}", line, at)
    return at + 1


def _skip(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    assert match is not None
    return match.end()


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
