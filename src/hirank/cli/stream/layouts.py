"""Detection of the layout of a stream, from its first lines and the columns of the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from hirank.cli.models import match_columns
from hirank.cli.options import RowFormat
from hirank.cli.reporter import Reporter
from hirank.cli.stream.model import StreamModel
from hirank.cli.stream.sources import Line, Lines
from hirank.exceptions import InputError, OutputError, ParameterError
from hirank.io.cell_format import BadLine, CellFormat
from hirank.io.cells import contain_only_numbers, parse_number
from hirank.io.dialect import Dialect, detect_dialect
from hirank.io.rows import (
    STEP,
    Delimited,
    JsonLines,
    Layout,
    Row,
    interval_names,
    parse_object,
    split,
)

if TYPE_CHECKING:
    from hirank.cli.app import Stream

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Detected:
    """The layout of the rows, and what is before them."""

    layout: Layout
    header: str | None = None  # lines that are equal to it are not rows
    top: bytes = b""  # what the output begins with
    added: tuple[str, ...] = ()  # columns of intervals and steps, which the output has at its end

    def parse(self, line: Line) -> tuple[Detected, Row | None]:
        """Return the layout after a line, and its row, None if it has none.

        Raise BadLine, or InputError if it is a header with columns that cannot be used.
        """
        text, is_first = decode_line(line), line.number == 1
        if not text.strip() or text == self.header:
            return self, None
        try:
            row = self.layout.parse(text)
        except BadLine:
            other = read_other_header(self.layout, text, is_first=is_first)
            if other is None:
                raise
        else:  # names may be numbers
            other = read_other_header(self.layout, text, is_row=True) if is_first else None
        if other is None:
            return self, row
        return replace(self, layout=other, header=text), None


@dataclass(frozen=True)
class Detector:
    """Detects the layout of an input, without taking lines from it."""

    options: Stream
    cells: CellFormat
    lines: Lines
    model: StreamModel
    reporter: Reporter

    def detect(
        self, header: str | None = None, output: tuple[str, ...] | None = None
    ) -> Detected | None:
        """Return the layout; None if the input is empty.

        `header` is the first line of an input that is continued further on, and `output` are the
        columns of an output that is.
        """
        detected = self._detect(header)
        added = () if detected is None else detected.added
        if output and added:
            if output[-len(added) :] != added:
                problem = "The file was begun without --interval or --forecast. Omit them, or use "
                raise OutputError(self.options.output, f"{problem}another file.")
            output = output[: -len(added)]
        if output and detected is not None and isinstance(detected.layout, Delimited):
            layout = detected.layout
            return replace(detected, layout=layout.like(layout.names, output))
        return detected

    def _detect(self, header: str | None) -> Detected | None:
        if header is not None:
            return self._detect_csv(header, header.encode() + b"\n")
        first = next((line for line in self.lines.peek() if line.data.strip()), None)
        if first is None:
            return None
        if first.data.startswith(GZIP):
            raise InputError("The input is compressed. Use zcat FILE | hirank stream ...")
        try:
            text = decode_line(first)
        except BadLine as error:
            raise InputError(f"The first line cannot be read: {error}.") from None
        form = self.options.form
        if form is RowFormat.CSV or (form is RowFormat.AUTO and not text.lstrip().startswith("{")):
            return self._detect_csv(text, first.data + (first.ending or b"\n"))
        for name in ("columns", "delimiter"):
            if getattr(self.options, name) is not None:
                raise ParameterError(name, "is for CSV; the input is JSON lines.")
        return Detected(JsonLines(self._json_columns(text), self.cells))

    def _json_columns(self, first: str) -> Sequence[str]:
        if self.model.names is not None:
            with suppress(BadLine):
                match_columns(self.model.names, parse_object(first))
            return self.model.names
        if not self.model.is_new:
            raise InputError(
                "The model has no column names, so keys cannot be matched. Fit it to a table with "
                "column names, or use CSV."
            )

        def numeric(text: str) -> list[str] | None:
            members = parse_object(text)
            value = self.cells.json_value
            return self._numeric({key: partial(value, key, cell) for key, cell in members.items()})

        return self._find_row(numeric)

    def _detect_csv(self, text: str, raw: bytes) -> Detected:
        cells, options = self.cells, self.options
        dialect = detect_dialect(text, delimiter=options.delimiter)
        dialect = replace(dialect, decimal=cells.decimal)
        if options.columns is not None:
            names = tuple(name.strip() for name in options.columns.split(","))
            text, raw = dialect.delimiter.join(names), b""
        else:
            names = self._read_header(text, dialect)
        check_names(names)
        unknown = [name for name in options.ids or () if name not in names]
        if unknown:
            problem = f"names {unknown[0]!r}, but the columns are {', '.join(names)}."
            raise ParameterError("ids", problem)
        wanted = self._csv_columns(names, dialect)
        others = [name for name in names if name not in wanted]
        if others and wanted:
            self.reporter.note(f"Columns that pass through unchanged: {', '.join(others)}.")
        # Names that are numbers, with --columns, may be those of a row.
        is_header = not contain_only_numbers(names, cells.missing, cells.decimal)
        has_steps = options.forecast is not None
        layout = Delimited(names, wanted, dialect, cells, has_steps=has_steps)
        added = () if options.interval is None else interval_names(wanted, cells.aside)
        added += (STEP,) * has_steps
        taken = [name for name in added if name in names]
        if taken:
            option = "--forecast" if taken[0] == STEP else "--interval"
            raise InputError(
                f"The input already has a column {taken[0]!r}, which {option} would add. Omit it."
            )
        if added and raw:
            raw = dialect.delimiter.join([text.rstrip("\r\n"), *added]).encode() + b"\n"
        return Detected(layout, text if is_header else None, raw, added)

    def _read_header(self, text: str, dialect: Dialect) -> tuple[str, ...]:
        try:
            names = _split_cells(text, dialect)
        except BadLine as error:
            raise InputError(f"The header line cannot be read: {error}.") from None
        if contain_only_numbers(names, self.cells.missing, self.cells.decimal):
            raise InputError(
                "The first line contains numbers instead of column names. Pass --columns."
            )
        return names

    def _csv_columns(self, names: tuple[str, ...], dialect: Dialect) -> Sequence[str]:
        """Return the columns of the model, in its order, or those of the first row."""
        if self.model.names is not None:
            match_columns(self.model.names, names)
            return self.model.names
        ids = self.options.ids or ()
        if not self.model.is_new:
            rest = [name for name in names if name not in ids]
            m = self.model.model.n_features_in_
            if len(rest) != m:
                raise InputError(
                    f"The model has {m} columns without names, the input {len(rest)}: "
                    f"{', '.join(rest)}. Pass --id for columns that are not in the model."
                )
            return rest

        def numeric(text: str) -> list[str] | None:
            found = _split_cells(text, dialect)
            if len(found) != len(names) or found == names:
                return None
            pairs = zip(names, found, strict=True)
            return self._numeric(
                {name: partial(self.cells.value, name, cell) for name, cell in pairs}
            )

        return self._find_row(numeric)

    def _numeric(self, parsers: dict[str, Callable[[], float]]) -> list[str]:
        """Return the names of the cells that are a number or missing."""
        names = []
        for name, parse in parsers.items():
            with suppress(BadLine):
                parse()
                names.append(name)
        names = [name for name in names if name not in (self.options.ids or ())]
        aside = dict(zip(("time", "groups"), self.cells.aside, strict=True))
        if not set(names) - {*aside.values()}:
            raise InputError("No column is numeric, so nothing can be imputed.")
        for option, column in aside.items():
            if column is not None and column not in names:
                listed = ", ".join(parsers)
                raise ParameterError(option, f"names {column!r}, but the columns are {listed}.")
        return names

    def _find_row(self, columns: Callable[[str], list[str] | None]) -> Sequence[str]:
        """Return the columns of the first line that is a row; none if there is no row."""
        for line in self.lines.peek():
            with suppress(BadLine):
                text = decode_line(line)
                found = columns(text) if text.strip() else None
                if found is not None:
                    return found
        return ()


def check_names(names: Sequence[str]) -> None:
    """Raise InputError if several columns have the same name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"Several columns are named {', '.join(map(repr, repeated))}.")


def read_other_header(
    layout: Layout, text: str, *, is_first: bool = False, is_row: bool = False
) -> Delimited | None:
    """Return the layout after a line that is another header; None if it is not a header.

    A header has no numbers. It has columns of the model, or as the first line of a file as many
    columns as the header before it; then InputError is raised if no column is of the model. A line
    that could be a row is a header if it has all names of the header before it.
    """
    if not isinstance(layout, Delimited):
        return None
    try:
        names = _split_cells(text, layout.dialect)
    except BadLine:
        return None
    if set(names) != set(layout.names) or len(names) != len(layout.names):
        if is_row:
            return None
        numbers = [parse_number(name, layout.cells.missing, layout.cells.decimal) for name in names]
        if any(number is not None and not math.isnan(number) for number in numbers):
            return None
        is_known = not set(names).isdisjoint(layout.wanted)
        if not is_known and not (is_first and len(names) == len(layout.names)):
            return None
    check_names(names)
    match_columns(layout.wanted, names)
    return layout.with_names(names)


def decode_line(line: Line) -> str:
    """Return the text of a line; raise BadLine."""
    if line.problem:
        raise BadLine(line.problem)
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8 at byte {error.start + 1}") from None
    if "\0" in text:
        raise BadLine("it contains a zero byte")
    return text.removeprefix("\ufeff") if line.number == 1 else text


def _split_cells(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the cells of a line without their quotes; raise BadLine."""
    return tuple(dialect.unquote(raw).strip() for raw in split(text, dialect))
