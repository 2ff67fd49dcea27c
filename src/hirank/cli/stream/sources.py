"""Where lines come from: a pipe, a file, or a file that is followed while it grows."""

from __future__ import annotations

import hashlib
import os
import select
import stat
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

BLOCK = 1 << 16
LONGEST = 1 << 24
"""Bytes of a line; whatever is longer is no row."""
POLL = (0.005, 0.05)
"""Seconds between two looks at a file that is followed: at first, and when it has been silent."""
GRACE = 0.5
"""Seconds for which a file that was renamed must be silent before it is left for the new one."""
HEAD = 4096


@dataclass(frozen=True)
class Origin:
    """Which file lines are from: a name may stand for another one later."""

    path: str
    device: int
    inode: int
    head: str  # digest of its first line
    head_size: int


class Line(NamedTuple):
    """A line without its end, and where it stood."""

    data: bytes
    ending: bytes
    number: int
    start: int
    end: int
    origin: Origin | None = None
    wrong: str = ""  # why it can't be read

    @property
    def place(self) -> dict[str, Any]:
        """Enough to find the end of this line again, and to know it is this one."""
        raw = self.data + self.ending
        return {
            "offset": self.end,
            "line": self.number,
            "last": digest(raw),
            "last_size": len(raw) if not self.wrong else 0,
            **({} if self.origin is None else vars(self.origin)),
        }


class Stop(Protocol):
    """Whether to stop, and something to wait on beside the input."""

    asked: bool

    def wait(self, seconds: float | None, *fds: int) -> None:
        """Until one of them can be read, the time is over, or a signal comes."""


class Lines:
    """Lines as they come. Give a pipe or a file that is open, by its number."""

    live = True  # lines may keep us waiting
    again = False  # lines can be read once more after a restart

    def __init__(self, fd: int, stop: Stop) -> None:
        self.fd, self.stop, self.ended = fd, stop, False
        self.origin: Origin | None = None
        self._lines: deque[Line] = deque()
        self._start(0, 0)

    def _start(self, offset: int, number: int) -> None:
        self._rest, self._offset, self._number, self._lost = b"", offset, number, False

    def take(self, most: int, *, whole: bool = False) -> list[Line]:
        """Up to so many lines: what is there, at least one, or as many as come if `whole`.

        Nothing at the end of the input, and when asked to stop.
        """
        while len(self._lines) < most and not self.ended and not self.stop.asked:
            if not self._fill(wait=whole or not self._lines):
                break
        if self.stop.asked and self.again:
            return []  # they will be there next time
        return [self._lines.popleft() for _ in range(min(most, len(self._lines)))]

    def put_back(self, lines: list[Line]) -> None:
        self._lines.extendleft(reversed(lines))

    def _fill(self, *, wait: bool) -> bool:
        """Read some; False if there is nothing yet."""
        self.stop.wait(None if wait else 0, self.fd)
        if self.stop.asked:
            return False
        if not wait and not select.select([self.fd], [], [], 0)[0]:
            return False
        data = os.read(self.fd, BLOCK)
        if data:
            self._add(data)
        else:
            self._finish()
            self.ended = True
        return True

    def _add(self, data: bytes) -> None:
        *done, rest = data.split(b"\n")
        for piece in done:
            self._push(self._rest + piece, b"\n")
            self._rest = b""
        self._rest += rest
        if len(self._rest) > LONGEST:
            self._offset += len(self._rest)
            self._rest, self._lost = b"", True

    def _finish(self, wrong: str = "") -> None:
        """The last line, if it does not end."""
        if self._rest or self._lost:
            self._push(self._rest, b"", wrong)
            self._rest = b""

    def _push(self, data: bytes, ending: bytes, wrong: str = "") -> None:
        start = self._offset
        self._offset += len(data) + len(ending)
        self._number += 1
        if data.endswith(b"\r"):
            data, ending = data[:-1], b"\r" + ending
        if self._lost:
            wrong = f"longer than {LONGEST >> 20} MB"
            self._lost = False
        self._lines.append(
            Line(data, ending, self._number, start, self._offset, self.origin, wrong)
        )


class File(Lines):
    """Lines of a file, from an offset on."""

    live, again = False, True

    def __init__(self, path: Path, stop: Stop, place: dict[str, Any] | None = None) -> None:
        super().__init__(os.open(path, os.O_RDONLY), stop)
        self.path = path
        self.origin = origin_of(self.fd, path)
        if place is not None:
            os.lseek(self.fd, place["offset"], os.SEEK_SET)
            self._start(place["offset"], place["line"])

    def _fill(self, *, wait: bool) -> bool:
        data = os.read(self.fd, BLOCK)
        if data:
            self._add(data)
        else:
            self._finish()
            self.ended = True
        return True


class Followed(File):
    """A file that grows, is renamed and made anew, or is emptied, as logs are.

    A line counts once it has its end.
    """

    live = True

    def __init__(
        self,
        path: Path,
        stop: Stop,
        place: dict[str, Any] | None = None,
        tell: Callable[[str], None] = lambda sentence: None,
        at: Path | None = None,
    ) -> None:
        super().__init__(at or path, stop, place)
        self.path, self._tell = path, tell
        self._pause, self._silent, self._tail = POLL[0], time.monotonic(), b""

    def _fill(self, *, wait: bool) -> bool:
        here = self._offset + len(self._rest)
        if os.fstat(self.fd).st_size < here or not self._same(here):
            self._tell(f"{self.path} was cut off: it is read from its start.")
            self._finish("cut off with the file")
            os.lseek(self.fd, 0, os.SEEK_SET)
            self._start(0, 0)
            self.origin, self._tail = None, b""
        data = os.read(self.fd, BLOCK)
        if data:
            if self.origin is None or not self.origin.head_size:
                self.origin = origin_of(self.fd, self.path)
            self._add(data)
            self._tail = (self._tail + data)[-64:]
            self._pause, self._silent = POLL[0], time.monotonic()
            return True
        if self._renewed():
            return True
        if wait:
            self.stop.wait(self._pause)
            self._pause = min(1.1 * self._pause, POLL[1])
        return wait

    def _same(self, here: int) -> bool:
        """Whether what was read last is still there."""
        return os.pread(self.fd, len(self._tail), here - len(self._tail)) == self._tail

    def _renewed(self) -> bool:
        """Go over to a new file of the same name, if there is one and the old one is silent."""
        try:
            now = os.stat(self.path)
        except OSError:
            return False
        old = os.fstat(self.fd)
        if (now.st_dev, now.st_ino) == (old.st_dev, old.st_ino):
            return False
        if time.monotonic() - self._silent < GRACE:
            return False
        try:
            fd = os.open(self.path, os.O_RDONLY)
        except OSError:
            return False
        self._finish()
        os.close(self.fd)
        self.fd, self.origin, self._tail = fd, origin_of(fd, self.path), b""
        self._start(0, 0)
        self._tell(f"{self.path} is a new file: it is read from its start.")
        return True


def digest(data: bytes) -> str:
    """By which bytes are known again."""
    return hashlib.sha256(data).hexdigest()[:32]


def origin_of(fd: int, path: Path) -> Origin:
    """Which file this is."""
    head = os.pread(fd, HEAD, 0).partition(b"\n")
    first = head[0] + head[1]
    info = os.fstat(fd)
    return Origin(str(path.resolve()), info.st_dev, info.st_ino, digest(first), len(first))


def found_again(path: Path, place: dict[str, Any]) -> bool:
    """Whether a file has the lines before a place."""
    with path.open("rb") as file:
        if digest(file.read(place["head_size"])) != place["head"]:
            return False
        size = place["last_size"]
        file.seek(place["offset"] - size)
        return digest(file.read(size)) == place["last"] if size else file.tell() <= _size(file)


def _size(file: Any) -> int:
    return os.fstat(file.fileno()).st_size


def renamed(path: Path, place: dict[str, Any]) -> Path | None:
    """The file of a place under another name in the same folder."""
    for entry in os.scandir(path.resolve().parent):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(info.st_mode) and info.st_ino == place["inode"]:
            other = Path(entry.path)
            if info.st_dev == place["device"] and found_again(other, place):
                return other
    return None
