"""How the numbers of a column are written: marks between thousands, and a unit around them.

``$1,736.47``, ``24.434,03`` and ``12 %`` are numbers. A notation is taken only if all cells of a
column that are not missing follow it, with the same unit: of 5 kg and 5 g no number can be made.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

_THOUSANDS = ",.'\u2019 \u00a0\u202f"  # marks between groups of three digits
_BODY = re.compile(rf"[0-9](?:[0-9{_THOUSANDS}]*[0-9])?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_CODES = re.compile(
    "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW"
)
_UNITS = re.compile(
    "[%‰°K]|°[CF]|[kmµ]?g|[kcmµ]?m|t|lb|oz|mi|ft|in|m?[Ll]|h|min|m?s|[kM]?Wh?|m?[VA]|[kMG]?Hz|[hk]?Pa"
    "|m?bar|km/h|m/s|mph|pp[mb]|dB|lx"
)


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written, beside the decimal mark of the file.

    Attributes
    ----------
    thousands : str
        The mark between groups of three digits; empty if there is none.
    before, after : str
        The unit, with the spaces around it.

    Examples
    --------
    >>> from hirank.io.notation import Notation
    >>> euro = Notation(".", after=" €")
    >>> euro.plain("-24.434,03 €", decimal=","), euro.write("1736,5", decimal=",")
    ('-24434,03', '1.736,5 €')
    """

    thousands: str = ""
    before: str = ""
    after: str = ""

    @property
    def has_unit(self) -> bool:
        return bool(self.before or self.after)

    def plain(self, cell: str, decimal: str) -> str | None:
        """Return a cell without its unit and the marks of thousands; None if it does not fit."""
        found = self._patterns[decimal].fullmatch(cell)
        if found is None:
            return None
        first, second, number = found.group("first", "second", "number")
        if first and second:
            return None
        number = number.replace(self.thousands, "") if self.thousands else number
        return (first or second or "").replace("\u2212", "-") + number

    def write(self, text: str, decimal: str) -> str:
        """Return a number that is written without them in this notation."""
        if not text:
            return text
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        whole = re.match("[0-9]*", digits)
        n = whole.end() if whole else 0
        if self.thousands and "e" not in digits:
            digits = f"{int(digits[:n] or 0):,}".replace(",", self.thousands) + digits[n:]
        return f"{sign}{self.before}{digits}{self.after}"

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        """Return how cells look, by the decimal mark."""
        mark, before, after = map(
            re.escape, (self.thousands, self.before.strip(), self.after.strip())
        )
        sign = r"[+\-\u2212]?"
        patterns = {}
        for decimal in ".,":
            digits = rf"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[0-9]+" if mark else "[0-9]+"
            part = re.escape(decimal)
            number = rf"(?:(?:{digits})(?:{part}[0-9]*)?|{part}[0-9]+)(?:[eE][+-]?[0-9]+)?"
            patterns[decimal] = re.compile(
                rf"\s*(?P<first>{sign})\s?{before}\s?(?P<second>{sign})(?P<number>{number})"
                rf"\s?{after}\s*"
            )
        return patterns


PLAIN = Notation()


def detect_notation(cells: Iterable[str], decimal: str) -> Notation | None:
    """Return the notation that all cells follow; None if there is none, or it is not certain.

    Parameters
    ----------
    cells : iterable of str
        The cells of a column that are not missing.
    decimal : "." or ","
    """
    cells = set(cells)
    marks = {mark for cell in cells for mark in _marks_of_thousands(cell, decimal)}
    if not cells or len(marks) > 1:
        return None
    first = min(cells, key=lambda cell: (len(cell), cell))
    unit = _unit_around(first)
    if unit is None:
        return None
    notation = Notation(marks.pop() if marks else "", *unit)
    fits = all(notation.plain(cell, decimal) is not None for cell in cells)
    return notation if fits else None


def _marks_of_thousands(cell: str, decimal: str) -> set[str]:
    """Return the marks between digits of a number, other than the decimal mark."""
    body = _BODY.search(cell)
    return set() if body is None else set(body.group()) & (set(_THOUSANDS) - {decimal})


def _unit_around(cell: str) -> tuple[str, str] | None:
    """Return what is before and after the number of a cell; None if it is not a unit."""
    body = _BODY.search(cell)
    if body is None:
        return None
    before = cell[: body.start()].lstrip().lstrip("+-\u2212").rstrip("+-\u2212").lstrip()
    after = cell[body.end() :].rstrip()
    currency = not before.strip() or _is_currency(before.strip())
    unit = not after.strip() or _is_currency(after.strip()) or _UNITS.fullmatch(after.strip())
    if not currency or not unit or (before.strip() and after.strip()):
        return None  # other words may be names
    return (before if before.strip() else ""), (after if after.strip() else "")


def _is_currency(text: str) -> bool:
    """Return whether a text is the sign of a currency, as in US$, or its code."""
    sign = len(text) <= 3 and any(unicodedata.category(one) == "Sc" for one in text)
    return sign or _CODES.fullmatch(text) is not None
