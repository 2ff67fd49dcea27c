"""The tokenizer of text tables: delimiter, quotes and decimal mark, and how they are detected.

Files and streams (``hirank stream``) use it. A raw cell keeps its bytes, quotes and spaces
included, which no CSV library does: so observed cells are written as they were read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from hirank.exceptions import ParameterError

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE = 100  # rows from which a dialect is detected
_LONG = 1 << 16  # characters; a shorter head is the whole file
_TOKEN = re.compile(r"[ \t]*[^ \t]+")
# Numbers, with a unit or not, that show the decimal mark; 1.234 and 1,234 may also be thousands.
_AROUND = r"[^0-9.,]{0,5}"
_NUMBER = r"(?:[0-9]*|[0-9]{1,3}(?:%s[0-9]{3})+)%s[0-9]+(?:[eE][+-]?[0-9]+)?"
_COMMA_NUMBER = re.compile(_AROUND + _NUMBER % (r"[. ]", ",") + _AROUND)
_POINT_NUMBER = re.compile(_AROUND + _NUMBER % ("[, ]", r"\.") + _AROUND)
_GROUPED = re.compile(rf"{_AROUND}[1-9][0-9]{{0,2}}(?:[.,][0-9]{{3}})+{_AROUND}")


class _Patterns(NamedTuple):
    quoted: re.Pattern[str]  # a text in quotes
    cell: re.Pattern[str]  # a raw cell
    closed: re.Pattern[str]  # a line at whose end no quote is open
    closing: re.Pattern[str]  # a cell whose quote was opened in an earlier line


@dataclass(frozen=True)
class Dialect:
    r"""The marks of a text table.

    A record is a row with its line end, and with the line breaks inside quotes. A raw cell is what
    is between two delimiters, quotes and spaces included: the raw cells joined give the record.

    Attributes
    ----------
    delimiter : str
    quote : str
        A quote inside quotes is doubled. Only a quote right after a delimiter opens.
    decimal : "." or ","
    newline : str
    spaces : bool
        Cells are separated by any number of spaces and tabs; no quotes.

    Examples
    --------
    >>> from hirank.io.dialect import Dialect
    >>> Dialect().split('"x, y",1.50,\n')
    (['"x, y"', '1.50', ''], '\n')
    >>> Dialect().cells('"x, y",1.50,\n')
    ['x, y', '1.50', '']
    """

    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    newline: str = "\n"
    spaces: bool = False

    def split(self, record: str) -> tuple[list[str], str]:
        """Return the raw cells of a record, and its end."""
        content = record.rstrip(" \t\r\n" if self.spaces else "\r\n")
        end = record[len(content) :]
        if self.spaces:
            return _TOKEN.findall(content), end
        if self.quote in content:
            return self._patterns.cell.findall(content), end
        return content.split(self.delimiter), end

    def cells(self, record: str) -> list[str]:
        """Return the cells of a record, without their quotes."""
        raw, _ = self.split(record)
        if self.spaces:
            return [cell.strip() for cell in raw]
        return [self.unquote(cell) for cell in raw] if self.quote in record else raw

    def unquote(self, raw: str) -> str:
        """Return the text of a raw cell."""
        found = self._patterns.quoted.match(raw)
        if found is None:
            return raw
        # What follows the closing quote belongs to the cell, as in Python's csv module.
        inside = raw[1 : found.end() - 1].replace(self.quote * 2, self.quote)
        return inside + raw[found.end() :]

    def refill(self, raw: str, text: str) -> str:
        """Return a raw cell with another text: quoted as before, or where it needs quotes."""
        if self.spaces:
            return raw[: len(raw) - len(raw.lstrip())] + self.enquote(text)  # at the same place
        quoted = raw.startswith(self.quote) or self.delimiter in text
        return f"{self.quote}{text}{self.quote}" if quoted else text

    def enquote(self, text: str) -> str:
        """Return a raw cell for any text, in quotes where it needs them."""
        if self.spaces:
            return re.sub(r"\s+", "_", text) or "NaN"
        marks = (self.delimiter, self.quote, "\n", "\r")
        if any(mark in text for mark in marks) or text != text.strip():
            return self.quote + text.replace(self.quote, self.quote * 2) + self.quote
        return text

    def join(self, raw: Sequence[str]) -> str:
        """Return a record without its end."""
        return ("" if self.spaces else self.delimiter).join(raw)

    def append(self, record: str, texts: Sequence[str]) -> str:
        """Return a record with more raw cells at its end."""
        content = record.rstrip(" \t\r\n" if self.spaces else "\r\n")
        if self.spaces:
            texts = [text or "NaN" for text in texts]
        tail = "".join(self.delimiter + text for text in texts)
        return content + tail + record[len(content) :]

    def leaves_open(self, line: str, inside: bool = False) -> bool:
        """Return whether a quote is open at the end of a line, if one was (or not) at its start."""
        if self.spaces:
            return False
        start = 0
        if inside:
            found = self._patterns.closing.match(line)
            if found is None:
                return True
            start = found.end()
            if start == len(line):
                return False
            start += 1  # the delimiter
        return self._patterns.closed.match(line, start) is None

    @cached_property
    def _patterns(self) -> _Patterns:
        q, d = re.escape(self.quote), re.escape(self.delimiter)
        rest = f"[^{q}]*+(?:{q}{q}[^{q}]*+)*+{q}"  # of a quoted text, up to its last quote
        cell = f"(?:{q}{rest}[^{d}]*+|(?!{q})[^{d}]*+)"
        closed = rf"{cell}(?:{d}{cell})*+\Z"
        sources = (f"{q}{rest}", rf"(?:\A|{d})({cell})", closed, f"{rest}[^{d}]*+")
        return _Patterns(*map(re.compile, sources))


def check_delimiter(delimiter: str | None, decimal: str = "") -> None:
    """Raise ParameterError unless this can separate cells; None is to be detected."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' + decimal):
        raise ParameterError(
            "delimiter",
            "must be one character, and not a quote, a line break or the decimal mark; got "
            f"{delimiter!r}.",
        )


def detect_dialect(
    head: str, *, delimiter: str | None = None, newline: str = "\n", spaces: bool = False
) -> Dialect:
    """Return the dialect of a text table, from its first lines.

    Parameters
    ----------
    head : str
        Starts with the first row; may end within a row.
    delimiter : str, optional
        If it is known; a space stands for any number of spaces.
    newline : str
    spaces : bool
        Whether spaces may separate cells.
    """
    lines = head.split(newline)
    if len(lines) > 1:
        lines = lines[: -1 if len(head) > _LONG else None][: 4 * _SAMPLE]
    lines = [line.rstrip("\r") for line in lines if line.rstrip("\r")]
    first = lines[0] if lines else ""
    single = '"' not in first and len(first) > 1 and first[0] == first[-1] == "'"
    dialect = Dialect(quote="'" if single else '"', newline=newline)
    if delimiter is not None:
        dialect = replace(dialect, delimiter=delimiter, spaces=delimiter == " ")
    else:
        dialect = _detect_delimiter(dialect, lines, spaces)
    comma = _has_decimal_comma([cell for row in _rows(dialect, lines) for cell in row], dialect)
    return replace(dialect, decimal=",") if comma else dialect


def _has_decimal_comma(cells: Sequence[str], dialect: Dialect) -> bool:
    """Return whether numbers have a decimal comma: some must, and none a decimal point.

    Groups of three digits may be thousands. Where semicolons separate cells, and there is nothing
    else to see, a comma before them is the decimal mark.
    """
    commas = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    points = [cell for cell in cells if _POINT_NUMBER.fullmatch(cell)]
    sure = [cell for cell in commas if not _GROUPED.fullmatch(cell)]
    if not sure:
        return dialect.delimiter == ";" and bool(commas) and not points
    return all(_GROUPED.fullmatch(cell) for cell in points)


def _detect_delimiter(dialect: Dialect, lines: Sequence[str], spaces: bool) -> Dialect:
    """Select the delimiter that gives the most columns, the same number in all rows."""
    spaced = replace(dialect, spaces=True, delimiter=" ")
    widths = {len(row) for row in _rows(spaced, lines)} if spaces else set()
    by_spaces = len(widths) == 1 and widths != {1}
    found = []
    for mark in _DELIMITERS:
        candidate = replace(dialect, delimiter=mark)
        rows = _rows(candidate, lines)
        width = len(rows[0]) if rows else 1
        # A tab may follow the last number of each line, as MATLAB writes it.
        if width == 1 or (by_spaces and mark == "\t" and not any(row[-1] for row in rows)):
            continue
        found.append((all(len(row) == width for row in rows), width, candidate))
    even, _, best = max(found, key=lambda one: one[:2], default=(False, 1, dialect))
    return spaced if by_spaces and not even else best


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
