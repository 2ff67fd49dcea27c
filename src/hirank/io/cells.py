"""Numbers and missing values in cells: how they are recognized, and how numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.io.notation import PLAIN, Notation, detect_notation

_WORDS = ("", "nan", "null", "na", "n/a", "none", "+nan", "-nan")
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
_DIGITS = re.compile(r"\s*[+-]?[0-9]{1,400}\s*", re.ASCII)
_MAX_REPORTED = 3  # invalid cells of a column that are reported
_MIN_NUMBERS = 0.5  # a column with a lower share of numbers is text, and is not parsed further


class Missing:
    """What marks a missing value: words in any case, and numbers in any notation.

    Parameters
    ----------
    markers : strings and numbers, in addition to an empty cell, NaN, null, NA, N/A and None
    """

    def __init__(self, markers: Iterable[str | float] = ()) -> None:
        texts = [str(marker).strip() for marker in markers]
        self.numbers = frozenset(Decimal(text) for text in texts if is_number(text))
        self.values = np.array([float(number) for number in self.numbers])
        self.words = frozenset(_WORDS) | {text.casefold() for text in texts}
        # The most frequent spellings: a test that needs no change of case for every cell.
        self.spellings = frozenset(
            spelling
            for word in self.words
            for spelling in (word, word.upper(), word.capitalize(), "NaN")
        )

    def matches(self, cell: str) -> bool:
        """Return whether a cell that is not a number is missing."""
        return cell.strip().casefold() in self.words

    def find(self, values: NDArray[Any]) -> BoolArray:
        """Return where numbers are equal to a marker, compared in their own type."""
        if not self.numbers:
            return np.zeros(values.shape, dtype=bool)
        markers: list[float]
        if values.dtype.kind == "f":
            limit = float(np.finfo(values.dtype).max)
            markers = [float(one) for one in self.numbers if abs(one) <= limit]
        else:
            least, most = int(np.iinfo(values.dtype).min), int(np.iinfo(values.dtype).max)
            markers = [int(one) for one in self.numbers if least <= one <= most and one % 1 == 0]
        return np.isin(values, np.array(markers, dtype=values.dtype))

    def marks(self, text: str) -> bool:
        """Return whether a text that is a number is a marker, whatever its notation."""
        return Decimal(text) in self.numbers


@dataclass
class Column:
    """The cells of a column as numbers.

    Attributes
    ----------
    values : (n,) or None
        NaN = missing. None if too few of the cells are numbers.
    n_observed : int
        Cells that are not missing.
    invalid : list of (row or line, cell)
        The first cells that are neither a number nor missing.
    n_invalid : int
    whole : bool
        The numbers are all whole, and written so.
    """

    values: Array | None
    n_observed: int = 0
    invalid: list[tuple[int, str]] = field(default_factory=list)
    n_invalid: int = 0
    whole: bool = False

    @property
    def is_text(self) -> bool:
        """Whether so few cells are numbers that the others need not be parsed."""
        return self.n_invalid > (1 - _MIN_NUMBERS) * self.n_observed

    def extend(self, other: Column, offset: int = 0) -> None:
        """Add the counts of cells that follow; their row 0 is row `offset` here.

        The values are left to the caller, who joins them once.
        """
        # A part without observed cells does not show how the numbers of a column are written.
        if self.n_observed and other.n_observed:
            self.whole = self.whole and other.whole
        else:
            self.whole = self.whole or other.whole
        self.n_observed += other.n_observed
        self.n_invalid += other.n_invalid
        room = max(_MAX_REPORTED - len(self.invalid), 0)
        self.invalid += [(row + offset, cell) for row, cell in other.invalid[:room]]


def is_number(text: str) -> bool:
    """Return whether this is a finite decimal number (not hex, 1_000 or infinity)."""
    return _NUMBER.fullmatch(text) is not None and np.isfinite(float(text))


def contain_only_numbers(cells: Sequence[str], missing: Missing, decimal: str = ".") -> bool:
    """Return whether all cells that are not missing are numbers, which column names are not."""
    found = [parse_number(cell, missing, decimal) for cell in cells if not missing.matches(cell)]
    return bool(found) and None not in found


def parse_number(cell: str, missing: Missing, decimal: str = ".") -> float | None:
    """Return the value of one cell: NaN if missing, None if not a number."""
    # With a decimal comma, 1.234 may be a thousand: it is not taken for a number.
    text = cell if decimal == "." else "" if "." in cell else cell.replace(",", ".")
    if is_number(text):
        value = float(text)
        # Double precision would make one number of several that are large or have many digits.
        return np.nan if value in missing.values and missing.marks(text) else value
    return np.nan if missing.matches(cell) else None


def check_numbers(values: Array, *, whole: bool) -> Column:
    """Return a column of numbers, NaN = missing, in which only infinite values are invalid."""
    infinite = np.flatnonzero(np.isinf(values))
    n_observed = int(np.count_nonzero(~np.isnan(values)))
    invalid = [(int(i), str(values[i])) for i in infinite[:_MAX_REPORTED]]
    return Column(values, n_observed, invalid, len(infinite), whole and n_observed > 0)


def collect_numbers(found: Sequence[float | None], cells: Sequence[object]) -> Column:
    """Return a column of parsed cells, of which those that are None are invalid."""
    invalid = [(i, str(cells[i])) for i, value in enumerate(found) if value is None]
    values = np.array([np.nan if value is None else value for value in found], dtype=float)
    n_observed = int(np.count_nonzero(~np.isnan(values))) + len(invalid)
    return Column(values, n_observed, invalid[:_MAX_REPORTED], len(invalid))


def parse_column(
    cells: Sequence[str], missing: Missing, decimal: str = ".", notation: Notation = PLAIN
) -> Column:
    """Return the numbers of a column of text cells, all written in one notation."""
    values = _parse_plain(cells, missing, decimal) if notation == PLAIN else None
    if values is not None:
        _remove_markers(values, cells, missing, decimal)
        column = check_numbers(values, whole=False)
    else:
        found = [_parse_cell(cell, missing, decimal, notation) for cell in cells]
        column = collect_numbers(found, cells)
    if column.values is not None and column.n_observed and not column.n_invalid:
        known = ~np.isnan(column.values)
        texts = cells if known.all() else [cells[i] for i in np.flatnonzero(known).tolist()]
        if notation.has_unit:
            texts = [notation.plain(text, decimal) or "" for text in texts]
        joined = "\0".join(texts)
        column.whole = not any(mark in joined for mark in (decimal, "e", "E"))
    return column


def find_notation(cells: Iterable[str], missing: Missing, decimal: str) -> Notation | None:
    """Return the notation of the cells that are not missing; None if they have none in common."""
    observed = (cell for cell in cells if not missing.matches(cell))
    return detect_notation(
        (cell for cell in observed if not (is_number(cell) and missing.marks(cell))), decimal
    )


def _parse_cell(cell: str, missing: Missing, decimal: str, notation: Notation) -> float | None:
    """Return the value of one cell in a notation: NaN if missing, None if not a number."""
    value = parse_number(cell, missing, decimal)
    if notation == PLAIN or (value is not None and (np.isnan(value) or not notation.has_unit)):
        return value
    text = notation.plain(cell, decimal)  # a number without the unit of its column is not one
    return None if text is None else parse_number(text, missing, decimal)


def _remove_markers(values: Array, cells: Sequence[str], missing: Missing, decimal: str) -> None:
    """Replace the numbers that mark a missing value by NaN, in place."""
    if missing.values.size:
        near = np.flatnonzero(np.isin(values, missing.values)).tolist()
        parsed = {cell: parse_number(cell, missing, decimal) for cell in {cells[i] for i in near}}
        values[near] = [parsed[cells[i]] for i in near]


def _parse_plain(cells: Sequence[str], missing: Missing, decimal: str) -> Array | None:
    """Return the values if float() reads all the cells, and accepts only what it should."""
    joined = "\0".join(cells)
    if not joined.isascii() or "_" in joined:
        return None
    if decimal == ",":
        if "." in joined:
            return None
        cells = joined.replace(",", ".").split("\0")
    try:
        # Most missing cells are empty, which is found faster than a word in a set.
        values = np.array(list(map(float, [cell or "nan" for cell in cells])))
    except ValueError:
        words = missing.spellings
        try:
            values = np.array([np.nan if cell in words else float(cell) for cell in cells])
        except ValueError:
            return None
    return None if np.isinf(values).any() else values


def format_numbers(values: Array, digits: int | None = None, decimal: str = ".") -> list[str]:
    """Return numbers as text; NaN as an empty string.

    Parameters
    ----------
    values : (n,)
    digits : int, optional
        Significant digits; by default as few as identify the number in single precision.
    decimal : "." or ","

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.io.cells import format_numbers
    >>> format_numbers(np.array([0.1, 1 / 3, np.nan]), decimal=",")
    ['0,1', '0,33333334', '']
    """
    if digits is None:
        texts = _format_single(values)
    else:
        texts = [f"{value:.{digits}g}" for value in values.tolist()]
    if decimal == ",":
        texts = [text.replace(".", ",") for text in texts]
    for k in np.flatnonzero(np.isnan(values)).tolist():
        texts[k] = ""
    return texts


def _format_single(values: Array) -> list[str]:
    """Return numbers with the fewest digits that are equal in single precision."""
    size = np.abs(values)
    fits = (size > 1e-37) & (size < 1e38)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    # By float and repr, since NumPy writes 1000000 as 1e6.
    return [
        repr(float(str(short))) if is_single else repr(value)
        for short, value, is_single in zip(single, values.tolist(), fits.tolist(), strict=True)
    ]


def parse_integer(cell: Any) -> Any:
    """Return the exact number of a cell that is an integer or a text of digits; others as is."""
    digits = isinstance(cell, str) and _DIGITS.fullmatch(cell)
    return int(cell) if digits else cell
