"""Numbers and missing values as they are written in cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hirank._typing import Array, BoolArray

__all__ = ["Missing", "Parsed", "is_number", "number", "parse", "whole_numbers"]

_WORDS = ("", "nan", "null", "na", "n/a", "none")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
_SIGNED_NAN = ("+nan", "-nan")
_HOPELESS = 0.5  # share of numbers below which a column is text, and not looked at any more
_STRAYS = 3


class Missing:
    """What stands for a missing value: words in any case, and numbers however they are written.

    Parameters
    ----------
    extra : strings and numbers, besides an empty cell, NaN, null, NA, N/A and None
    """

    def __init__(self, extra: Iterable[str | float] = ()) -> None:
        words, values = set(_WORDS), []
        for item in extra:
            text = str(item).strip()
            if is_number(text):
                values.append(float(text))
            words.add(text.casefold())
        self.words = frozenset(words)
        self.values = np.array(values)
        # The spellings seen most, for a test without changing the case of every cell.
        self.quick = frozenset(
            spelling
            for word in words
            for spelling in (word, word.upper(), word.capitalize(), "NaN", "N/a")
        )

    def word(self, cell: str) -> bool:
        """Whether a cell that is no number is missing."""
        text = cell.strip().casefold()
        return text in self.words or text in _SIGNED_NAN

    def remove(self, values: Array) -> Array:
        """NaN for the numbers that stand for a missing value, in place."""
        if self.values.size:
            values[np.isin(values, self.values)] = np.nan
        return values


@dataclass
class Parsed:
    """A column as numbers.

    Attributes
    ----------
    values : (n,) or None
        NaN = missing. None: too few of the cells are numbers.
    observed : int
        Cells that are not missing.
    strays : list of (row, cell)
        The first cells that are neither a number nor missing.
    n_strays : int
    whole : bool
        The numbers are all whole, and written so.
    """

    values: Array | None
    observed: int
    strays: list[tuple[int, str]] = field(default_factory=list)
    n_strays: int = 0
    whole: bool = False

    @property
    def hopeless(self) -> bool:
        """Too few numbers to go on looking."""
        return self.n_strays > (1 - _HOPELESS) * self.observed

    def follow(self, other: Parsed, shift: int) -> None:
        """Add the cells that come after; theirs is row 0 where ours is row `shift`.

        The values are left to the caller, who joins them once.
        """
        # An empty stretch says nothing about how the numbers of a column are written.
        if self.observed and other.observed:
            self.whole = self.whole and other.whole
        else:
            self.whole = self.whole or other.whole
        self.observed += other.observed
        self.n_strays += other.n_strays
        room = max(_STRAYS - len(self.strays), 0)
        self.strays += [(row + shift, cell) for row, cell in other.strays[:room]]


def is_number(text: str) -> bool:
    """Whether this is a finite number in decimal notation (no hex, no 1_000, no infinity)."""
    return _NUMBER.fullmatch(text) is not None and np.isfinite(float(text))


def number(cell: str, missing: Missing, decimal: str = ".") -> float | None:
    """The value of one cell: NaN if missing, None if it is no number."""
    text = cell
    if decimal == "," and "." not in text:
        text = text.replace(",", ".")
    elif decimal == ",":
        text = ""  # 1.234 may be a thousand: no number where a comma is the decimal sign
    if is_number(text):
        value = float(text)
        return np.nan if value in missing.values else value
    return np.nan if missing.word(cell) else None


def parse(cells: Sequence[str], missing: Missing, decimal: str = ".") -> Parsed:
    """The numbers of a column of text cells."""
    values = _quick(cells, missing, decimal)
    strays: list[tuple[int, str]] = []
    if values is None:
        found = [number(cell, missing, decimal) for cell in cells]
        strays = [(i, cells[i]) for i, value in enumerate(found) if value is None]
        values = np.array([np.nan if value is None else value for value in found])
    missing.remove(values)
    observed = int(np.count_nonzero(~np.isnan(values)))
    return Parsed(
        values,
        observed + len(strays),
        strays[:_STRAYS],
        len(strays),
        bool(observed) and not strays and _whole(cells, values, decimal),
    )


def _quick(cells: Sequence[str], missing: Missing, decimal: str) -> Array | None:
    """The values if Python's float understands all the cells, and nothing but what it should."""
    joined = "\0".join(cells)
    if not joined.isascii() or "_" in joined:
        return None
    if decimal == ",":
        if "." in joined:
            return None
        cells = joined.replace(",", ".").split("\0")
    words = missing.quick
    try:
        # Mostly a missing cell is an empty one, for which there is no need to look at all of them.
        values = np.array(list(map(float, [cell or "nan" for cell in cells])))
    except ValueError:
        try:
            values = np.array([np.nan if cell in words else float(cell) for cell in cells])
        except ValueError:
            return None
    return None if np.isinf(values).any() else values


def _whole(cells: Sequence[str], values: Array, decimal: str) -> bool:
    signs = (decimal, "e", "E")
    if values.size and not np.isnan(values).any():
        joined = "\0".join(cells)
        return not any(sign in joined for sign in signs)
    known = (~np.isnan(values)).tolist()
    return not any(known[i] and any(sign in cell for sign in signs) for i, cell in enumerate(cells))


def whole_numbers(values: Array) -> BoolArray:
    """Where a value is a whole number that a 64-bit integer holds exactly."""
    with np.errstate(invalid="ignore"):
        return np.isfinite(values) & (values == np.round(values)) & (np.abs(values) < 2.0**53)
