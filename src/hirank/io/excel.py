"""Excel files, read and written by openpyxl."""

from __future__ import annotations

import datetime
import io
import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hirank._integers import are_whole
from hirank._typing import Array, PathLike
from hirank.exceptions import FileError, OutputError
from hirank.io.cells import Column, collect_numbers, parse_number
from hirank.io.errors import damaged, reading, require
from hirank.io.memory import CELL, MemoryLimit
from hirank.io.output import Writer
from hirank.io.table import Cells, ReadOptions, Table, TableFile, name_columns, slices

_NOT_AVAILABLE = "#N/A"
_MAX_ROWS = 1_048_576
_MAX_TEXT = 32_767
_POINTER = 8  # bytes of a cell in a row, of which there are two: read, and cropped
_PER_BYTE = 10  # bytes of memory that openpyxl takes for a byte of XML: measured
_REMEDY = "Write CSV or Parquet."
_CELL_TYPES = (int, float, datetime.date, datetime.time, datetime.timedelta)


class ExcelCells(Cells):
    """Rows of a sheet as Python values."""

    def __init__(self, file: ExcelFile, rows: list[tuple[Any, ...]], first_row: int) -> None:
        self.file, self.rows, self.first_row = file, rows, first_row

    def __len__(self) -> int:
        return len(self.rows)

    def line(self, row: int) -> int:
        return self.file.top + self.first_row + row

    def column(self, index: int) -> Sequence[Any]:
        return [row[index] for row in self.rows]

    def parse(self, columns: Sequence[int]) -> list[Column]:
        return [self._parse(self.column(index)) for index in columns]

    def _parse(self, cells: Sequence[Any]) -> Column:
        found = [self._number(cell) for cell in cells]
        column = collect_numbers(found, cells)
        if column.values is not None and column.n_observed and not column.n_invalid:
            known = np.flatnonzero(~np.isnan(column.values)).tolist()
            column.whole = all(isinstance(cells[i], int) for i in known)
        return column

    def _number(self, cell: Any) -> float | None:
        if cell is None or cell == _NOT_AVAILABLE:
            return np.nan
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            return None
        return parse_number(str(cell), self.file.options.missing)


class ExcelFile(TableFile):
    """A sheet of an Excel file; see `open_table`. Formulas are read as their last values.

    Attributes
    ----------
    sheet : str
        Its name.
    top : int
        The line of its first row of cells, below the names, from 1.
    """

    format = "xlsx"

    def __init__(self, path: PathLike, options: ReadOptions) -> None:
        book = _load(path, options.memory)
        sheets = {sheet.title: sheet for sheet in book.worksheets if hasattr(sheet, "iter_rows")}
        self.sheet = options.sheet if options.sheet is not None else next(iter(sheets), "")
        if self.sheet not in sheets:
            listed = ", ".join(f'"{name}"' for name in sheets)
            raise FileError(path, f'No sheet "{self.sheet}". The sheets are {listed}.')
        sheet = sheets[self.sheet]
        options.memory.check(
            path,
            sheet.max_row * sheet.max_column * (2 * _POINTER + CELL),
            f'Sheet "{self.sheet}", with values down to row {sheet.max_row} and column '
            f"{sheet.max_column},",
        )
        rows = self._crop(path, list(sheet.iter_rows(values_only=True)))
        book.close()
        cells = ["" if cell is None else str(cell).strip() for cell in rows[0]]
        columns = name_columns(path, cells, options)
        self.rows = rows[1:] if options.header else rows
        self.top += options.header
        super().__init__(path, columns.names, options, columns.unnamed)
        self.numbered = columns.numbered

    def _crop(self, path: PathLike, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the smallest block of rows and columns that contains all values."""
        used = [i for i, row in enumerate(rows) if set(row) - {None}]
        if not used:
            raise FileError(path, f'Sheet "{self.sheet}" is empty. Select another sheet.')
        self.top = used[0] + 1
        rows = rows[used[0] : used[-1] + 1]
        columns = [j for j, column in enumerate(zip(*rows, strict=True)) if set(column) - {None}]
        return [row[columns[0] : columns[-1] + 1] for row in rows]

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        for part in slices(len(self.rows), rows):
            yield ExcelCells(self, self.rows[part], part.start)


class ExcelWriter(Writer):
    """Write a new workbook with one sheet, named as that of the input.

    Dates and other values of columns that are not numeric are kept; styles and formulas are not.
    """

    def __init__(self, path: PathLike, like: TableFile, **options: Any) -> None:
        super().__init__(path, like, **options)
        require("openpyxl", path)
        self._rows: list[tuple[Any, ...]] = []

    def _write(self, table: Table, filled: Array, extra: Mapping[str, Array]) -> None:
        columns = [self._column(table, index, filled) for index in range(len(table.names))]
        columns += [_cell_values(added, False) for added in extra.values()]
        self._rows += zip(*columns, strict=True)
        if len(self._rows) + self.like.options.header > _MAX_ROWS:
            problem = f"An Excel sheet has at most {_MAX_ROWS} rows. Write CSV or Parquet."
            raise OutputError(self.path, problem)

    def _column(self, table: Table, index: int, filled: Array) -> list[Any]:
        """Return the cells of a column, with its imputed values."""
        cells, name = table.cells.column(index), table.names[index]
        if name not in table.numeric:
            return [self._value(cell, name) for cell in cells]
        j = table.numeric.index(name)
        numbers, own = table.numbers[:, j], isinstance(table.cells, ExcelCells)
        if not own:
            self._check_exact(table, name, _REMEDY)
        values = np.where(np.isnan(filled[:, j]), numbers, filled[:, j])
        found = _cell_values(values, name in table.types.integral)
        if own:
            for i in np.flatnonzero(~np.isnan(numbers)).tolist():
                found[i] = self._value(cells[i], name)
        return found

    def _value(self, cell: Any, name: str = "") -> Any:
        """Return what a cell that is not numeric holds: text unless Excel has its type."""
        if cell is None or cell == "":
            return None
        if isinstance(cell, int) and float(cell) != cell:  # Excel has double precision only
            self._refuse_rounded(np.array([cell], dtype=object), name, _REMEDY)
        finite = not isinstance(cell, float) or math.isfinite(cell)
        if isinstance(cell, _CELL_TYPES) and finite and getattr(cell, "tzinfo", None) is None:
            return cell
        text = str(cell)
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

        if ILLEGAL_CHARACTERS_RE.search(text) or len(text) > _MAX_TEXT:
            problem = f"Excel cannot store the text {text[:40]!r}. Write CSV or Parquet."
            raise OutputError(self.path, problem)
        return text

    def _finish(self) -> None:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell

        book = Workbook(write_only=True)
        sheet = book.create_sheet(self.like.sheet if isinstance(self.like, ExcelFile) else "table")
        header = [tuple(map(self._value, self._names()))] if self.like.options.header else []
        for row in (*header, *self._rows):
            cells = list(row)
            for k, value in enumerate(row):
                if isinstance(value, str):
                    cells[k] = WriteOnlyCell(sheet, value=value)
                    cells[k].data_type = "s"  # not a formula, even if it starts like one
                elif isinstance(value, float) and float(f"{value:.16g}") != value:
                    # openpyxl writes 16 digits, of which some numbers need 17.
                    cells[k] = WriteOnlyCell(sheet, value=repr(float(value)))
                    cells[k].data_type = "n"
            sheet.append(cells)
        # Not by book.save, which leaves the archive open after an error (a full disk).
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
            require("openpyxl.writer.excel", self.path).ExcelWriter(book, archive).write_data()
        self._file.write(memory.getbuffer())


def _load(path: PathLike, memory: MemoryLimit) -> Any:
    openpyxl = require("openpyxl", path)
    with reading(path), open(path, "rb") as stream:
        if stream.read(2) != b"PK":
            raise FileError(path, "Not an .xlsx file. Save it as .xlsx or CSV in Excel.")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        memory.check(path, _PER_BYTE * size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts of a workbook that openpyxl does not read
            return openpyxl.load_workbook(path, data_only=True)
    except FileError:
        raise
    except Exception as error:  # a damaged workbook makes openpyxl fail in many ways
        raise damaged(path, ".xlsx", error) from error


def _cell_values(values: Array, integral: bool) -> list[Any]:
    whole = are_whole(values) & integral
    return [
        None if value != value else int(value) if is_whole else value
        for value, is_whole in zip(values.tolist(), whole.tolist(), strict=True)
    ]
