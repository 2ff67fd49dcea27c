"""What a stream saves: the model, and the positions in input and output that belong to it.

A position contains the digest of its model file. The positions, the new one and the one before, are
written first, then the new model file takes its name: whenever the program is killed, the model
that exists finds its own position.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hirank._atomic import replace_file
from hirank.cli.stream.sources import Place, digest
from hirank.estimators.saving import to_bytes
from hirank.exceptions import FileError, OutputError, OutputExistsError
from hirank.io.errors import writing
from hirank.persistence.record import decode, encode

if TYPE_CHECKING:
    from hirank.estimators.saving import Model

TAIL_BYTES = 256
"""Bytes before the end of an output by which it is recognized."""


@dataclass(frozen=True)
class OutputPlace:
    """The size of an output file, and by what the file is recognized."""

    path: str
    size: int
    tail: str  # digest of the last bytes
    tail_size: int

    def check(self) -> None:
        """Raise ValueError if the tail is longer than the file."""
        if not 0 <= self.tail_size <= self.size:
            raise ValueError("the tail must not be longer than the file")


@dataclass(frozen=True)
class Position:
    """How far a stream was read and written when its model was saved."""

    rows: int
    header: str | None  # of the input; a log that was created again may have none
    columns: tuple[str, ...] | None  # of the output; None: JSON lines
    input: Place | None  # None: a pipe
    output: OutputPlace | None
    forecasts: int = 0  # rows that follow in the output, and are no rows of the input
    model: str | None = None  # digest of the model file


class Checkpoint:
    """A model file and its positions, in FILE.position.

    Parameters
    ----------
    model : path
        Of the model file, which may not exist yet.
    missing : strings
        Markers of missing values, saved with the model.
    """

    def __init__(self, model: Path, missing: Iterable[str] = ()) -> None:
        self.model, self.path = model, model.with_name(model.name + ".position")
        self.missing = sorted(set(missing))
        self._digest = _digest_file(model) if model.exists() else None
        self._saves = self._read()

    def _read(self) -> tuple[Position, ...]:
        try:
            state = json.loads(self.path.read_text("utf-8"))
            saves: tuple[Position, ...] = decode(tuple[Position, ...], state, "positions")
        except FileNotFoundError:
            return ()
        except ValueError as error:
            problem = f"damaged ({error}). Remove it to read the input from its start."
            raise FileError(self.path, problem) from None
        return saves

    @property
    def last(self) -> Position | None:
        """The position of the model; None if there is none."""
        return next((save for save in self._saves if save.model == self._digest), None)

    @property
    def is_foreign(self) -> bool:
        """Whether the positions are those of another model."""
        return bool(self._saves) and self.last is None

    def save(self, position: Position, model: Model | None = None) -> None:
        """Save a position, and the model if it has changed; OutputError leaves all as it was."""
        if model is None:
            return self._save(position, self._digest)
        data = to_bytes(model, {"missing": self.missing})
        new, before = hashlib.sha256(data).hexdigest(), self._saves
        try:
            with writing(self.model), replace_file(self.model) as file:
                file.write(data)
                file.flush()
                self._save(position, new)
        except BaseException:
            self._saves = before
            raise
        self._digest = new
        return None

    def _save(self, position: Position, model: str | None) -> None:
        """Save the position of a model with this digest, beside that of the model that exists."""
        before = [one for one in self._saves if one.model == self._digest != model][:1]
        saves = (replace(position, model=model), *before)
        with writing(self.path), replace_file(self.path) as file:
            file.write(json.dumps(encode(saves)).encode())
        self._saves = saves


class Output:
    """Where rows are written to: standard output ("-"), or a file that is continued."""

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self.path = None if path == "-" else Path(path)
        self.fd, self.size, self._tail = 1, 0, b""

    def is_continued(self, saved: OutputPlace | None) -> bool:
        """Return whether this is the file in which a place is."""
        if self.path is None or saved is None or saved.path != str(self.path.resolve()):
            return False
        return self.path.is_file()

    def count_written(self, saved: OutputPlace | None) -> int:
        """Return the number of lines that were written after a place was saved."""
        if saved is None or self.path is None or not self.is_continued(saved):
            return 0
        with writing(self.path), self.path.open("rb") as file:
            return self._read_rest(file.fileno(), saved)[saved.tail_size :].count(b"\n")

    def open(self, saved: OutputPlace | None, *, cut: bool, force: bool) -> None:
        """Open the file, to continue at a saved place if there is one.

        With `cut`, everything after that place is removed, since the input is read again from
        there; otherwise only an incomplete line.
        """
        path = self.path
        if path is None:
            return
        with writing(path):
            exists, continues = path.exists(), self.is_continued(saved)
            if exists and not path.is_file():  # a named pipe or a device
                self.fd, self.path = os.open(path, os.O_WRONLY), None
                return
            if exists and not continues and not force and path.stat().st_size:
                raise OutputExistsError(path)
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if continues and saved is not None:
                self._continue(saved, cut=cut)
            self._cut_back()

    def _continue(self, saved: OutputPlace, *, cut: bool) -> None:
        """Find the size at which to continue; raise OutputError if the file was changed."""
        rest = self._read_rest(self.fd, saved)
        kept = saved.tail_size if cut else max(rest.rfind(b"\n") + 1, saved.tail_size)
        self.size = saved.size - saved.tail_size + kept
        self._tail = rest[:kept][-TAIL_BYTES:]

    def _read_rest(self, fd: int, saved: OutputPlace) -> bytes:
        """Return the tail of a place and all after it; raise OutputError if the tail differs."""
        first = saved.size - saved.tail_size
        rest = os.pread(fd, max(os.fstat(fd).st_size - first, 0), first)
        if digest(rest[: saved.tail_size]) != saved.tail:
            problem = "The file was changed since the last run. Move it, or pass --restart --force."
            raise OutputError(self.path, problem)
        return rest

    def _cut_back(self) -> None:
        os.ftruncate(self.fd, self.size)
        os.lseek(self.fd, self.size, os.SEEK_SET)

    def write(self, data: bytes) -> None:
        """Write all of it; after an error a file is as it was."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError:
            if self.path is not None:
                with suppress(OSError):
                    self._cut_back()
            raise
        self.size += len(data)
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]

    def place(self) -> OutputPlace | None:
        """Return the end of the file, after all of it is on the disk."""
        if self.path is None:
            return None
        with suppress(OSError):
            os.fsync(self.fd)
        path = str(self.path.resolve())
        return OutputPlace(path, self.size, digest(self._tail), len(self._tail))


def _digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
