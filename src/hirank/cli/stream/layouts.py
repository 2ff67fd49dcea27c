"""How the lines of a stream are laid out: found out by its first lines and the model's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hirank.cli.errors import USAGE, Failure
from hirank.cli.stream.lines import (
    BadLine,
    CellFormat,
    Delimited,
    JsonLines,
    Layout,
    parse_object,
    split,
)
from hirank.cli.stream.loop import text_of
from hirank.cli.stream.model import Completer
from hirank.cli.stream.sources import Line, Lines
from hirank.io.cells import contain_only_numbers
from hirank.io.dialect import Dialect, detect_dialect

GZIP = b"\x1f\x8b"


class Reading(NamedTuple):
    """What the user says of the input."""

    form: str
    columns: str | None
    ids: tuple[str, ...]
    delimiter: str | None
    cells: CellFormat
    say: Callable[[str], None]


class Look(NamedTuple):
    """What a first look tells."""

    layout: Layout
    header: str | None  # lines like this are no rows
    top: bytes  # what the output begins with


def first_look(
    reading: Reading, lines: Lines, completer: Completer, header: str | None = None
) -> Look | None:
    """Find out about the input, without taking anything from it; None if there is nothing.

    `header` is the first line as it was known before, if the input goes on from further on.
    """
    if header is not None:
        return _csv_look(reading, lines, completer, header, header.encode() + b"\n")
    first = _peek(lines)
    if first is None:
        return None
    if first.data.startswith(GZIP):
        raise Failure("The input is compressed: zcat FILE | hirank stream ...")
    try:
        text = text_of(first)
    except BadLine as error:
        raise Failure(f"The first line can't be read: {error}.") from None
    looks_json = text.lstrip().startswith("{")
    if reading.form == "jsonl" or (reading.form == "auto" and looks_json):
        if reading.columns is not None or reading.delimiter is not None:
            raise Failure("--columns and --delimiter are for CSV, not for JSON.", USAGE)
        return _json_look(reading, lines, completer)
    return _csv_look(reading, lines, completer, text, first.data + (first.ending or b"\n"))


def _json_look(reading: Reading, lines: Lines, completer: Completer) -> Look:
    if completer.names is not None:
        return Look(JsonLines(completer.names, reading.cells), None, b"")
    if hasattr(completer.model, "n_features_in_"):
        raise Failure(
            "The model knows no column names, so keys can't be matched: fit it from a table with "
            "names, or send CSV."
        )

    def columns(text: str) -> list[str]:
        number, members = reading.cells.json_number, parse_object(text)
        checks = [(key, partial(number, value)) for key, value in members.items()]
        return _numeric(checks, reading.ids)

    wanted = _by_first_row(lines, columns) or []
    return Look(JsonLines(wanted, reading.cells), None, b"")


def _csv_look(reading: Reading, lines: Lines, completer: Completer, text: str, raw: bytes) -> Look:
    cells = reading.cells
    dialect = replace(detect_dialect(text, delimiter=reading.delimiter), decimal=cells.decimal)
    if reading.columns is not None:
        names = tuple(name.strip() for name in reading.columns.split(","))
        header, top = dialect.delimiter.join(names), b""
    else:
        try:
            names = _names(text, dialect)
        except BadLine as error:
            raise Failure(f"The header line can't be read: {error}.") from None
        header, top = text, raw
        if contain_only_numbers(names, cells.missing, cells.decimal):
            raise Failure(
                "The first line holds numbers instead of names: give --columns with the names."
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Failure(f"Column names must differ; twice or more: {', '.join(map(repr, twice))}.")
    for name in reading.ids:
        if name not in names:
            raise Failure(f"--id {name}: there is no such column. There are {', '.join(names)}.")
    if hasattr(completer.model, "n_features_in_"):
        wanted: Sequence[str] | None = _matched(names, completer, reading.ids)
    else:
        wanted = _by_first_row(lines, lambda line: _csv_numeric(line, names, dialect, reading))
    if wanted is None:
        return Look(Delimited(names, (), dialect, cells), header, top)
    others = [name for name in names if name not in wanted]
    if others:
        reading.say(f"Passed through as they are: {', '.join(others)}.")
    numeric = contain_only_numbers(names, cells.missing, cells.decimal)
    layout = Delimited(names, wanted, dialect, cells)
    return Look(layout, None if numeric else header, top)


def _csv_numeric(
    text: str, names: tuple[str, ...], dialect: Dialect, reading: Reading
) -> list[str] | None:
    cells = _names(text, dialect)
    if len(cells) != len(names) or cells == names:
        return None
    number = reading.cells.number
    checks = [(name, partial(number, cell)) for name, cell in zip(names, cells, strict=True)]
    return _numeric(checks, reading.ids)


def _names(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the cells of a line without their quotes; raise BadLine."""
    return tuple(dialect.unquote(raw).strip() for raw in split(text, dialect))


def _numeric(checks: Sequence[tuple[str, Callable[[], float]]], ids: Sequence[str]) -> list[str]:
    """Names of the columns that hold a number or nothing."""
    names = []
    for name, check in checks:
        with suppress(BadLine):
            check()
            names.append(name)
    names = [name for name in names if name not in ids]
    if not names:
        raise Failure("No column holds numbers: there is nothing to complete.")
    return names


def _by_first_row(lines: Lines, columns: Callable[[str], list[str] | None]) -> list[str] | None:
    """The columns of the first line that is a row; None if there is none."""
    taken: list[Line] = []
    found = None
    while found is None and (line := lines.take(1)):
        taken += line
        try:
            text = text_of(line[0])
            found = columns(text) if text.strip() else None
        except BadLine:
            continue
    lines.put_back(taken)
    return found


def _matched(names: Sequence[str], completer: Completer, ids: Sequence[str]) -> Sequence[str]:
    """The columns of the model, in its order."""
    own = completer.names
    if own is None:
        rest = [name for name in names if name not in ids]
        m = completer.model.n_features_in_
        if len(rest) != m:
            raise Failure(
                f"The model has {m} columns without names, the input {len(rest)}: "
                f"{', '.join(rest)}. Name those that are not the model's with --id."
            )
        return rest
    lacking = [name for name in own if name not in names]
    if lacking:
        more = [name for name in names if name not in own]
        raise Failure(
            f"The input does not have the columns of the model. Lacking: {', '.join(lacking)}. "
            f"Not in the model: {', '.join(more) or 'none'}. Rename columns, or add empty ones."
        )
    return own


def _peek(lines: Lines) -> Line | None:
    """The first line that is not blank; it stays to be taken."""
    taken: list[Line] = []
    while line := lines.take(1):
        taken += line
        if line[0].data.strip():
            lines.put_back(taken)
            return taken[-1]
    return None
