"""The loop of ``hirank stream``: read lines, impute, write, learn, save."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hirank._text import plural
from hirank.cli.errors import ExitCode
from hirank.cli.options import OnError
from hirank.cli.reporter import Reporter
from hirank.cli.stream.checkpoint import Checkpoint, Output, Position
from hirank.cli.stream.layouts import Detected, decode_line
from hirank.cli.stream.model import MAX_ROWS, StreamModel
from hirank.cli.stream.signals import Signals
from hirank.cli.stream.sources import Line, Lines
from hirank.exceptions import FileError, InputError, OutputError
from hirank.io.rows import BadLine, Row

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
        self._place = self.lines.start
        self._began = time.monotonic()
        self._bad: tuple[Line, str] | None = None  # the line that ends the run
        self._unsaved: OSError | None = None
        self._next_save = 0

    def run(self) -> None:
        """Process rows until the input ends or a signal arrives; the state is saved at the end."""
        self.save()
        if self._unsaved is not None:
            raise OutputError(self.checkpoint.path, f"{self._unsaved.strerror}.")
        try:
            self._write(self.top)
            while self._bad is None:
                items = self._gather()
                if not items and (self.lines.ended or self.stop.requested):
                    break
                self._process(items)
                if self.counts.total >= self._next_save:
                    self.save()
        except (BrokenPipeError, FileError) as error:
            self.save()
            if isinstance(error, FileError):
                raise
            return  # the reader of the output has ended
        self.save()
        self._finish()

    def _finish(self) -> None:
        self._report_end()
        if self._bad is not None:
            line, reason = self._bad
            raise InputError(
                f"Line {line.number}: {reason}. Stopped before this line; the state is saved."
            )
        if self._unsaved is not None:
            problem = f"{self._unsaved.strerror}. The model file is that of the last save."
            raise OutputError(self.checkpoint.model, problem)
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
            lines = self.lines.take(room, whole=True)
            if not lines:
                break
            new = self._parse(lines)
            room -= sum(item.has_values for item in new)
            items += new
        if self.stop.requested and self.lines.is_file:
            self._bad = None
            return []  # nothing was written: the next run begins at the start
        return items

    def _parse(self, lines: Sequence[Line]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            try:
                text = decode_line(line)
                is_row = text.strip() and text != self.detected.header
                items.append(Item(line, self.detected.layout.parse(text) if is_row else None))
            except BadLine as error:
                if self.options.on_error is OnError.STOP:
                    self._bad = (line, str(error))
                    break
                self._report_bad(line.number, str(error))
                items.append(Item(line, None, is_bad=True))
        return items

    def _process(self, items: list[Item]) -> None:
        """Impute rows, write them, and learn from them."""
        layout, rows = self.detected.layout, [item.row for item in items if item.row is not None]
        X = np.array([row.numbers for row in rows]).reshape(len(rows), len(layout.wanted))
        was_fitted = self.model.is_fitted
        self._write(self._render(items, self.model.impute(X).tolist() if rows else []))
        if rows:
            self.model.learn(X)
            if self.model.names is None and not self.model.frozen:
                self.model.set_names(layout.wanted)
            if not was_fitted and not (self._hold and self.model.is_fitted):
                self.counts.warmup_rows += len(rows)
            self.counts.empty_rows += len(rows) - sum(item.has_values for item in items)
        self.counts.total += len(rows)
        self.counts.rows += len(rows)
        if items:
            self._place = items[-1].line.place
        self.reporter.status(self._describe)

    def _render(self, items: list[Item], filled: list[list[float]]) -> bytes:
        """Return rows with their imputed values, and lines that are written as they are."""
        pieces, values = [], iter(filled)
        for line, row, is_bad in items:
            if row is not None:
                text = self.detected.layout.render(row, next(values))
                pieces += [text.encode(), line.ending or b"\n"]
            elif is_bad and self.options.on_error is OnError.KEEP:
                pieces += [line.data, line.ending or b"\n"]
        return b"".join(pieces)

    def _write(self, data: bytes) -> None:
        try:
            self.output.write(data)
        except OSError as error:
            self.model.undo()
            if isinstance(error, BrokenPipeError):
                raise
            problem = f"{error.strerror}. Correct this and repeat the command, which continues here"
            raise OutputError(self.output.name, f"{problem}.") from None

    def save(self) -> None:
        """Save the state; report if that fails, and try again next time."""
        every, counts = self.options.save_every, self.counts
        self._next_save = (counts.total // every + 1) * every
        if self.model.frozen and not self.lines.is_file and self.output.path is None:
            return  # between two pipes there is nothing to save
        changed = None if self.model.frozen or not counts.rows else self.model.model
        header, place = self.detected.header, self._place
        try:
            output = self.output.place()
            self.checkpoint.save(Position(counts.total, header, place, output), changed)
        except OSError as error:
            self._unsaved = error
            problem = f"The state could not be saved: {error.strerror}. The next save may succeed."
            self.reporter.event("warning", f"hirank: {problem}", message=problem)
        else:
            self._unsaved = None
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
