"""A table in memory, and the file it comes from, whatever the format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from hirank._typing import Array
from hirank.io.cells import Missing, Parsed
from hirank.io.errors import FileError, Path

__all__ = ["Cells", "Kinds", "Options", "Table", "TableFile", "check_names"]

_ALMOST = 0.8  # share of numbers in a column of text that looks like a mistake
_SCAN_ROWS = 32_768


class Cells(ABC):
    """Rows of a table as they stand in the file."""

    first_row: int

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def column(self, index: int) -> Sequence[Any]:
        """The cells of a column: strings, or the values of the format."""

    @abstractmethod
    def texts(self, index: int) -> list[str]:
        """The cells of a column as plain text; an empty string where there is nothing."""

    @abstractmethod
    def parse(self, columns: Sequence[int]) -> list[Parsed]:
        """These columns as numbers."""

    def line(self, row: int) -> int:
        return self.first_row + row + 1

    def dtype(self, index: int) -> np.dtype[Any] | None:
        """The type in which the format keeps the numbers of a column, if it has one."""
        return None


@dataclass(frozen=True)
class Table:
    r"""Rows of a file: the numbers to complete, and everything else as it stands.

    Attributes
    ----------
    names : tuple of str
        All the columns.
    numeric : tuple of str
        The numeric columns, in the order of `numbers`.
    numbers : (n, v)
        NaN = missing.
    integral : tuple of str
        Numeric columns with nothing but whole numbers, written as such.
    first_row : int
        Number in the file of the first row, from 0.
    almost : dict of name to list of (line, cell)
        Columns that are text because of a few cells (at least 80 % of those not missing are
        numbers), with the first of these cells: perhaps words for a missing value.

    Examples
    --------
    >>> import io, sys
    >>> from hirank.io import open_table
    >>> sys.stdin = io.TextIOWrapper(io.BytesIO(b"day,x,y\nMon,1,2.5\nTue,,NA\n"))
    >>> table = open_table("-").read()
    >>> sys.stdin = sys.__stdin__
    >>> table.numeric, table.text, table.integral
    (('x', 'y'), ('day',), ('x',))
    >>> table.numbers
    array([[1. , 2.5],
           [nan, nan]])
    >>> table.column("day"), table.line(0)
    (['Mon', 'Tue'], 2)
    """

    names: tuple[str, ...]
    numeric: tuple[str, ...]
    numbers: Array
    integral: tuple[str, ...]
    cells: Cells = field(repr=False)
    almost: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    @property
    def text(self) -> tuple[str, ...]:
        """The other columns, in the order of the file."""
        numeric = set(self.numeric)
        return tuple(name for name in self.names if name not in numeric)

    @property
    def first_row(self) -> int:
        return self.cells.first_row

    def line(self, row: int) -> int:
        """The line in the file where a row of this table starts."""
        return self.cells.line(row)

    def column(self, name: str) -> Sequence[Any]:
        """The cells of a column as they stand: strings, or the values of the format."""
        return self.cells.column(self.names.index(name))

    def __len__(self) -> int:
        return len(self.cells)


@dataclass(frozen=True)
class Options:
    """How a file is to be read; see `open_table`."""

    missing: Missing = field(default_factory=Missing)
    numeric: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    key: str | None = None
    header: bool = True


@dataclass(frozen=True)
class Kinds:
    """Which columns of the whole file are numeric, and what was found on the way."""

    numeric: tuple[str, ...]
    integral: tuple[str, ...]
    almost: dict[str, list[tuple[int, str]]]


class TableFile(ABC):
    r"""A table in a file, opened by `open_table`; a context manager.

    Attributes
    ----------
    path : str or path
    names : tuple of str
        All the columns.
    format : str
        "csv", "parquet", "arrow", "npy", "npz", "mat" or "xlsx".
    kinds : Kinds or None
        Known after `read`, or once `chunks` has looked through the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hirank.io import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("x,y\n1,2\n3,\n5,6\n")
    ...     with open_table(path) as file:
    ...         print(file.format, file.names, [len(part) for part in file.chunks(2)])
    csv ('x', 'y') [2, 1]
    """

    format: str

    def __init__(self, path: Path, names: Sequence[str], options: Options) -> None:
        self.path = path
        self.names = check_names(path, names)
        self.options = options
        self.kinds: Kinds | None = None
        for what, wanted in (("numeric", options.numeric or ()), ("text", options.text)):
            lacking = [name for name in wanted if name not in self.names]
            if lacking:
                raise FileError(
                    f"{path}: no column {_listed(lacking)}, asked for as {what}; "
                    f"the columns are {_listed(self.names)}"
                )

    @abstractmethod
    def _batches(self, rows: int | None) -> Iterator[Cells]:
        """The rows of the file from the start, at most `rows` at a time, or all at once."""

    def _never_numeric(self) -> Iterable[str]:
        """Columns that are no numbers whatever their cells say."""
        return [""]

    def read(self) -> Table:
        """All the rows."""
        cells = next(self._batches(None))
        if self.options.numeric is not None:
            return self._table(cells, self.options.numeric, None)
        candidates = self._candidates()
        parsed = cells.parse([self.names.index(name) for name in candidates])
        found = dict(zip(candidates, parsed, strict=True))
        self.kinds = _kinds(found, {n: _lines(p, cells) for n, p in found.items() if p.strays})
        values = [found[name].values for name in self.kinds.numeric]
        return Table(
            self.names,
            self.kinds.numeric,
            _matrix(values, len(cells)),
            self.kinds.integral,
            cells,
            self.kinds.almost,
        )

    def chunks(self, rows: int) -> Iterator[Table]:
        """The rows in parts of at most `rows`, in memory that does not grow with the file.

        Unless `numeric` was given, the file is looked through once before to find the kinds.
        """
        if rows < 1:
            raise ValueError(f"rows must be at least 1, got {rows}")
        numeric = self.options.numeric
        if numeric is None:
            if self.kinds is None:
                self.kinds = self._scan()
            numeric = self.kinds.numeric
        for cells in self._batches(rows):
            if len(cells):
                yield self._table(cells, numeric, self.kinds)

    def close(self) -> None:  # noqa: B027 - most formats keep nothing open
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _candidates(self) -> list[str]:
        never = {*self.options.text, *self._never_numeric()}
        return [name for name in self.names if name not in never]

    def _scan(self) -> Kinds:
        found: dict[str, Parsed] = {name: Parsed(None, 0) for name in self._candidates()}
        strays: dict[str, list[tuple[int, str]]] = {}
        for cells in self._batches(_SCAN_ROWS):
            active = [name for name, parsed in found.items() if not parsed.hopeless]
            parsed = cells.parse([self.names.index(name) for name in active])
            for name, part in zip(active, parsed, strict=True):
                if part.strays:
                    strays.setdefault(name, []).extend(_lines(part, cells))
                found[name].follow(part, 0)
        return _kinds(found, strays)

    def _table(self, cells: Cells, numeric: tuple[str, ...], kinds: Kinds | None) -> Table:
        """These rows, whose numeric columns are known: anything else in them is an error."""
        parsed = cells.parse([self.names.index(name) for name in numeric])
        for name, part in zip(numeric, parsed, strict=True):
            if part.strays:
                line, cell = _lines(part, cells)[0]
                raise FileError(
                    f'{self.path}, line {line}: "{cell}" in the column "{name}" is not a finite '
                    "number; correct it, or name it as a missing value"
                )
        whole = tuple(n for n, part in zip(numeric, parsed, strict=True) if part.whole)
        return Table(
            self.names,
            numeric,
            _matrix([part.values for part in parsed], len(cells)),
            kinds.integral if kinds else whole,
            cells,
            kinds.almost if kinds else {},
        )


def check_names(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names of the columns, if no two are the same."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileError(f"{path}: several columns are called {_listed(twice)}; rename all but one")
    return tuple(names)


def _listed(names: Sequence[str], most: int = 12) -> str:
    text = ", ".join(f'"{name}"' for name in names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def _lines(parsed: Parsed, cells: Cells) -> list[tuple[int, str]]:
    return [(cells.line(row), cell) for row, cell in parsed.strays]


def _kinds(found: dict[str, Parsed], strays: dict[str, list[tuple[int, str]]]) -> Kinds:
    numeric = tuple(name for name, parsed in found.items() if not parsed.n_strays)
    almost = {
        name: strays[name][:3]
        for name, parsed in found.items()
        if parsed.n_strays and parsed.observed - parsed.n_strays >= _ALMOST * parsed.observed
    }
    return Kinds(numeric, tuple(name for name in numeric if found[name].whole), almost)


def _matrix(values: Sequence[Array | None], n_rows: int) -> Array:
    matrix = np.empty((n_rows, len(values)))
    for j, column in enumerate(values):
        assert column is not None  # only columns without strays get here
        matrix[:, j] = column
    return matrix
