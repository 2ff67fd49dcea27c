"""Where lines come from: a pipe, a file, or a file that is followed while it grows.

A file is recognized by its inode and its first bytes. One that is renamed and created again, as
logs are, is followed to the new file; one that was truncated or replaced is an error.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hirank.cli.stream.signals import Signals
from hirank.exceptions import FileError
from hirank.io.errors import reading

BLOCK_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 24
HEAD_BYTES = 4096
MIN_PAUSE, MAX_PAUSE = 0.005, 0.05
"""Seconds between two reads of a file that is followed, after new lines and after none."""
GRACE_SECONDS = 0.5
"""How long a file that was renamed must not grow before the new one is read."""


@dataclass(frozen=True)
class Place:
    """How much of a file was read, and by what the file is recognized."""

    path: str
    inode: str  # a number that may be too large for JSON
    head: str  # digest of the first bytes, of those that were read
    head_size: int
    offset: int  # bytes
    line: int


class Line(NamedTuple):
    """A line without its end."""

    data: bytes
    ending: bytes
    number: int
    place: Place | None  # after the line; None in a pipe
    problem: str = ""  # why it cannot be read


class Lines:
    """Lines of a pipe, as they arrive."""

    is_live = True  # lines may have to be waited for
    is_file = False  # lines can be read again after a restart

    def __init__(self, fd: int, stop: Signals, name: str = "standard input") -> None:
        self.fd, self.stop, self.name, self.ended = fd, stop, name, False
        self._lines: deque[Line] = deque()
        self._begin(0, 0)
        self.start: Place | None = None  # where lines are read from

    def _begin(self, offset: int, number: int) -> None:
        self._rest, self._offset, self._number, self._is_long = b"", offset, number, False

    def take(self, most: int, *, whole: bool = False) -> list[Line]:
        """Return at most `most` lines: those that are there, at least one, or with `whole` all.

        None are returned at the end of the input, and after a request to stop.
        """
        while len(self._lines) < most and not self.ended and not self.stop.requested:
            if not self._fill(wait=whole or not self._lines):
                break
        if self.stop.requested and self.is_file:
            return []  # they can be read next time
        return [self._lines.popleft() for _ in range(min(most, len(self._lines)))]

    def peek(self) -> Iterator[Line]:
        """Yield lines that stay to be taken."""
        for i in count():
            while len(self._lines) <= i:
                if self.ended or self.stop.requested:
                    return
                self._fill(wait=True)
            yield self._lines[i]

    def place(self) -> Place | None:
        """Return how much was read; None for a pipe."""
        return None

    def _fill(self, *, wait: bool) -> bool:
        """Read a block; return False if there is nothing yet."""
        if not self.is_file and not self.stop.wait(None if wait else 0, self.fd):
            return False
        if not self._read():
            self._finish()
            self.ended = True
        return True

    def _read(self) -> bool:
        with reading(self.name):
            data = os.read(self.fd, BLOCK_BYTES)
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._push(self._rest + piece, b"\n")
            self._rest = b""
        self._rest += rest
        if len(self._rest) > MAX_LINE_BYTES:
            self._offset += len(self._rest)
            self._rest, self._is_long = b"", True
        return bool(data)

    def _finish(self) -> None:
        """Take the last line, if it has no end."""
        if self._rest or self._is_long:
            self._push(self._rest, b"")
            self._rest = b""

    def _push(self, data: bytes, ending: bytes) -> None:
        self._offset += len(data) + len(ending)
        self._number += 1
        if data.endswith(b"\r"):
            data, ending = data[:-1], b"\r" + ending
        problem = f"longer than {MAX_LINE_BYTES >> 20} MB" if self._is_long else ""
        self._is_long = False
        self._lines.append(Line(data, ending, self._number, self.place(), problem))


class File(Lines):
    """Lines of a file, from a place on."""

    is_live, is_file = False, True

    def __init__(self, path: Path, stop: Signals, place: Place | None = None) -> None:
        super().__init__(os.open(path, os.O_RDONLY), stop, str(path.resolve()))
        self._head = b""
        if place is not None:
            os.lseek(self.fd, place.offset, os.SEEK_SET)
            self._begin(place.offset, place.line)
        self.start = place or self.place()

    def place(self) -> Place:
        size = min(self._offset, HEAD_BYTES)
        if len(self._head) < size:
            self._head = os.pread(self.fd, HEAD_BYTES, 0)
        head, inode = digest(self._head[:size]), str(os.fstat(self.fd).st_ino)
        return Place(self.name, inode, head, size, self._offset, self._number)


class FollowedFile(File):
    """Lines of a file that grows; a line counts once it has its end.

    `at` is the file to begin with, if `path` was renamed and created again since the last run.
    """

    is_live = True

    def __init__(self, path: Path, stop: Signals, place: Place | None, at: Path) -> None:
        super().__init__(at, stop, place)
        self.name = str(path.resolve())
        self._pause, self._last_read = MIN_PAUSE, time.monotonic()

    def _fill(self, *, wait: bool) -> bool:
        if os.fstat(self.fd).st_size < self._offset + len(self._rest):
            problem = "The file was truncated. Pass --restart to read it from its start."
            raise FileError(self.name, problem)
        if self._read():
            self._pause, self._last_read = MIN_PAUSE, time.monotonic()
        elif not self._open_next():
            if wait:
                self.stop.wait(self._pause)
                self._pause = min(1.1 * self._pause, MAX_PAUSE)
            return wait
        return True

    def _open_next(self) -> bool:
        """Open the file that was created in place of a renamed one, once that stops growing."""
        try:
            is_same = os.stat(self.name).st_ino == os.fstat(self.fd).st_ino
            if is_same or time.monotonic() - self._last_read < GRACE_SECONDS:
                return False
            fd = os.open(self.name, os.O_RDONLY)
        except OSError:  # not created yet
            return False
        self._finish()
        os.close(self.fd)
        self.fd, self._head = fd, b""
        self._begin(0, 0)
        return True


def open_lines(source: Path | None, saved: Place | None, stop: Signals, *, follow: bool) -> Lines:
    """Open the input, a file where it was read to.

    Raise FileError if it cannot be read, or is not the file that `saved` is a place in.
    """
    if source is None:
        lines = Lines(0, stop)
        lines.is_live = not stat.S_ISREG(os.fstat(0).st_mode)
        return lines
    with reading(source):
        if not stat.S_ISREG(os.stat(source).st_mode):
            return Lines(os.open(source, os.O_RDONLY), stop)
        at = _find_file(source, saved, follow=follow)
        place = None if at is None else saved
        return (
            FollowedFile(source, stop, place, at or source) if follow else File(source, stop, place)
        )


@lru_cache(maxsize=8)  # of the first bytes of a file, for each of its lines
def digest(data: bytes) -> str:
    """Return by what bytes are recognized."""
    return hashlib.sha256(data).hexdigest()[:32]


def _find_file(source: Path, saved: Place | None, *, follow: bool) -> Path | None:
    """Return the file that a place is in; None if it is a place of another input."""
    path, inode = str(source.resolve()), str(os.stat(source).st_ino)
    if saved is None or (saved.path != path and saved.inode != inode):
        return None
    if _is_in(source, saved):
        return source
    for entry in os.scandir(Path(path).parent) if follow else ():
        is_same = str(entry.inode()) == saved.inode and entry.is_file()
        if is_same and _is_in(Path(entry.path), saved):
            return Path(entry.path)
    problem = "This is not the file that was read before. Pass --restart to read it from its start."
    raise FileError(source, problem)


def _is_in(path: Path, place: Place) -> bool:
    """Return whether a file begins as that of a place, and is as long."""
    with path.open("rb") as file:
        head = file.read(place.head_size)
        return digest(head) == place.head and os.fstat(file.fileno()).st_size >= place.offset
