"""Excel files as they are written: the input's own workbook with its holes filled, or a new one."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.io.cells import whole_numbers
from hirank.io.errors import OutputError, missing_package
from hirank.io.excel import ExcelCells, ExcelFile, load
from hirank.io.output import Replacement, Writer
from hirank.io.table import Table, TableFile

__all__ = ["ExcelWriter"]

_MOST_ROWS = 1_048_576
_LONGEST_TEXT = 32_767


class ExcelWriter(Writer):
    """An Excel file. Styles, formulas and other sheets of an Excel input survive.

    What openpyxl does not know is lost: pictures, and parts of charts.
    """

    def __init__(self, output: Replacement, like: TableFile, digits: int | None) -> None:
        super().__init__(output, like, digits)
        try:
            import openpyxl
        except ImportError as error:
            missing_package(output.path, "openpyxl", error)
        self._same = isinstance(like, ExcelFile)
        self._started = False
        self._rows: list[tuple[Any, ...]] = []
        if isinstance(like, ExcelFile):
            self._book: Any = load(like.path, values=False)
            self._sheet: Any = self._book[like.sheet]
        else:
            self._book = openpyxl.Workbook(write_only=True)

    def _write(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        self._start()
        if self._same and isinstance(table.cells, ExcelCells):
            self._fill(table, table.cells, fills, extra)
        else:
            self._append(table, fills, extra)

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        if isinstance(self.like, ExcelFile):
            column = self.like.left + len(self.like.names)
            if self.like.options.header:
                for k, name in enumerate(self._extra or ()):
                    self._sheet.cell(self.like.top - 1, column + k, name)
        elif self.like.options.header:
            self._rows.append(tuple(self._text(name) for name in self._names()))

    def _fill(
        self, table: Table, cells: ExcelCells, fills: Array, extra: Mapping[str, Array]
    ) -> None:
        """Numbers into the empty cells of the workbook; a formula stays a formula."""
        from openpyxl.cell.cell import MergedCell

        left, integral = cells.file.left, [name in table.integral for name in table.numeric]
        columns = [left + table.names.index(name) for name in table.numeric]
        for i, j in np.argwhere(~np.isnan(fills)).tolist():
            cell = self._sheet.cell(cells.line(i), columns[j])
            if not isinstance(cell, MergedCell) and cell.data_type != "f":
                cell.value = _value(fills[i, j], integral[j])
        for k, values in enumerate(extra.values()):
            for i in np.flatnonzero(~np.isnan(values)).tolist():
                place = self._sheet.cell(cells.line(i), left + len(table.names) + k)
                place.value = float(values[i])

    def _append(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        """Rows of a table that comes from another format."""
        numeric = {name: j for j, name in enumerate(table.numeric)}
        columns: list[list[Any]] = []
        for index, name in enumerate(table.names):
            if name in numeric:
                j, whole = numeric[name], name in table.integral
                values = np.where(np.isnan(fills[:, j]), table.numbers[:, j], fills[:, j])
                columns.append([_value(value, whole) for value in values])
            else:
                columns.append([self._text(cell) for cell in table.cells.texts(index)])
        columns += [[_value(value, False) for value in values] for values in extra.values()]
        self._rows += zip(*columns, strict=True)
        if len(self._rows) > _MOST_ROWS:
            raise OutputError(
                f"{self.path}: an Excel sheet holds {_MOST_ROWS} rows at most; write CSV or Parquet"
            )

    def _text(self, text: str) -> str | None:
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

        if ILLEGAL_CHARACTERS_RE.search(text) or len(text) > _LONGEST_TEXT:
            raise OutputError(
                f"{self.path}: Excel can't hold the text {text[:40]!r}; write CSV or Parquet"
            )
        return text or None

    def _finish(self) -> None:
        self._start()
        if not self._same:
            self._fill_new_sheet()
        # In memory first: openpyxl does not let go of a file that it could not write to.
        memory = io.BytesIO()
        self._book.save(memory)
        self._file.write(memory.getbuffer())

    def _fill_new_sheet(self) -> None:
        from openpyxl.cell import WriteOnlyCell

        sheet = self._book.create_sheet("table")
        for row in self._rows:
            cells = list(row)
            for k, value in enumerate(row):
                if isinstance(value, str):
                    cells[k] = WriteOnlyCell(sheet, value=value)
                    cells[k].data_type = "s"  # no formula, even if it starts like one
            sheet.append(cells)

    def _release(self) -> None:
        self._book.close()


def _value(value: Any, integral: bool) -> int | float | None:
    if np.isnan(value):
        return None
    if integral and whole_numbers(np.array(value)):
        return int(value)
    return float(value)
