"""Where lines come from: a pipe, or a file that is read from a place on."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hirank.cli.stream.signals import Signals
from hirank.exceptions import FileError
from hirank.io.errors import reading

BLOCK_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 24
HEAD_BYTES = 1 << 16
"""First bytes of a file by which it is recognized; the first row should be among them."""


@dataclass(frozen=True)
class Place:
    """How much of a file was read, and by what the file is recognized."""

    path: str
    inode: str  # a number that may be too large for JSON
    head: str  # digest of the first bytes, of those that were read
    head_size: int
    offset: int  # bytes
    line: int


@dataclass(eq=False)
class Origin:
    """The file that lines come from, with those of its first bytes that were read."""

    path: str
    inode: str
    head: bytes = b""

    def place(self, offset: int, line: int) -> Place:
        """Return the place after a line."""
        size = min(offset, HEAD_BYTES)
        return Place(self.path, self.inode, digest(self.head[:size]), size, offset, line)

    def start(self, through: int) -> Place:
        """Return the start of the file, which is recognized by its bytes `through` an offset."""
        after = self.place(through, 0)
        return Place(self.path, self.inode, after.head, after.head_size, 0, 0)


class Line(NamedTuple):
    """A line without its end."""

    data: bytes
    ending: bytes
    number: int
    offset: int  # after the line
    origin: Origin | None  # None: a pipe
    problem: str = ""  # why it cannot be read

    @property
    def place(self) -> Place | None:
        """The place after the line; None in a pipe."""
        return None if self.origin is None else self.origin.place(self.offset, self.number)


class Lines:
    """Lines of a pipe, as they arrive."""

    is_live = True  # lines may have to be waited for
    is_file = False  # lines can be read again after a restart

    def __init__(self, fd: int, stop: Signals, name: str = "standard input") -> None:
        self.fd, self.stop, self.name, self.ended = fd, stop, name, False
        self._lines: deque[Line] = deque()
        self._begin(0, 0)
        self._failure: FileError | None = None  # raised when all lines before it are taken
        self.origin: Origin | None = None  # the file that is read
        self.first: Origin | None = None  # the file that was read first
        self.start: Place | None = None  # where lines are read from

    def _begin(self, offset: int, number: int) -> None:
        self._rest, self._offset, self._number, self._is_long = b"", offset, number, False

    def take(self, most: int, *, whole: bool = False) -> list[Line]:
        """Return at most `most` lines: those that are there, at least one, or with `whole` all.

        They are of one file. None are returned at the end of the input, and after a request to
        stop.
        """
        while len(self._lines) < most and self._may_have_more():
            if not self._fill(wait=whole or not self._lines):
                break
        if self.stop.requested and self.is_file:
            return []  # they can be read next time
        if self._failure is not None and not self._lines:
            raise self._failure
        taken: list[Line] = []
        while self._lines and len(taken) < most:
            if taken and self._lines[0].origin is not taken[0].origin:
                break
            taken.append(self._lines.popleft())
        return taken

    def peek(self) -> Iterator[Line]:
        """Yield lines that stay to be taken."""
        for i in count():
            while len(self._lines) <= i:
                if not self._may_have_more():
                    if self._failure is not None:
                        raise self._failure
                    return
                self._fill(wait=True)
            yield self._lines[i]

    def _may_have_more(self) -> bool:
        return not self.ended and not self.stop.requested and self._failure is None

    def _fill(self, *, wait: bool) -> bool:
        """Read a block; return False if there is nothing yet."""
        if not self.is_file and not self.stop.wait(None if wait else 0, self.fd):
            return False
        if not self._read():
            self._finish()
            self.ended = True
        return True

    def _read_block(self) -> bytes:
        with reading(self.name):
            return os.read(self.fd, BLOCK_BYTES)

    def _read(self) -> bool:
        data = self._read_block()
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
        line = Line(data, ending, self._number, self._offset, self.origin, problem)
        self._lines.append(line)


class TruncatedError(FileError):
    """A file whose first bytes, or whose size, are not those that were read."""


class File(Lines):
    """Lines of a file, from a place on; `at` is the file, if it is not under its name any more."""

    is_live, is_file = False, True

    def __init__(
        self, path: Path, stop: Signals, place: Place | None = None, at: Path | None = None
    ) -> None:
        fd = os.open(at or path, os.O_RDONLY)
        super().__init__(fd, stop, str(path.resolve()))
        self.origin = self.first = Origin(self.name, str(os.fstat(fd).st_ino))
        if place is not None:
            self.origin.head = os.pread(fd, min(place.offset, HEAD_BYTES), 0)
            os.lseek(fd, place.offset, os.SEEK_SET)
            self._begin(place.offset, place.line)
        self.start = place or self.origin.start(0)

    def _switch(self, fd: int) -> None:
        """Read another file of the same name from its start."""
        os.close(self.fd)
        self.fd, self.origin = fd, Origin(self.name, str(os.fstat(fd).st_ino))
        self._begin(0, 0)

    def _read_block(self) -> bytes:
        """Read bytes; raise TruncatedError if they are not of the file that was read so far."""
        data = super()._read_block()
        position = self._offset + len(self._rest)
        origin = self.origin
        assert origin is not None
        # The check comes after the read: bytes of a file that is cut off in between are not used.
        with reading(self.name):
            head = os.pread(self.fd, len(origin.head), 0)
            size = os.fstat(self.fd).st_size
        if head != origin.head or size < position + len(data):
            raise TruncatedError(self.name, "The file was truncated while it was read.")
        if len(origin.head) == position < HEAD_BYTES:
            origin.head += data[: HEAD_BYTES - position]
        return data


def digest(data: bytes) -> str:
    """Return by what bytes are recognized."""
    return hashlib.sha256(data).hexdigest()[:32]
