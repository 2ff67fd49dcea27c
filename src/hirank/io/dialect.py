"""How a text table is written: its delimiter, quotes and decimal sign, and how they are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

__all__ = ["COMMA", "Dialect", "sniff"]

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 100
_LONG = 1 << 16  # a head shorter than this is the whole file
_TOKEN = re.compile(r"[ \t]*[^ \t]+")
_COMMA_NUMBER = re.compile(r"\s*[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
_POINT_NUMBER = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)


@dataclass(frozen=True)
class Dialect:
    """The marks of a text table.

    A record is a row with its line end, and with the line breaks inside quotes. A raw cell is what
    stands between two delimiters, quotes and spaces included: the raw cells joined give the record.

    Attributes
    ----------
    delimiter : str
    quote : str
        A quote inside quotes is doubled. Only a quote right after a delimiter opens.
    decimal : "." or ","
    newline : str
    spaces : bool
        Cells are separated by any number of spaces and tabs; no quotes.
    """

    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    newline: str = "\n"
    spaces: bool = False

    def parts(self, record: str) -> tuple[list[str], str]:
        """The raw cells of a record, and its end."""
        content = record.rstrip(" \t\r\n" if self.spaces else "\r\n")
        end = record[len(content) :]
        if self.spaces:
            return _TOKEN.findall(content), end
        if self.quote in content:
            return self._cell.findall(content), end
        return content.split(self.delimiter), end

    def cells(self, record: str) -> list[str]:
        """The cells of a record, without their quotes."""
        raw, _ = self.parts(record)
        if self.spaces:
            return [cell.strip() for cell in raw]
        if self.quote in record:
            return [self.unquoted(cell) for cell in raw]
        return raw

    def unquoted(self, raw: str) -> str:
        if not raw.startswith(self.quote):
            return raw
        found = self._quoted.match(raw)
        if found is None:
            return raw
        # What follows the closing quote belongs to the cell, as in Python's csv module.
        inside = raw[1 : found.end() - 1].replace(self.quote * 2, self.quote)
        return inside + raw[found.end() :]

    def instead(self, raw: str, text: str) -> str:
        """The raw cell with another text in it: quoted if it was, in its place between spaces."""
        if self.spaces:
            return raw[: len(raw) - len(raw.lstrip())] + text
        if raw.startswith(self.quote):
            return f"{self.quote}{text}{self.quote}"
        return text

    def quoted(self, text: str) -> str:
        """A raw cell for any text, in quotes where it needs them."""
        marks = (self.delimiter, self.quote, "\n", "\r")
        if self.spaces:
            return re.sub(r"\s+", "_", text) or "NaN"
        if any(mark in text for mark in marks) or text != text.strip():
            return self.quote + text.replace(self.quote, self.quote * 2) + self.quote
        return text

    def join(self, raw: Sequence[str]) -> str:
        return ("" if self.spaces else self.delimiter).join(raw)

    def leaves_open(self, line: str, inside: bool) -> bool:
        """Whether a quote is open at the end of a line, if one was open (or not) at its start."""
        if self.spaces:
            return False
        start = 0
        if inside:
            found = self._closing.match(line)
            if found is None:
                return True
            start = found.end()
            if start == len(line):
                return False
            start += 1  # the delimiter
        return self._closed.match(line, start) is None

    @cached_property
    def _patterns(self) -> tuple[str, str]:
        q, d = re.escape(self.quote), re.escape(self.delimiter)
        quoted = f"{q}[^{q}]*+(?:{q}{q}[^{q}]*+)*+{q}"
        return quoted, f"(?:{quoted}[^{d}]*+|(?!{q})[^{d}]*+)"

    @cached_property
    def _quoted(self) -> re.Pattern[str]:
        return re.compile(self._patterns[0])

    @cached_property
    def _cell(self) -> re.Pattern[str]:
        return re.compile(rf"(?:\A|{re.escape(self.delimiter)})({self._patterns[1]})")

    @cached_property
    def _closed(self) -> re.Pattern[str]:
        cell = self._patterns[1]
        return re.compile(rf"{cell}(?:{re.escape(self.delimiter)}{cell})*+\Z")

    @cached_property
    def _closing(self) -> re.Pattern[str]:
        q, d = re.escape(self.quote), re.escape(self.delimiter)
        return re.compile(f"[^{q}]*+(?:{q}{q}[^{q}]*+)*+{q}[^{d}]*+")


COMMA = Dialect()


def sniff(head: str, *, delimiter: str | None, newline: str, whitespace: bool) -> Dialect:
    """The dialect of a text table, from its first lines.

    Parameters
    ----------
    head : str
        Starts with the first row; may end within a row.
    delimiter : str, optional
        If it is known; a space stands for any number of spaces.
    newline : str
    whitespace : bool
        Whether spaces may separate cells.
    """
    lines = head.split(newline)
    if len(lines) > 1:
        lines = lines[: -1 if len(head) > _LONG else None][: 4 * _SAMPLE]
    lines = [line.rstrip("\r") for line in lines if line.rstrip("\r")]
    first = lines[0] if lines else ""
    quoted = '"' not in first and len(first) > 1 and first[0] == first[-1] == "'"
    dialect = Dialect(quote="'" if quoted else '"', newline=newline)
    if delimiter == " ":
        dialect = replace(dialect, spaces=True, delimiter=" ")
    elif delimiter is not None:
        dialect = replace(dialect, delimiter=delimiter)
    else:
        dialect = _best(dialect, lines, whitespace)
    if dialect.delimiter == ";":
        cells = [cell for row in _rows(dialect, lines) for cell in row]
        if any(map(_COMMA_NUMBER.fullmatch, cells)) and not any(
            map(_POINT_NUMBER.fullmatch, cells)
        ):
            dialect = replace(dialect, decimal=",")
    return dialect


def _best(dialect: Dialect, lines: Sequence[str], whitespace: bool) -> Dialect:
    """The delimiter that gives the most columns, the same number in all the rows."""
    spaces = replace(dialect, spaces=True, delimiter=" ")
    widths = {len(row) for row in _rows(spaces, lines)} if whitespace else set()
    spaced = len(widths) == 1 and widths != {1}
    ranked = []
    for mark in _DELIMITERS:
        candidate = replace(dialect, delimiter=mark)
        rows = _rows(candidate, lines)
        if not rows or len(rows[0]) == 1:
            continue
        if spaced and mark == "\t" and not any(row[-1] for row in rows):
            continue  # a tab after the last number of each line, as MATLAB writes it
        same = all(len(row) == len(rows[0]) for row in rows)
        ranked.append((same, len(rows[0]), candidate))
    even = [entry for entry in ranked if entry[0]]
    if even or (ranked and not spaced):
        return max(even or ranked, key=lambda entry: entry[1])[2]
    return spaces if spaced else dialect


def _rows(dialect: Dialect, lines: Sequence[str]) -> list[list[str]]:
    rows, record, inside = [], "", False
    for line in lines:
        record = f"{record}{dialect.newline}{line}" if inside else line
        inside = dialect.leaves_open(line, inside)
        if not inside:
            rows.append(dialect.cells(record))
            if len(rows) == _SAMPLE:
                break
    return rows
