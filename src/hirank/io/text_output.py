"""Text tables as they are written: every observed cell as it stood."""

from __future__ import annotations

import codecs
import gzip
import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hirank._typing import Array, IntArray
from hirank.io.cells import whole_numbers
from hirank.io.dialect import COMMA, Dialect
from hirank.io.errors import FileError
from hirank.io.output import Replacement, Writer
from hirank.io.table import Table, TableFile
from hirank.io.text import TextCells, TextFile

__all__ = ["TextWriter", "as_text"]

_POWERS = np.array([float(f"1e{k}") for k in range(23)])  # exact, which a computed power is not


class TextWriter(Writer):
    """CSV and the like, in the dialect of the input if that was text."""

    def __init__(self, output: Replacement, like: TableFile, digits: int | None) -> None:
        super().__init__(output, like, digits)
        name = os.fspath(output.path).lower()
        self._compress = name.endswith(".gz")
        suffix = name.removesuffix(".gz").rpartition(".")[2]
        self._dialect = COMMA if suffix != "tsv" else replace(COMMA, delimiter="\t")
        self._source = like if isinstance(like, TextFile) and _same(like, suffix) else None
        self._encoding, self._bom = "utf-8", b""
        if self._source is not None:
            self._dialect = self._source.dialect
            self._encoding, self._bom = self._source.source.encoding, self._source.source.bom
        self._encoder = codecs.getincrementalencoder(self._encoding)()
        self._zip: gzip.GzipFile | None = None
        self._started = False
        self._unended = False

    def _write(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        self._start()
        added = [as_text(values, self.digits, self._dialect.decimal) for values in extra.values()]
        if self._source is not None and isinstance(table.cells, TextCells):
            lines = self._same_records(table, table.cells.records, fills)
        else:
            lines = self._new_records(table, fills)
        if added:
            tails = [self._tail(cells) for cells in zip(*added, strict=True)]
            lines = [self._extended(line, tail) for line, tail in zip(lines, tails, strict=True)]
        if self._unended and lines:
            self._put(self._dialect.newline)
        self._unended = bool(lines) and not lines[-1].endswith(self._dialect.newline)
        self._put("".join(lines))

    def _same_records(self, table: Table, records: list[str], fills: Array) -> list[str]:
        """The records as they stand, but for the cells that are filled in."""
        dialect = self._dialect
        lines = list(records)
        rows, columns = np.nonzero(~np.isnan(fills))
        position = [table.names.index(name) for name in table.numeric]
        texts = self._fill_texts(table, fills, rows, columns)
        cells: list[str] = []
        end, last = "", -1
        for i, j, text in zip(rows.tolist(), columns.tolist(), texts, strict=True):
            if i != last:
                if last >= 0:
                    lines[last] = dialect.join(cells) + end
                cells, end = dialect.parts(records[i])
                last = i
            k = position[j]
            cells[k] = dialect.instead(cells[k], text) if cells[k] else text
        if last >= 0:
            lines[last] = dialect.join(cells) + end
        return lines

    def _new_records(self, table: Table, fills: Array) -> list[str]:
        """Records of a table that comes from another format, or another dialect."""
        dialect, numeric = self._dialect, {name: j for j, name in enumerate(table.numeric)}
        columns = []
        for index, name in enumerate(table.names):
            cells = table.cells.texts(index)
            if name in numeric:
                j = numeric[name]
                # The words for a missing value are the input's own; here it is an empty cell.
                for i in np.flatnonzero(np.isnan(table.numbers[:, j])).tolist():
                    cells[i] = ""
                (rows,) = np.nonzero(~np.isnan(fills[:, j]))
                texts = self._fill_texts(table, fills, rows, np.full(len(rows), j))
                for i, text in zip(rows.tolist(), texts, strict=True):
                    cells[i] = text
                if isinstance(table.cells, TextCells) and table.cells.file.dialect.decimal == ",":
                    cells = [cell.replace(",", ".") for cell in cells]
            columns.append([dialect.quoted(cell) for cell in cells])
        if len(columns) == 1:  # an empty line is no row to everybody
            columns = [[cell or dialect.quote * 2 for cell in columns[0]]]
        return [dialect.join(row) + dialect.newline for row in zip(*columns, strict=True)]

    def _fill_texts(
        self, table: Table, fills: Array, rows: IntArray, columns: IntArray
    ) -> list[str]:
        values = fills[rows, columns]
        texts = as_text(values, self.digits, self._dialect.decimal)
        integral = np.array([name in table.integral for name in table.numeric], dtype=bool)
        if integral.any():
            whole = integral[columns] & whole_numbers(values)
            for k in np.flatnonzero(whole).tolist():
                texts[k] = str(int(values[k]))
        return texts

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        self._put_bytes(self._bom)
        source, dialect = self._source, self._dialect
        extra = self._extra or ()
        if source is None:
            if self.like.options.header:
                names = [dialect.quoted(name) for name in self._names()]
                self._put(dialect.join(names) + dialect.newline)
            return
        header = source.header
        if header and extra:
            header = self._extended(header, self._tail([dialect.quoted(name) for name in extra]))
        self._unended = bool(header) and not header.endswith(dialect.newline)
        self._put(source.preamble + header)

    def _tail(self, cells: tuple[str, ...] | list[str]) -> str:
        if self._dialect.spaces:
            return "".join(f" {cell or 'NaN'}" for cell in cells)
        return "".join(self._dialect.delimiter + cell for cell in cells)

    def _extended(self, record: str, tail: str) -> str:
        content = record.rstrip(" \t\r\n" if self._dialect.spaces else "\r\n")
        return content + tail + record[len(content) :]

    def _put(self, text: str) -> None:
        try:
            self._put_bytes(self._encoder.encode(text))
        except UnicodeEncodeError as error:
            raise FileError(f"{self.path}: {error}; write with --encoding utf-8") from error

    def _put_bytes(self, data: bytes) -> None:
        if self._compress:
            if self._zip is None:
                self._zip = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)
            self._zip.write(data)
        else:
            self._file.write(data)

    def _finish(self) -> None:
        self._start()  # a table without rows still has a header
        self._release()

    def _release(self) -> None:
        if self._zip is not None:
            stream, self._zip = self._zip, None
            stream.close()


def _same(like: TextFile, suffix: str) -> bool:
    """Whether the output is to be written in the dialect of the input."""
    old = os.fspath(like.path).lower().removesuffix(".gz").rpartition(".")[2]
    dialect: Dialect = like.dialect
    if suffix == old:
        return True
    if suffix == "tsv":
        return dialect.delimiter == "\t"
    return suffix != "csv" or not (dialect.delimiter == "\t" or dialect.spaces)


def _shortest(values: Array) -> list[str]:
    """The numbers with the fewest digits that are equal in single precision."""
    size = np.abs(values)
    # Where powers of ten are exact, many at a time: the rounded number is the one that prints so.
    common = (size > 1e-13) & (size < 1e22)
    single = values[common].astype(np.float32)
    x, short = single.astype(float), values.copy()
    place = np.floor(np.log10(np.abs(x))).astype(int)
    for digits in (9, 8, 7):
        shift = digits - 1 - place
        up, down = _POWERS[np.maximum(shift, 0)], _POWERS[np.maximum(-shift, 0)]
        rounded = np.rint(x / down * up) / up * down
        equal = rounded.astype(np.float32) == single
        short[common] = np.where(equal, rounded, short[common])
    texts = list(map(repr, short.tolist()))
    for k in np.flatnonzero((size > 1e-37) & (size < 1e38) & ~common).tolist():
        texts[k] = str(np.float32(values[k]))
    return texts


def as_text(values: Array, digits: int | None = None, decimal: str = ".") -> list[str]:
    """Numbers as text; NaN is an empty cell.

    Parameters
    ----------
    values : (n,)
    digits : int, optional
        Significant digits; by default the fewest that give the number in single precision.
    decimal : "." or ","
    """
    if digits is None:
        texts = _shortest(values)
    else:
        texts = [f"{value:.{digits}g}" for value in values.tolist()]
    if decimal == ",":
        texts = [text.replace(".", ",") for text in texts]
    for k in np.flatnonzero(np.isnan(values)).tolist():
        texts[k] = ""
    return texts
