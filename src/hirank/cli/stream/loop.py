"""The loop of ``hirank stream``: read lines, impute, write, learn, save."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hirank._text import plural
from hirank._typing import Array
from hirank.cli.errors import ExitCode
from hirank.cli.models import describe_lacking
from hirank.cli.options import OnError
from hirank.cli.reporter import Reporter
from hirank.cli.stream.checkpoint import Checkpoint, Output, Position
from hirank.cli.stream.forecast import forecast_groups, render_forecasts
from hirank.cli.stream.layouts import Detected
from hirank.cli.stream.model import MAX_ROWS, StreamModel
from hirank.cli.stream.signals import Signals
from hirank.cli.stream.sources import Line, Lines
from hirank.exceptions import FileError, InputError, OutputError
from hirank.io.cell_format import BadLine
from hirank.io.errors import describe_problem
from hirank.io.rows import Delimited, Row

if TYPE_CHECKING:
    from hirank.cli.app import Stream


class Item(NamedTuple):
    """A line and its row; a header or an empty line has neither a row nor is bad."""

    line: Line
    row: Row | None
    is_bad: bool = False

    @property
    def has_values(self) -> bool:
        """Whether it is a row with an observed value."""
        return self.row is not None and not all(map(math.isnan, self.row.numbers))


@dataclass
class Counts:
    """What `hirank stream` reports at a save and at the end; rows are those of this run."""

    total: int  # rows of all runs
    rows: int = 0
    skipped: int = 0  # lines that could not be read
    warmup_rows: int = 0  # imputed with column means, since there was no model yet
    empty_rows: int = 0  # without observed values
    saved: bool = True
    recent_error: float | None = None
    seconds: float = 0.0


@dataclass
class Session:
    """One run of a stream, from its parts; `top` is what the output begins with."""

    options: Stream
    lines: Lines
    detected: Detected
    model: StreamModel
    output: Output
    checkpoint: Checkpoint
    reporter: Reporter
    stop: Signals
    top: bytes

    def __post_init__(self) -> None:
        last = self.checkpoint.last
        self.counts = Counts(0 if last is None else last.rows)
        self._hold = self.options.hold or not self.lines.is_live
        self._place, self._header = self.lines.start, self.detected.header
        is_continued = self._place is not None and self._place.offset > 0
        self._origin = self.lines.first if is_continued else None  # the file of `_place`
        self._noted: set[str] = set()  # columns
        self._began = time.monotonic()
        self._bad: tuple[Line, str] | None = None  # the line that ends the run
        self._unsaved: OutputError | None = None
        self._is_saved = False
        self._set_next_save()

    def run(self) -> None:
        """Process rows until the input ends or a signal arrives; the state is saved at the end."""
        try:
            if not self.lines.is_file:
                self.save(required=True)
                self._write_top()
            while self._bad is None:
                items = self._gather()
                if not items and (self.lines.ended or self.stop.requested):
                    break
                self._process(items)
                if self.counts.total >= self._next_save:
                    self.save()
            if self.lines.ended and self.top:  # there was no row
                self.save()
                self._write_top()
        except (BrokenPipeError, FileError) as error:
            self.save()
            if isinstance(error, FileError):
                raise
            return  # the reader of the output has ended
        self.save()
        self._write_forecasts()
        self._finish()

    def _write_forecasts(self) -> None:
        """Write the next rows, after what belongs to the saved state: a file has them once."""
        h = self.options.forecast
        if h is None or self._bad is not None or self.stop.requested:
            return
        if not forecast_groups(self.model):
            self.reporter.note("There is no forecast, since no row has arrived.")
            return
        lines = render_forecasts(self.model, self.detected.layout, h)
        with suppress(BrokenPipeError):  # the reader of the output has ended
            self._write("".join(f"{line}\n" for line in lines).encode())

    def _finish(self) -> None:
        self._report_end()
        if self._bad is not None:
            line, reason = self._bad
            raise InputError(
                f"Line {line.number}: {reason}. Stopped before this line; the state is saved."
            )
        if self._unsaved is not None:
            problem = f"{self._unsaved.problem} The model file is that of the last save."
            raise OutputError(self._unsaved.path, problem)
        if self.stop.number == signal.SIGINT:
            raise SystemExit(int(ExitCode.INTERRUPTED))
        if self.counts.skipped and not self.counts.rows:
            raise InputError("No line could be read as a row.")

    def _gather(self) -> list[Item]:
        """Return the lines to process next, parsed."""
        room = self.model.room
        if not (self.model.is_fitted or self.model.frozen):
            if self._hold:
                return self._gather_first(room)
            room = 1
        most = min(room, MAX_ROWS, self._next_save - self.counts.total)
        return self._parse(self.lines.take(most, whole=not self.lines.is_live))

    def _gather_first(self, room: int) -> list[Item]:
        """Return as many rows as the first fit requires, or all there are."""
        items: list[Item] = []
        while room > 0 and self._bad is None:
            try:
                lines = self.lines.take(room, whole=True)
            except FileError:
                if not items:
                    raise
                break  # these first; then the error is raised again
            if not lines:
                break
            new = self._parse(lines, pending=bool(items))
            room -= sum(item.has_values for item in new)
            items += new
        if self.stop.requested and self.lines.is_file:
            self._bad = None
            return []  # nothing was written: the next run begins at the start
        return items

    def _parse(self, lines: Sequence[Line], *, pending: bool = False) -> list[Item]:
        """Return lines up to one that ends the run; `pending` ones were not processed yet."""
        items: list[Item] = []
        for line in lines:
            try:
                self.detected, row = self.detected.parse(line)
                item = Item(line, row)
            except InputError as error:  # columns that cannot be used
                self._bad = (line, str(error).removesuffix("."))
                break
            except BadLine as error:
                if self.options.on_error is OnError.STOP:
                    self._bad = (line, str(error))
                    break
                self._report_bad(line.number, str(error))
                item = Item(line, None, is_bad=True)
            if (item.row is not None or item.is_bad) and not pending:
                self._begin_file(line)
            items.append(item)
        self._note_columns()
        return items

    def _begin_file(self, line: Line) -> None:
        """Save the start of a file before its first row is processed: it is then known."""
        is_new = line.origin is not self._origin
        if line.origin is not None and is_new:
            self._place, self._origin = line.origin.start(line.offset), line.origin
        if is_new or not self._is_saved:
            self.save(required=True)

    def _note_columns(self) -> None:
        """Report, once each, columns that the input lacks and columns that are not written."""
        layout = self.detected.layout
        lacking = sorted(layout.absent - self._noted)
        dropped = layout.dropped if isinstance(layout, Delimited) else ()
        dropped = tuple(name for name in dropped if name not in self._noted)
        self._noted |= {*lacking, *dropped}
        if lacking:
            self.reporter.note(describe_lacking(lacking))
        if dropped:
            names = ", ".join(dropped)
            self.reporter.note(f"Columns that the output did not begin with are left out: {names}.")

    def _process(self, items: list[Item]) -> None:
        """Impute rows, write them, and learn from them."""
        layout, rows = self.detected.layout, [item.row for item in items if item.row is not None]
        X = np.array([row.numbers for row in rows]).reshape(len(rows), len(layout.wanted))
        was_fitted, self.model.wanted = self.model.is_fitted, layout.wanted
        has_rows = any(item.row is not None or item.is_bad for item in items)
        if has_rows:
            self._write_top()
        labels = [row.label for row in rows]
        filled, ends = self.model.impute(X, labels) if rows else (X, None)
        self._write(self._render(items, filled, ends))
        if rows:
            self.model.learn(X, labels)
            if not was_fitted and not (self._hold and self.model.is_fitted):
                self.counts.warmup_rows += len(rows)
            self.counts.empty_rows += len(rows) - sum(item.has_values for item in items)
        self.counts.total += len(rows)
        self.counts.rows += len(rows)
        origin = items[-1].line.origin if items else None
        if items and (has_rows or origin is self._origin):
            self._place, self._header = items[-1].line.place, self.detected.header
            if origin is not self._origin:  # rows that were held back, of more than one file
                self._origin, self._next_save = origin, self.counts.total
        self.reporter.status(self._describe)

    def _render(self, items: list[Item], filled: Array, ends: Array | None) -> bytes:
        """Return rows with their imputed values, and lines that are written as they are."""
        both = repeat(None) if ends is None else zip(*ends.tolist(), strict=True)
        pieces, values = [], iter(zip(filled.tolist(), both, strict=False))
        for line, row, is_bad in items:
            if row is not None:
                text = self.detected.layout.render(row, *next(values))
                pieces += [text.encode(), line.ending or b"\n"]
            elif is_bad and self.options.on_error is OnError.KEEP:
                pieces += [line.data, line.ending or b"\n"]
        return b"".join(pieces)

    def _write_top(self) -> None:
        self._write(self.top)
        self.top = b""

    def _write(self, data: bytes) -> None:
        try:
            self.output.write(data)
        except OSError as error:
            self.model.undo()
            if isinstance(error, BrokenPipeError):
                raise
            problem = f"{describe_problem(error)} Then repeat the command, which continues here."
            raise OutputError(self.output.name, problem) from None

    def _set_next_save(self) -> None:
        every = self.options.save_every
        self._next_save = (self.counts.total // every + 1) * every

    def save(self, *, required: bool = False) -> None:
        """Save the state; if that fails, raise OutputError, or report it and try again later."""
        counts = self.counts
        self._set_next_save()
        if self.lines.is_file and self._origin is None and not self.lines.ended:
            return  # a file without a row would not be recognized after it was truncated
        if self.model.frozen and not self.lines.is_file and self.output.path is None:
            return  # between two pipes there is nothing to save
        changed = None if self.model.frozen or not counts.rows else self.model.model
        layout = self.detected.layout
        columns = None
        if isinstance(layout, Delimited):
            columns = (*layout.output, *self.detected.added)
        ahead = 0
        if self.lines.ended and self.options.forecast is not None:
            ahead = self.options.forecast * len(forecast_groups(self.model))
        output = self.output.place()
        position = Position(counts.total, self._header, columns, self._place, output, ahead)
        try:
            self.checkpoint.save(position, changed)
        except OutputError as error:
            if required:
                raise
            self._unsaved = error
            problem = f"The state could not be saved: {error} The next save may succeed."
            self.reporter.event("warning", f"hirank: {problem}", message=problem)
        else:
            self._unsaved, self._is_saved = None, True
            if counts.rows:
                self.reporter.event("saved", "", **self._facts())

    def _facts(self) -> dict[str, Any]:
        self.counts.saved = self._unsaved is None
        self.counts.recent_error = self.model.recent_error
        self.counts.seconds = round(time.monotonic() - self._began, 3)
        return asdict(self.counts)

    def _describe(self) -> str:
        counts, error = self.counts, self.model.recent_error
        text = f"Imputed {plural(counts.rows, 'row')}"
        text += f", {plural(counts.skipped, 'line')} could not be read" if counts.skipped else ""
        return text + ("" if error is None else f"; recent error {error:.3g} (column mean = 1)")

    def _report_bad(self, number: int, reason: str) -> None:
        self.counts.skipped += 1
        action = "kept" if self.options.on_error is OnError.KEEP else "skipped"
        text = f"hirank: line {number} {action}: {reason}"
        self.reporter.event("bad line", text, line=number, reason=reason)

    def _report_end(self) -> None:
        counts, reporter = self.counts, self.reporter
        early, empty = plural(counts.warmup_rows, "row"), plural(counts.empty_rows, "row")
        if counts.warmup_rows and not reporter.as_json:
            reporter.note(
                f"Imputed {early} that arrived before the first fit with column means. Start with "
                "a model (hirank fit), or pass --hold."
            )
        if counts.empty_rows and not reporter.as_json:
            reporter.note(f"Imputed {empty} without observed values with column means.")
        if reporter.as_json or not reporter.quiet:
            reporter.event("end", f"{self._describe()}.", **self._facts())
