"""Files that are followed while they grow, and through one rotation, as logs are rotated.

A file is known by its inode and its first bytes. One that was renamed is read to its end, and then
the file that was created in its place. Anything else, such as a file that was truncated, removed,
or rotated twice, is an error that states which rows may be missing: no row is left out silently.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hirank.cli.stream.signals import Signals
from hirank.cli.stream.sources import File, Lines, Place, TruncatedError, digest
from hirank.exceptions import FileError
from hirank.io.errors import reading

MIN_PAUSE, MAX_PAUSE = 0.005, 0.05
"""Seconds between two reads of a file that is followed, after new lines and after none."""
GRACE_SECONDS = 0.5
"""How long a file that was renamed must not grow before the new one is read."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Restart:
    """Where a stream is continued, and how rows that it cannot find are sent by hand.

    `written` counts the rows of the output that were written after `place` was saved.
    """

    place: Place | None
    written: int = 0
    has_header: bool = True
    command: str = "hirank stream --restart ..."

    @property
    def last_line(self) -> int:
        """The last line that is in the output, or an earlier one if lines were skipped."""
        line = 0 if self.place is None else self.place.line
        header = self.has_header and line == 0 and self.written > 0
        return line + header + self.written

    def explain(self, what: str, line: int) -> str:
        """Return the message for rows that cannot be read any more, of lines after `line`."""
        rest = f"sed -n '1p;{line + 1},$p'" if self.has_header else f"tail -n +{line + 1}"
        return (
            f"{what} Rows after line {line} of the file that was read may be missing. If there is "
            f"a copy of it, send the rest first: {rest} COPY | {self.command} (zcat "
            "COPY.gz | ... if it is compressed). Then pass --restart, which reads this file from "
            "its start. The output is continued by both."
        )


class FollowedFile(File):
    """Lines of a file that grows; a line counts once it has its end.

    `at` is the file to begin with, if `path` was renamed since the last run. Files in `own`, by
    their paths, are not logs: the output and the model.
    """

    is_live = True

    def __init__(
        self, path: Path, stop: Signals, restart: Restart, at: Path | None, own: Iterable[Path] = ()
    ) -> None:
        super().__init__(path, stop, restart.place if at is not None else None, at)
        self._restart, self._own = restart, tuple(own)
        self._pause, self._last_read = MIN_PAUSE, time.monotonic()
        self._done: set[int] = set()  # inodes of files that were read

    def _fill(self, *, wait: bool) -> bool:
        try:
            has_new = self._read()
        except TruncatedError as error:
            return self._fail(error.problem)
        if has_new:
            self._pause, self._last_read = MIN_PAUSE, time.monotonic()
        elif not self._open_next():
            if wait:
                self.stop.wait(self._pause)
                self._pause = min(1.1 * self._pause, MAX_PAUSE)
            return wait
        return True

    def _open_next(self) -> bool:
        """Open the file that was created in place of a renamed one, once that stops growing."""
        old, path = os.fstat(self.fd), Path(self.name)
        try:
            is_same = os.stat(path).st_ino == old.st_ino
            if is_same or time.monotonic() - self._last_read < GRACE_SECONDS:
                return False
            fd = os.open(path, os.O_RDONLY)
        except OSError:  # not created yet
            return False
        new = os.fstat(fd)
        self._finish()
        self._done |= {old.st_ino}
        unread = find_unread(path, old, {new.st_ino, *self._done, *_inodes(self._own)})
        if unread:
            os.close(fd)
            names = ", ".join(unread)
            return self._fail(f"The file was rotated more than once; {names} was not read.")
        self._switch(fd)
        return True

    def _fail(self, what: str) -> bool:
        problem = self._restart.explain(what, self._number)
        self._failure = FileError(self.name, problem)
        return True


def open_lines(
    source: Path | None,
    restart: Restart,
    stop: Signals,
    *,
    follow: bool,
    own: Iterable[Path] = (),
) -> Lines:
    """Open the input, a file where it was read to.

    Raise FileError if it cannot be read, or if rows of the file that was read before cannot be
    read any more.
    """
    if source is None:
        with reading("standard input"):
            is_file = stat.S_ISREG(os.fstat(0).st_mode)
        lines = Lines(0, stop)
        lines.is_live = not is_file
        return lines
    with reading(source):
        if source.exists() and not stat.S_ISREG(os.stat(source).st_mode):
            return Lines(os.open(source, os.O_RDONLY), stop)
        at = find_file(source, restart, follow=follow)
        if follow:
            return FollowedFile(source, stop, restart, at, own)
        return File(source, stop, None if at is None else restart.place)


def find_file(source: Path, restart: Restart, *, follow: bool) -> Path | None:
    """Return the file that a place is in; None if it is a place of another input.

    Raise FileError if this file, or rows of it that were written, are gone.
    """
    saved, path = restart.place, source.resolve()
    if saved is None or not _is_about(path, saved):
        return None
    for found in _candidates(path, saved) if follow else [path]:
        if _is_in(found, saved) and _has_lines(found, saved.offset, restart.written):
            return found
    what = "This is not the file that was read before"
    what += ", which is no longer in its folder." if follow else "."
    raise FileError(source, restart.explain(what, restart.last_line))


def find_unread(log: Path, old: os.stat_result, known: set[int]) -> list[str]:
    """Return the names of rotated files that were written after the file `old`.

    Files with inodes in `known` were read or are not logs.
    """
    stem, extension = map(re.escape, os.path.splitext(log.name))
    name = re.compile(rf"{stem}{extension}[.~_-].*|{stem}[._-]\d[\dT:._-]*{extension}(\.\w+)?")
    with os.scandir(log.parent) as entries:
        names = {entry.name: entry for entry in entries if name.fullmatch(entry.name)}
    found = []
    for entry in names.values():
        base, suffix = os.path.splitext(entry.name)
        if suffix in COMPRESSED and base in names:
            continue  # is being compressed
        with suppress(FileNotFoundError):
            status = entry.stat(follow_symlinks=False)
            is_newer = status.st_mtime_ns > old.st_mtime_ns and status.st_size > 0
            if is_newer and stat.S_ISREG(status.st_mode) and status.st_ino not in known:
                found.append(entry.name)
    # A file that was removed after it was opened may have been compressed: one is the file itself.
    if old.st_nlink == 0 and len(found) == 1 and found[0].endswith(COMPRESSED):
        return []
    return sorted(found)


def _is_about(path: Path, saved: Place) -> bool:
    """Return whether a place is in the file `path`, under this name or an earlier one."""
    return saved.path == str(path) or (path.exists() and str(os.stat(path).st_ino) == saved.inode)


def _candidates(path: Path, saved: Place) -> Iterator[Path]:
    """Yield files in the folder of `path` with the inode of a place."""
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if str(entry.inode()) == saved.inode and entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def _is_in(path: Path, place: Place) -> bool:
    """Return whether a file begins as that of a place, and is as long."""
    with path.open("rb") as file:
        head = file.read(place.head_size)
        return digest(head) == place.head and os.fstat(file.fileno()).st_size >= place.offset


def _has_lines(path: Path, offset: int, least: int) -> bool:
    """Return whether a file has `least` lines after an offset, the last perhaps without its end."""
    with path.open("rb") as file:
        file.seek(offset)
        return all(file.readline() for _ in range(least))


def _inodes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        with suppress(OSError):
            yield os.stat(path).st_ino
