"""The loop of ``hirank stream``: take lines, answer, learn, keep the state."""

from __future__ import annotations

import math
import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np

from hirank.cli.errors import CANNOT_WRITE, INTERRUPTED, Failure
from hirank.cli.stream.checkpoint import Output, Positions
from hirank.cli.stream.lines import BadLine, Layout, Row
from hirank.cli.stream.model import MOST, Completer
from hirank.cli.stream.reporter import Teller
from hirank.cli.stream.sources import Line, Lines


class Signals:
    """Turns SIGTERM, SIGINT and SIGHUP into a wish to stop; a second one ends the program."""

    def __init__(self) -> None:
        self.asked, self.number = False, 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        self._wake = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._old[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake)
        os.close(self._read)
        os.close(self._write)

    def _come(self, number: int, frame: FrameType | None) -> None:
        self.asked, self.number = True, number
        signal.signal(number, signal.SIG_DFL)

    def wait(self, seconds: float | None, *fds: int) -> None:
        """Until one of them can be read, the time is over, or a signal comes."""
        if self.asked:
            return
        ready, _, _ = select.select([self._read, *fds], [], [], seconds)
        if self._read in ready:
            with suppress(BlockingIOError):
                os.read(self._read, 64)


class Item(NamedTuple):
    """A line, and the row it is; neither a row nor wrong is a header or blank line."""

    line: Line
    row: Row | None
    wrong: bool

    @property
    def told(self) -> bool:
        """Whether it is a row with a value to go by."""
        return self.row is not None and not all(map(math.isnan, self.row.numbers))


class Session:
    """One run.

    Parameters
    ----------
    source, layout, completer, output, positions, tell, stop : the parts
    header : str
        Lines like this are no rows. Kept with the state: a log that was emptied has none.
    top : bytes
        What the output begins with.
    total : int
        Rows that have been taken in before.
    place : dict
        Where the input goes on.
    save_every : int
        Rows between two saves.
    on_error : {"skip", "keep", "stop"}
        What becomes of a line that is no row.
    hold : bool
        Whether the first rows of a new model wait until it has started.

    A run that has nothing to remember, frozen between two pipes, saves nothing.
    """

    def __init__(
        self,
        *,
        source: Lines,
        layout: Layout,
        completer: Completer,
        output: Output,
        positions: Positions,
        tell: Teller,
        stop: Signals,
        header: str | None,
        top: bytes,
        total: int,
        place: dict[str, Any] | None,
        save_every: int,
        on_error: str,
        hold: bool,
    ) -> None:
        self.source, self.layout, self.completer = source, layout, completer
        self.output, self.positions, self.tell, self.stop = output, positions, tell, stop
        self.header, self.save_every, self.on_error, self.hold = header, save_every, on_error, hold
        self.top, self.total, self.place = top, total, place
        self.taken = self.means = self.blank = 0  # rows of this run
        self.bad: tuple[Line, str] | None = None  # the line that ends the run
        self.unsaved: OSError | None = None
        self._names, self._dirty = completer.names, False

    def run(self) -> None:
        """Until the input ends, or a signal comes; the state is saved at the end."""
        try:
            self.save()
            if self.unsaved is not None:
                raise Failure(
                    f"Can't write beside {self.positions.model}: {self.unsaved.strerror}.",
                    CANNOT_WRITE,
                )
            if self.top:
                self._write(self.top)
            while self.bad is None:
                items = self._gather()
                if not items and (self.source.ended or self.stop.asked):
                    break
                self._work(items)
                if self.total >= self._next_save:
                    self.save()
        except BrokenPipeError:
            self.save()
            return
        except OSError as error:
            self.save()
            raise Failure(f"Can't read the input: {error.strerror}.") from None
        if self._dirty or self.unsaved is not None:
            self.save()
        self._end()

    def _end(self) -> None:
        self.tell.end(self)
        if self.bad is not None:
            line, reason = self.bad
            raise Failure(f"line {line.number}: {reason}. Stopped before it; the state is saved.")
        if self.unsaved is not None:
            raise Failure(
                f"The state could not be saved: {self.unsaved.strerror}. The model is that of "
                "the last save.",
                CANNOT_WRITE,
            )
        if self.stop.number == signal.SIGINT:
            raise SystemExit(INTERRUPTED)
        if self.tell.skipped and not self.taken:
            raise Failure("Not one line was a row that could be completed.")

    def _gather(self) -> list[Item]:
        """Lines for the next answer, and what they say."""
        room = self.completer.room
        if not (self.completer.started or self.completer.frozen):
            if self.hold:
                return self._held(room)
            room = 1
        most = min(room, MOST, self._next_save - self.total)
        return self._parsed(self.source.take(most, whole=not self.source.live))

    def _held(self, room: int) -> list[Item]:
        """As many rows as it takes to start a model, or all there are."""
        items: list[Item] = []
        while room > 0 and self.bad is None:
            lines = self.source.take(room, whole=True)
            if not lines:
                break
            new = self._parsed(lines)
            room -= sum(item.told for item in new)
            items += new
        if self.stop.asked and self.source.again:
            self.bad = None
            return []  # nothing was answered: next time from the start
        return items

    def _parsed(self, lines: Sequence[Line]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            row, wrong = None, False
            try:
                text = text_of(line)
                if text.strip() and text != self.header:
                    row = self.layout.parse(text)
            except BadLine as error:
                if self.on_error == "stop":
                    self.bad = (line, str(error))
                    break
                self.tell.bad(line.number, str(error), kept=self.on_error == "keep")
                wrong = True
            items.append(Item(line, row, wrong))
        return items

    def _work(self, items: list[Item]) -> None:
        """Answer, write, learn."""
        rows = [item.row for item in items if item.row is not None]
        X = np.array([row.numbers for row in rows]).reshape(len(rows), len(self.layout.wanted))
        started = self.completer.started
        filled = iter(self.completer.answer(X).tolist() if rows else ())
        pieces = []
        for line, row, wrong in items:
            if row is not None:
                pieces += [self.layout.render(row, next(filled)).encode(), line.ending or b"\n"]
            elif wrong and self.on_error == "keep":
                pieces += [line.data, line.ending or b"\n"]
        self._write(b"".join(pieces))
        if rows:
            self.completer.learn(X)
            if self._names is None and not self.completer.frozen:
                self.completer.names = self._names = self.layout.wanted
            if not started and not (self.hold and self.completer.started):
                self.means += len(rows)
            self.blank += len(rows) - sum(item.told for item in items)
        self.total += len(rows)
        self.taken += len(rows)
        if items:
            self.place, self._dirty = items[-1].line.place, True
        self.tell.progress(self)

    def _write(self, data: bytes) -> None:
        try:
            self.output.write(data)
        except OSError as error:
            self.completer.undo()
            if isinstance(error, BrokenPipeError):
                raise
            self.save()
            raise Failure(
                f"Can't write the output: {error.strerror}. Restart when this is mended: it goes "
                "on from here.",
                CANNOT_WRITE,
            ) from None

    def save(self) -> None:
        """Keep the state; if that fails, say so and try again next time."""
        self._next_save = (self.total // self.save_every + 1) * self.save_every
        if self.completer.frozen and not self.source.again and self.output.path is None:
            return
        model = None
        if not self.completer.frozen and self.taken:
            model = self.completer.model
        try:
            position = {
                "rows": self.total,
                "header": self.header,
                "input": self.place if self.source.again else None,
                "output": self.output.place(),
            }
            self.positions.save(position, model)
        except OSError as error:
            self.unsaved = error
            self.tell.note(f"the state could not be saved: {error.strerror}. Trying again later.")
        else:
            self.unsaved, self._dirty = None, False
            if self.taken:
                self.tell.saved(self)


def text_of(line: Line) -> str:
    """The text of a line; raises BadLine."""
    if line.wrong:
        raise BadLine(line.wrong)
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(f"not UTF-8 at byte {error.start + 1}") from None
    if "\0" in text:
        raise BadLine("it has a zero byte")
    return text.removeprefix("\ufeff") if line.number == 1 else text
