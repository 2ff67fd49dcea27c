"""Tables as text: CSV, TSV and the like, compressed or not, read and written byte by byte."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._integers import are_whole
from hirank._text import plural
from hirank._typing import Array, PathLike
from hirank.exceptions import FileError, OutputError
from hirank.io.cells import Column, find_notation, format_numbers, parse_column
from hirank.io.dialect import Dialect, check_delimiter, detect_dialect
from hirank.io.memory import CELL
from hirank.io.notation import PLAIN, Notation
from hirank.io.output import Writer
from hirank.io.source import Source
from hirank.io.table import Cells, ReadOptions, Table, TableFile, name_columns

_MAX_HEADER = 1 << 20  # characters
_STRING = 64  # bytes of a string in a list, beside its characters
_SEGMENT = 8192  # rows whose cells are Python strings at one time


class TextCells(Cells):
    """Rows as the records of a text file, split into cells on demand."""

    def __init__(self, file: TextFile, records: list[str], first_row: int, first_line: int) -> None:
        self.file, self.records, self.first_row = file, records, first_row
        self._first_line, self.decimal = first_line, file.dialect.decimal

    def __len__(self) -> int:
        return len(self.records)

    def line(self, row: int) -> int:
        newline = self.file.dialect.newline
        return self._first_line + sum(record.count(newline) for record in self.records[:row])

    def column(self, index: int) -> list[str]:
        return [self.file.dialect.cells(record)[index] for record in self.records]

    def notation(self, index: int) -> Notation:
        return self.file.notations.get(index, PLAIN)

    def parse(self, columns: Sequence[int]) -> list[Column]:
        n = len(self.records)
        found = [Column(np.empty(n)) for _ in columns]
        for start in range(0, n, _SEGMENT):
            cells = self._columns(start, start + _SEGMENT)
            for j, total in zip(columns, found, strict=True):
                if total.values is None:
                    continue
                part = self._parse_part(j, cells[j])
                total.values[start : start + _SEGMENT] = part.values
                total.extend(part, start)
                if total.is_text:
                    total.values = None
        return found

    def _parse_part(self, j: int, cells: Sequence[str]) -> Column:
        """Return a part of a column, in the notation that the file has had there so far.

        Where numbers follow another notation from some row on, marks of thousands may be new, but
        not a unit: the numbers before have none.
        """
        notations, missing = self.file.notations, self.file.options.missing
        decimal = self.file.dialect.decimal
        before = notations.get(j)
        part = parse_column(cells, missing, decimal, before or PLAIN)
        if part.n_invalid and (before is None or before == PLAIN):
            found = find_notation(cells, missing, decimal)
            if found is not None and not (before == PLAIN and found.has_unit):
                notations[j] = found
                return parse_column(cells, missing, decimal, found)
        if before is None and part.n_observed:
            notations[j] = PLAIN
        return part

    def _columns(self, start: int, stop: int) -> Sequence[Sequence[str]]:
        """Return the cells of some rows, column by column."""
        dialect, width = self.file.dialect, len(self.file.names)
        rows = [dialect.cells(record) for record in self.records[start:stop]]
        for i, row in enumerate(rows):
            if len(row) != width:
                raise FileError(
                    self.file.path,
                    f"Line {self.line(start + i)} has {plural(len(row), 'cell')}, but the first "
                    f"row has {width}. Correct the line (a delimiter may be missing or unquoted), "
                    "or give the delimiter.",
                )
        return list(zip(*rows, strict=True))


class TextFile(TableFile):
    """A text table; see `open_table`.

    Attributes
    ----------
    dialect : Dialect
    source : Source
    preamble, header : str
        What precedes the names of the columns, and their record; empty if there is none.
    notations : dict of int to Notation
        How the numbers of the columns that were parsed so far are written.
    """

    format = "csv"

    def __init__(self, path: PathLike, options: ReadOptions) -> None:
        check_delimiter(options.delimiter)
        self.source = Source(path, options.encoding)
        self.notations: dict[int, Notation] = {}
        try:
            cells = self._read_header(path, options)
            columns = name_columns(path, cells, options)
            super().__init__(path, columns.names, options, columns.unnamed)
            self.numbered = columns.numbered
        except BaseException:
            self.source.close()
            raise

    def close(self) -> None:
        self.source.close()

    def _read_header(self, path: PathLike, options: ReadOptions) -> list[str]:
        """Detect the dialect, and return the cells of the first row."""
        head = self.source.head
        body = head.lstrip("\r\n")
        if not body.strip():
            raise FileError(path, "The file is empty. Add a row of column names and rows of cells.")
        suffix = _suffix(path)
        delimiter = options.delimiter or ("\t" if suffix == "tsv" else None)
        line, _, after = body.partition("\n")
        if line[:4].lower() == "sep=" and len(line.rstrip("\r")) == 5:  # written by Excel
            delimiter, body = options.delimiter or line[4], after
        self.preamble = head[: len(head) - len(body)]
        self.dialect = detect_dialect(
            body, delimiter=delimiter, newline=self.source.newline, spaces=suffix in ("txt", "dat")
        )
        first = self._first_record()
        if options.header and len(first) > _MAX_HEADER:
            raise FileError(
                path,
                f"The first row is longer than {_MAX_HEADER >> 20} MiB, too long for the names of "
                "columns. Check the line ends and the quotes, or read the file without a header "
                "(header=False, --no-header).",
            )
        cells = [cell.strip() for cell in self.dialect.cells(first)]
        self.header = ""
        if options.header:
            rest = body[len(first) :]
            n_empty = len(rest) - len(rest.lstrip("\r\n")) if len(cells) > 1 else 0
            self.header = first + rest[:n_empty]
        return cells

    def _first_record(self) -> str:
        skip = len(self.preamble)
        for block in self.source.records(self.dialect, empty_rows=True):
            for record in block:
                if not skip:
                    return record
                skip -= len(record)
        return ""

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        newline = self.dialect.newline
        skip = len(self.preamble) + len(self.header)
        line = 1 + self.preamble.count(newline) + self.header.count(newline)
        first, records, size = 0, list[str](), 0
        per_record = _STRING + CELL * len(self.names)
        for block in self.source.records(self.dialect, empty_rows=len(self.names) == 1):
            while skip and block:
                skip = max(skip - len(block.pop(0)), 0)
            records += block
            size = size * (rows is None) + sum(map(len, block)) + len(block) * per_record
            self.options.memory.check(self.path, size)
            while rows is not None and len(records) >= rows:
                yield TextCells(self, records[:rows], first, line)
                line += sum(record.count(newline) for record in records[:rows])
                first += rows
                records = records[rows:]
        if records or rows is None:
            yield TextCells(self, records, first, line)


class TextWriter(Writer):
    """Write CSV and the like, in the dialect of the input if that is text."""

    writes_streams = True

    def __init__(self, path: PathLike, like: TableFile, **options: Any) -> None:
        super().__init__(path, like, **options)
        suffix = _suffix(path)
        self._dialect = Dialect(delimiter="\t" if suffix == "tsv" else ",")
        self._encoding = "utf-8"
        self._source = like if isinstance(like, TextFile) and _keeps_dialect(like, suffix) else None
        if self._source is not None:
            self._dialect = self._source.dialect
            self._encoding = self._source.source.encoding
        self._started = self._ends_open = False

    def _write(self, table: Table, filled: Array, extra: Mapping[str, Array]) -> None:
        self._start()
        dialect = self._dialect
        if self._source is not None and isinstance(table.cells, TextCells):
            lines = self._refill_records(table, table.cells.records, filled)
        else:
            lines = self._make_records(table, filled)
        if extra:
            texts = [format_numbers(a, self.digits, dialect.decimal) for a in extra.values()]
            rows = zip(*texts, strict=True)
            lines = [dialect.append(line, row) for line, row in zip(lines, rows, strict=True)]
        if self._ends_open and lines:
            self._put(dialect.newline)
        self._ends_open = bool(lines) and not lines[-1].endswith(dialect.newline)
        self._put("".join(lines))

    def _refill_records(self, table: Table, records: list[str], filled: Array) -> list[str]:
        """Return the records of the input with numbers in their missing cells."""
        dialect, lines, texts = self._dialect, list(records), self._format(table, filled)
        places = [table.names.index(name) for name in table.numeric]
        imputed = ~np.isnan(filled)
        for i in np.flatnonzero(imputed.any(axis=1)).tolist():
            cells, end = dialect.split(records[i])
            for j in np.flatnonzero(imputed[i]).tolist():
                cells[places[j]] = dialect.refill(cells[places[j]], texts[i, j])
            lines[i] = dialect.join(cells) + end
        return lines

    def _make_records(self, table: Table, filled: Array) -> list[str]:
        """Return records of a table that comes from another format, or another dialect."""
        dialect, texts, columns = self._dialect, self._format(table, filled), []
        comma, notations = table.cells.decimal == ",", table.notations
        for index, name in enumerate(table.names):
            cells = table.cells.texts(index)
            if name in table.numeric:
                j = table.numeric.index(name)
                if comma and name not in notations:
                    cells = [cell.replace(",", ".") for cell in cells]
                # The words for a missing value are those of the input; here it is an empty cell.
                known = ~np.isnan(table.numbers[:, j])
                cells = np.where(known, np.array(cells, dtype=object), texts[:, j]).tolist()
            columns.append([dialect.enquote(cell) for cell in cells])
        if len(columns) == 1:  # not every program takes an empty line for a row
            columns = [[cell or dialect.quote * 2 for cell in columns[0]]]
        return [dialect.join(row) + dialect.newline for row in zip(*columns, strict=True)]

    def _format(self, table: Table, filled: Array) -> NDArray[Any]:
        """Return the imputed values as text, n x v; elsewhere an empty string."""
        texts, imputed = np.full(filled.shape, "", dtype=object), ~np.isnan(filled)
        texts[imputed] = format_numbers(filled[imputed], self.digits, self._dialect.decimal)
        integral = np.array([name in table.types.integral for name in table.numeric], dtype=bool)
        whole = are_whole(filled) & integral
        texts[whole] = [str(int(value)) for value in filled[whole]]
        decimal = table.cells.decimal
        for name, notation in table.notations.items():
            j = table.numeric.index(name)
            own = [text.replace(self._dialect.decimal, decimal) for text in texts[:, j]]
            texts[:, j] = [notation.write(text, decimal) for text in own]
        return texts

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        self._stream: Any = self._file
        if os.fspath(self.path).lower().endswith(".gz"):
            compressed = gzip.GzipFile("", "wb", 6, self._file, mtime=0)
            self._stream = self._stack.enter_context(compressed)
        dialect, source, names = self._dialect, self._source, list(self._extra or ())
        if source is None:
            if self.like.options.header:
                names = list(map(dialect.enquote, self._names()))
                self._put(dialect.join(names) + dialect.newline)
            return
        header = source.header
        if header and names:
            header = dialect.append(header, list(map(dialect.enquote, names)))
        self._ends_open = bool(header) and not header.endswith(dialect.newline)
        self._put(source.preamble + header, source.source.bom)

    def _put(self, text: str, before: bytes = b"") -> None:
        try:
            data = before + text.encode(self._encoding)
        except UnicodeEncodeError as error:
            problem = f"Cannot write {error.object[error.start]!r} as {self._encoding} text."
            raise OutputError(self.path, f"{problem} Use --encoding utf-8.") from error
        self._stream.write(data)

    def _finish(self) -> None:
        self._start()  # a table without rows still has a header


def _suffix(path: PathLike) -> str:
    return os.fspath(path).lower().removesuffix(".gz").rpartition(".")[2]


def _keeps_dialect(like: TextFile, suffix: str) -> bool:
    """Return whether a file with this extension is written in the dialect of the input."""
    if suffix == _suffix(like.path):
        return True
    tabs = like.dialect.delimiter == "\t"
    return tabs if suffix == "tsv" else suffix != "csv" or not (tabs or like.dialect.spaces)
