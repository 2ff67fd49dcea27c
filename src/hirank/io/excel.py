"""Excel files, by openpyxl."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hirank.io.cells import Parsed, number
from hirank.io.errors import FileError, Path, missing_package, reading
from hirank.io.table import Cells, Options, TableFile
from hirank.io.text import column_names

__all__ = ["ExcelCells", "ExcelFile", "load"]

_NOT_AVAILABLE = "#N/A"


def load(path: Path, *, values: bool) -> Any:
    """The workbook; with the last values of its formulas, or with the formulas."""
    try:
        import openpyxl
    except ImportError as error:
        missing_package(path, "openpyxl", error)
    import warnings

    with reading(path):
        with open(path, "rb") as stream:
            if stream.read(2) != b"PK":
                raise FileError(f"{path}: not an .xlsx file; save it as .xlsx in Excel, or as CSV")
        try:
            with warnings.catch_warnings():
                # It tells of parts of a workbook (drop-down lists and such) that it leaves out.
                warnings.simplefilter("ignore")
                return openpyxl.load_workbook(path, data_only=values)
        except OSError as error:
            if error.errno:
                raise
            raise _damaged(path, error) from error
        except Exception as error:
            # A damaged workbook makes openpyxl fail in every way there is.
            raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> FileError:
    kind = "" if isinstance(error, zipfile.BadZipFile) else f" ({type(error).__name__})"
    return FileError(f"{path}: not an .xlsx file, or a damaged one{kind}; save it again, or as CSV")


class ExcelCells(Cells):
    """Rows of a sheet as Python values."""

    def __init__(self, file: ExcelFile, rows: list[tuple[Any, ...]], first_row: int) -> None:
        self.file = file
        self.rows = rows
        self.first_row = first_row

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, row: int) -> int:
        return self.file.top + self.first_row + row

    def column(self, index: int) -> Sequence[Any]:
        return [row[index] for row in self.rows]

    def texts(self, index: int) -> list[str]:
        return ["" if cell is None else str(cell) for cell in self.column(index)]

    def parse(self, columns: Sequence[int]) -> list[Parsed]:
        return [self._parse(self.column(index)) for index in columns]

    def _parse(self, cells: Sequence[Any]) -> Parsed:
        found = [self._number(cell) for cell in cells]
        strays = [(i, str(cells[i])) for i, value in enumerate(found) if value is None]
        values = np.array([np.nan if value is None else value for value in found], dtype=float)
        self.file.options.missing.remove(values)
        known = ~np.isnan(values)
        observed = int(np.count_nonzero(known))
        whole = bool(observed) and not strays
        whole = whole and all(isinstance(cells[i], int) for i in np.flatnonzero(known).tolist())
        return Parsed(values, observed + len(strays), strays[:3], len(strays), whole)

    def _number(self, cell: Any) -> float | None:
        if cell is None or cell == _NOT_AVAILABLE:
            return np.nan
        if isinstance(cell, bool):
            return None
        if isinstance(cell, int | float):
            try:
                return None if np.isinf(float(cell)) else float(cell)
            except OverflowError:
                return None
        return number(cell, self.file.options.missing) if isinstance(cell, str) else None


class ExcelFile(TableFile):
    """A sheet of an Excel file; see `open_table`.

    Attributes
    ----------
    sheet : str
        Its name.
    top, left : int
        Where its first row of cells (below the names) and its first column are, from 1.
    """

    format = "xlsx"

    def __init__(self, path: Path, options: Options) -> None:
        book = load(path, values=True)
        sheets = [sheet for sheet in book.worksheets if hasattr(sheet, "iter_rows")]
        if options.sheet is not None:
            sheets = [sheet for sheet in sheets if sheet.title == options.sheet]
        if not sheets:
            listed = ", ".join(f'"{name}"' for name in book.sheetnames)
            raise FileError(f'{path}: no sheet "{options.sheet or ""}"; there are: {listed}')
        self.sheet = sheets[0].title
        rows = self._cut(path, list(sheets[0].iter_rows(values_only=True)))
        book.close()
        cells = ["" if cell is None else str(cell).strip() for cell in rows[0]]
        names = column_names(path, cells, options)
        self._unnamed = [n for n, c in zip(names, cells, strict=True) if options.header and not c]
        if options.header:
            rows = rows[1:]
            self.top += 1
        self.rows = rows
        super().__init__(path, names, options)

    def _cut(self, path: Path, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """The rows and columns that hold something, as far as they go."""
        used = [i for i, row in enumerate(rows) if any(cell is not None for cell in row)]
        if not used:
            raise FileError(
                f'{path}: the sheet "{self.sheet}" is empty; it needs a row of names and rows of '
                "cells, or name another sheet"
            )
        rows = rows[used[0] : used[-1] + 1]
        columns = [j for j, column in enumerate(zip(*rows, strict=True)) if any(map(_some, column))]
        self.top, self.left = used[0] + 1, columns[0] + 1
        return [row[columns[0] : columns[-1] + 1] for row in rows]

    def _never_numeric(self) -> Iterable[str]:
        return self._unnamed

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        n = len(self.rows)
        step = rows or max(n, 1)
        for start in range(0, max(n, 1), step):
            yield ExcelCells(self, self.rows[start : start + step], start)


def _some(cell: Any) -> bool:
    return cell is not None
