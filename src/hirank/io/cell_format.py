"""Cells of a stream as numbers, times, labels or missing values, and imputed values as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hirank.io.cells import Missing, format_numbers, is_number, parse_number
from hirank.io.times import read_iso_seconds


class BadLine(ValueError):
    """A line that is not a row; the message states why."""


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
    group : str, optional
        The column with the labels of groups.

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
        group: str | None = None,
    ) -> None:
        self.missing, self.decimal, self.digits = Missing(missing), decimal, digits
        self.time, self.group = time, group
        self.date: str | None = None  # the last time that was one
        self.has_number_labels = False  # whether the last label was a number of JSON

    @property
    def aside(self) -> tuple[str | None, str | None]:
        """The columns of times and groups, which are not imputed."""
        return self.time, self.group

    def value(self, column: str, cell: str) -> float:
        """Return the value of a cell of a column, NaN if missing; raise BadLine."""
        return self._value(column, cell, self.number)

    def json_value(self, key: str, value: Any) -> float:
        """Return the value of a member of an object, NaN if missing; raise BadLine."""
        return self._value(key, value, self.json_number)

    def _value(self, column: str, cell: Any, number: Callable[[Any], float]) -> float:
        if column == self.group:
            return math.nan
        try:
            return number(cell)
        except BadLine:
            if column != self.time:
                raise
        try:
            seconds, _ = read_iso_seconds(cell)
        except (ValueError, AttributeError):
            raise BadLine(f"{_shorten(cell)} is neither a number nor an ISO date") from None
        self.date = cell
        return seconds

    def label(self, value: Any) -> str:
        """Return the label of a group, a cell or a JSON value; raise BadLine if there is none."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(value):
            self.has_number_labels = True
            return f"{int(value)}" if int(value) == value else repr(value)
        if value is not None and not isinstance(value, str | float):
            raise BadLine(f"{_shorten(value)} is neither text nor a number")
        text = value.strip() if isinstance(value, str) else ""
        if not text or self.missing.matches(text):
            raise BadLine("it has no label, so it is not known which group the row is from")
        self.has_number_labels = False
        return text

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

    def text(self, value: float) -> str:
        """Return an imputed value as it is written."""
        return format_numbers(np.array([value]), self.digits, self.decimal)[0]


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 42 else text[:38] + "..." + text[-1]
