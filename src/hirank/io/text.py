"""Tables as text: CSV, TSV and the like, compressed or not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hirank.io.cells import Parsed, is_number, parse
from hirank.io.dialect import Dialect, sniff
from hirank.io.errors import FileError, Path
from hirank.io.source import Source
from hirank.io.table import Cells, Options, TableFile

__all__ = ["TextCells", "TextFile", "column_names"]

_SEGMENT = 8192  # rows whose cells are Python strings at one time


class TextCells(Cells):
    """Rows as the records of a text file, cut into cells when asked."""

    def __init__(self, file: TextFile, records: list[str], first_row: int, first_line: int) -> None:
        self.file = file
        self.records = records
        self.first_row = first_row
        self._first_line = first_line

    def __len__(self) -> int:
        return len(self.records)

    def line(self, row: int) -> int:
        newline = self.file.dialect.newline
        return self._first_line + sum(record.count(newline) for record in self.records[:row])

    def column(self, index: int) -> Sequence[str]:
        return [self.file.dialect.cells(record)[index] for record in self.records]

    def texts(self, index: int) -> list[str]:
        return list(self.column(index))

    def parse(self, columns: Sequence[int]) -> list[Parsed]:
        n, options, dialect = len(self.records), self.file.options, self.file.dialect
        found = [Parsed(np.empty(n), 0) for _ in columns]
        for start in range(0, n, _SEGMENT):
            cells = self._columns(start, start + _SEGMENT)
            for j, total in zip(columns, found, strict=True):
                if total.values is None:
                    continue
                part = parse(cells[j], options.missing, dialect.decimal)
                total.values[start : start + _SEGMENT] = part.values
                total.follow(part, start)
                if total.hopeless:
                    total.values = None
        return found

    def _columns(self, start: int, stop: int) -> Sequence[Sequence[str]]:
        """The cells of some rows, column by column."""
        dialect, wanted = self.file.dialect, len(self.file.names)
        records = self.records[start:stop]
        plain = _plain(records, dialect, wanted)
        if plain is not None:
            return plain
        rows = [dialect.cells(record) for record in records]
        for i, width in enumerate(map(len, rows)):
            if width != wanted:
                raise FileError(
                    f"{self.file.path}, line {self.line(start + i)}: {width} cells, but the "
                    f"first row has {wanted}; correct the line (is a delimiter missing or "
                    "unquoted?), or name the delimiter"
                )
        return list(zip(*rows, strict=True))


class TextFile(TableFile):
    """A text table; see `open_table`."""

    format = "csv"

    def __init__(self, path: Path, options: Options) -> None:
        if options.delimiter is not None and (
            len(options.delimiter) != 1 or options.delimiter in '"\r\n'
        ):
            raise FileError(
                f"{path}: a delimiter is one character, not {options.delimiter!r}; "
                'use "," or ";" or a tab'
            )
        self.source = Source(path, options.encoding, again=options.numeric is None)
        try:
            names = self._start(path, options)
            super().__init__(path, names, options)
        except BaseException:
            self.source.close()
            raise

    def close(self) -> None:
        self.source.close()

    def _start(self, path: Path, options: Options) -> list[str]:
        """Find the dialect and the names of the columns."""
        source, head = self.source, self.source.head
        body = head.lstrip("\r\n")
        if not body.strip():
            raise FileError(f"{path}: the file is empty; it needs a row of names and rows of cells")
        suffixes = os.fspath(path).lower().removesuffix(".gz").rpartition(".")
        delimiter = options.delimiter or ("\t" if suffixes[2] == "tsv" else None)
        line, _, after = body.partition("\n")
        if line[:4].lower() == "sep=" and len(line.rstrip("\r")) == 5:  # Excel's own hint
            delimiter, body = options.delimiter or line[4], after
        self.preamble = head[: len(head) - len(body)]
        self.dialect = sniff(
            body,
            delimiter=delimiter,
            newline=source.newline,
            whitespace=suffixes[2] in ("txt", "dat"),
        )
        first = self._first_record(path, body)
        cells = [cell.strip() for cell in self.dialect.cells(first)]
        names = column_names(path, cells, options)
        self.header = ""
        if options.header:
            rest = body[len(first) :]
            blank = len(rest) - len(rest.lstrip("\r\n")) if len(cells) > 1 else 0
            self.header = first + rest[:blank]
        self._unnamed = [n for n, c in zip(names, cells, strict=True) if options.header and not c]
        return names

    def _first_record(self, path: Path, body: str) -> str:
        record, inside = "", False
        for line in body.split(self.dialect.newline):
            record += line + self.dialect.newline
            inside = self.dialect.leaves_open(line, inside)
            if not inside:
                return record if len(record) <= len(body) else body
        raise FileError(
            f"{path}, line {1 + self.preamble.count(self.dialect.newline)}: a quote is opened and "
            "never closed; close it, or double a quote that is meant as such"
        )

    def _never_numeric(self) -> Iterable[str]:
        return self._unnamed

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        newline = self.dialect.newline
        skip = len(self.preamble) + len(self.header)
        line = 1 + self.preamble.count(newline) + self.header.count(newline)
        first, records = 0, list[str]()
        for block in self.source.records(self.dialect, blank_rows=len(self.names) == 1):
            if skip:
                block, skip = _without_start(block, skip)
            records += block
            while rows is not None and len(records) >= rows:
                yield TextCells(self, records[:rows], first, line)
                line += sum(record.count(newline) for record in records[:rows])
                first += rows
                records = records[rows:]
        if records or rows is None:
            yield TextCells(self, records, first, line)


def _plain(records: list[str], dialect: Dialect, wanted: int) -> list[list[str]] | None:
    """The columns of records without quotes and blank lines, all cut at once."""
    text, delimiter = "".join(records), dialect.delimiter
    if dialect.spaces or dialect.quote in text:
        return None
    if any(record.count(delimiter) != wanted - 1 for record in records):
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n") if dialect.newline == "\n" else text.replace("\r", "\n")
    cells = text.removesuffix("\n").replace("\n", delimiter).split(delimiter)
    if len(cells) != wanted * len(records):
        return None
    return [cells[j::wanted] for j in range(wanted)]


def _without_start(records: list[str], skip: int) -> tuple[list[str], int]:
    """The records after the first `skip` characters."""
    for i, record in enumerate(records):
        if skip < len(record):
            return records[i:], 0
        skip -= len(record)
    return [], skip


def column_names(path: Path, cells: Sequence[str], options: Options) -> list[str]:
    """The names of the columns from the cells of the first row."""
    numbered = [f"column {j}" for j in range(1, len(cells) + 1)]
    if not options.header:
        return numbered
    known = [cell for cell in cells if not options.missing.word(cell)]
    if known and all(map(is_number, known)):
        raise FileError(
            f"{path}: the first row holds numbers only; add a row of column names above it, "
            "or say that there is none (header=False, --no-header)"
        )
    if cells.count("") == 1:
        return list(cells)
    return [cell or number for cell, number in zip(cells, numbered, strict=True)]
