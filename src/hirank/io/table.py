"""A table in memory, and the file it comes from, in any format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from hirank._typing import Array, PathLike
from hirank.exceptions import FileError
from hirank.io.cells import Column, Missing, contain_only_numbers
from hirank.io.memory import MemoryLimit
from hirank.io.notation import PLAIN, Notation

_NEARLY = 0.8  # share of numbers from which on the other cells of a column look like mistakes
_SCAN_ROWS = 32_768
_MAX_LISTED = 12


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read; see `open_table`."""

    missing: Missing = field(default_factory=Missing)
    numeric: tuple[str, ...] | None = None
    text: tuple[str, ...] = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    header: bool = True
    memory: MemoryLimit = field(default_factory=MemoryLimit)


@dataclass(frozen=True)
class ColumnTypes:
    """Which columns are numeric; `integral` and `complete` list some of these.

    Attributes
    ----------
    numeric : tuple of str
    integral : tuple of str
        Columns with only whole numbers, written as such.
    complete : tuple of str
        Columns that are known to have no missing values in the whole file.
    nearly_numeric : dict of name to list of (line, cell)
        Columns that are text because of a few cells (at least 80 % of those not missing are
        numbers), with the first of these cells: perhaps words for a missing value.
    """

    numeric: tuple[str, ...]
    integral: tuple[str, ...]
    complete: tuple[str, ...] = ()
    nearly_numeric: dict[str, list[tuple[int, str]]] = field(default_factory=dict)


class Cells(ABC):
    """Rows of a table as they are in the file."""

    first_row: int
    decimal = "."  # the decimal mark

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def column(self, index: int) -> Sequence[Any]:
        """Return the cells of a column: strings, or the values of the format."""

    @abstractmethod
    def parse(self, columns: Sequence[int]) -> list[Column]:
        """Return these columns as numbers."""

    def texts(self, index: int) -> list[str]:
        """Return the cells of a column as plain text; None and NaN as an empty string."""
        return ["" if cell is None or cell != cell else str(cell) for cell in self.column(index)]

    def line(self, row: int) -> int:
        """Return the line of the file in which a row starts."""
        return self.first_row + row + 1

    def notation(self, index: int) -> Notation:
        """Return how the numbers of a column are written, if it has been parsed."""
        return PLAIN

    def dtype(self, index: int) -> np.dtype[Any] | None:
        """Return the type in which the format stores the numbers of a column, if it has one."""
        return None


@dataclass(frozen=True)
class Table:
    r"""Rows of a file: the numbers to impute, and everything else as it is in the file.

    Attributes
    ----------
    names : tuple of str
        All the columns.
    numbers : (n, v)
        The numeric columns, in the order of `numeric`; NaN = missing.
    types : ColumnTypes
    cells : Cells
    is_whole : bool
        These are all the rows of the file.

    Examples
    --------
    >>> import io, sys
    >>> from hirank.io import open_table
    >>> sys.stdin = io.TextIOWrapper(io.BytesIO(b"day,x,y\nMon,1,2.5\nTue,,NA\n"))
    >>> table = open_table("-").read()
    >>> sys.stdin = sys.__stdin__
    >>> table.numeric, table.text, table.types.integral
    (('x', 'y'), ('day',), ('x',))
    >>> table.numbers
    array([[1. , 2.5],
           [nan, nan]])
    >>> table.column("day"), table.line(0)
    (['Mon', 'Tue'], 2)
    """

    names: tuple[str, ...]
    numbers: Array
    types: ColumnTypes
    cells: Cells = field(repr=False)
    is_whole: bool = False

    @property
    def numeric(self) -> tuple[str, ...]:
        """The numeric columns, in the order of `numbers`."""
        return self.types.numeric

    @property
    def text(self) -> tuple[str, ...]:
        """The other columns, in the order of the file."""
        numeric = set(self.numeric)
        return tuple(name for name in self.names if name not in numeric)

    @property
    def first_row(self) -> int:
        """The position in the file of the first row, from 0."""
        return self.cells.first_row

    def line(self, row: int) -> int:
        """Return the line of the file in which a row of this table starts."""
        return self.cells.line(row)

    def column(self, name: str) -> Sequence[Any]:
        """Return the cells of a column: strings, or the values of the format."""
        return self.cells.column(self.names.index(name))

    @property
    def notations(self) -> dict[str, Notation]:
        """The numeric columns whose numbers have a unit or marks of thousands."""
        found = {name: self.cells.notation(self.names.index(name)) for name in self.numeric}
        return {name: notation for name, notation in found.items() if notation != PLAIN}

    def __len__(self) -> int:
        return len(self.cells)


class TableFile(ABC):
    r"""A table in a file, opened by `open_table`; a context manager.

    Attributes
    ----------
    path : str or path
    names : tuple of str
        All the columns.
    format : str
        "csv", "parquet", "arrow", "npy" or "xlsx".
    types : ColumnTypes or None
        Known after `read`, or once `chunks` has scanned the file.
    numbered : tuple of str
        Columns that had the name of another one before, and got a number.

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

    format: ClassVar[str]
    numbered: tuple[str, ...] = ()

    def __init__(
        self,
        path: PathLike,
        names: Sequence[str],
        options: ReadOptions,
        text_columns: Iterable[str] = (),  # text even if all their cells are numbers
    ) -> None:
        self.path, self.names, self.options = path, tuple(names), options
        self._text_columns = {*options.text, *text_columns}
        self.types: ColumnTypes | None = None
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise FileError(path, f"Several columns are named {_quote(repeated)}. Rename them.")
        unknown = [name for name in (*(options.numeric or ()), *options.text) if name not in names]
        if unknown:
            raise FileError(path, f"No column {_quote(unknown)}. The columns are {_quote(names)}.")

    @abstractmethod
    def _batches(self, rows: int | None) -> Iterator[Cells]:
        """Yield the rows of the file from its start, at most `rows` at a time, or all at once."""

    def select_numeric(self, names: Iterable[str]) -> None:
        """Declare the columns that must be numeric, after `names` of the file are known."""
        numeric = tuple(name for name in names if name in self.names)
        self.options = replace(self.options, numeric=numeric)

    def read(self) -> Table:
        """Return all the rows."""
        cells = next(self._batches(None))
        if self.options.numeric is not None:
            return self._table(cells, is_whole=True)
        columns = self._parse(cells, self._candidates())
        self.types = _column_types(columns, len(cells))
        numbers = _stack([columns[name] for name in self.types.numeric], len(cells))
        return Table(self.names, numbers, self.types, cells, is_whole=True)

    def chunks(self, rows: int) -> Iterator[Table]:
        """Yield the rows in parts of at most `rows`, in memory that does not grow with the file.

        Unless `numeric` was given, the file is scanned once before to find the numeric columns.
        """
        if rows < 1:
            raise ValueError(f"rows must be at least 1; got {rows}")
        if self.options.numeric is None and self.types is None:
            self.types = self._scan()
        for cells in self._batches(rows):
            if len(cells):
                yield self._table(cells, is_whole=False)

    def close(self) -> None:  # noqa: B027 - most formats keep nothing open
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _candidates(self) -> list[str]:
        return [name for name in self.names if name not in self._text_columns]

    def _parse(self, cells: Cells, names: Sequence[str]) -> dict[str, Column]:
        places = {name: index for index, name in enumerate(self.names)}
        columns = cells.parse([places[name] for name in names])
        for column in columns:
            column.invalid = [(cells.line(row), cell) for row, cell in column.invalid]
        return dict(zip(names, columns, strict=True))

    def _scan(self) -> ColumnTypes:
        columns = {name: Column(None) for name in self._candidates()}
        n_rows = 0
        for cells in self._batches(_SCAN_ROWS):
            n_rows += len(cells)
            active = [name for name, column in columns.items() if not column.is_text]
            for name, part in self._parse(cells, active).items():
                columns[name].extend(part)
        return _column_types(columns, n_rows)

    def _table(self, cells: Cells, *, is_whole: bool) -> Table:
        """Return rows whose numeric columns are known: any other cell in them is an error."""
        numeric = self.types.numeric if self.types is not None else self.options.numeric or ()
        columns = self._parse(cells, numeric)
        for name, column in columns.items():
            if column.invalid:
                line, cell = column.invalid[0]
                raise FileError(
                    self.path,
                    f'Line {line}: "{cell}" in column "{name}" is not a finite number. Correct it, '
                    "or declare it as a marker of missing values.",
                )
        whole = tuple(name for name, column in columns.items() if column.whole)
        types = self.types or ColumnTypes(numeric, whole)
        return Table(self.names, _stack(list(columns.values()), len(cells)), types, cells, is_whole)


class ColumnNames(NamedTuple):
    """The names of the columns, and which of them the file has otherwise."""

    names: list[str]
    unnamed: list[str]  # columns without a name
    numbered: tuple[str, ...] = ()  # columns that had the name of one before


def name_columns(path: PathLike, cells: Sequence[str], options: ReadOptions) -> ColumnNames:
    """Return the names of the columns from the cells of the first row."""
    numbers = [f"column {j}" for j in range(1, len(cells) + 1)]
    if not options.header:
        return ColumnNames(numbers, [])
    if contain_only_numbers(cells, options.missing):
        raise FileError(
            path,
            "The first row contains only numbers. Add a row of column names above it, or read the "
            "file without a header (header=False, --no-header).",
        )
    names = list(cells)
    if cells.count("") > 1:
        names = [cell or number for cell, number in zip(cells, numbers, strict=True)]
    unnamed = [name for name, cell in zip(names, cells, strict=True) if not cell]
    different = _number_repeated(names)
    changed = tuple(new for new, old in zip(different, names, strict=True) if new != old)
    return ColumnNames(different, unnamed, changed)


def _number_repeated(names: Sequence[str]) -> list[str]:
    """Return names that are all different: x, x.2, x.3."""
    taken, counts, found = set(names), Counter[str](), []
    for name in names:
        counts[name] += 1
        new = name
        while counts[name] > 1 and new in taken:
            new = f"{name}.{counts[name]}"
            counts[name] += new in taken
        taken.add(new)
        found.append(new)
    return found


def slices(n_rows: int, rows: int | None) -> Iterator[slice]:
    """Yield slices of at most `rows` rows, or one of all; at least one, which may be empty."""
    step = rows or max(n_rows, 1)
    for start in range(0, max(n_rows, 1), step):
        yield slice(start, start + step)


def _quote(names: Sequence[str]) -> str:
    text = ", ".join(f'"{name}"' for name in names[:_MAX_LISTED])
    more = len(names) - _MAX_LISTED
    return text if more <= 0 else f"{text} and {more} more"


def _column_types(columns: dict[str, Column], n_rows: int) -> ColumnTypes:
    numeric = [name for name, column in columns.items() if not column.n_invalid]
    nearly = {
        name: column.invalid
        for name, column in columns.items()
        if column.n_invalid and column.n_observed - column.n_invalid >= _NEARLY * column.n_observed
    }
    integral = tuple(name for name in numeric if columns[name].whole)
    complete = tuple(name for name in numeric if columns[name].n_observed == n_rows)
    return ColumnTypes(tuple(numeric), integral, complete, nearly)


def _stack(columns: Sequence[Column], n_rows: int) -> Array:
    matrix = np.array([column.values for column in columns], dtype=float)
    return np.ascontiguousarray(matrix.reshape(len(columns), n_rows).T)
