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
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from hirank._atomic import replace_file
from hirank.cli.stream.sources import Place, digest
from hirank.estimators.saving import save
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
    header: str | None  # a log that was created again may have none
    input: Place | None  # None: a pipe
    output: OutputPlace | None
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
        # Left by a run that was killed while it saved.
        for left in model.parent.glob(f"..{escape(model.name)}.next.*.tmp"):
            with suppress(OSError):
                left.unlink()

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
        """Save a position, and the model if it has changed; OSError leaves all as it was."""
        new, now = self.model.with_name(f".{self.model.name}.next"), self._digest
        try:
            if model is not None:
                save(model, new, {"missing": self.missing})
                now = _digest_file(new)
            before = [one for one in self._saves if one.model == self._digest != now][:1]
            saves = (replace(position, model=now), *before)
            with replace_file(self.path) as file:
                file.write(json.dumps(encode(saves)).encode())
            self._saves = saves
            if model is not None:
                os.replace(new, self.model)
            self._digest = now
        except OSError:
            with suppress(OSError):
                new.unlink()
            raise


class Output:
    """Where rows are written to: standard output ("-"), or a file that can be cut back."""

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self.path = None if path == "-" else Path(path)
        self.fd, self.size, self._tail = 1, 0, b""

    def open(self, saved: OutputPlace | None, *, cut: bool, force: bool) -> None:
        """Open the file, to continue at a saved place if there is one.

        With `cut`, everything after that place is removed, otherwise only an incomplete line.
        """
        path = self.path
        if path is None:
            return
        with writing(path):
            exists = path.exists()
            if exists and not path.is_file():  # a named pipe or a device
                self.fd, self.path = os.open(path, os.O_WRONLY), None
                return
            continues = saved is not None and saved.path == str(path.resolve()) and exists
            if exists and not continues and not force and path.stat().st_size:
                raise OutputExistsError(path)
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if continues and saved is not None:
                self._continue(saved, cut=cut)
            self._cut_back()

    def _continue(self, saved: OutputPlace, *, cut: bool) -> None:
        """Find the size at which to continue; raise OutputError if the file was changed."""
        end, first = os.fstat(self.fd).st_size, saved.size - saved.tail_size
        rest = os.pread(self.fd, max(end - first, 0), first)
        if digest(rest[: saved.tail_size]) != saved.tail:
            problem = "The file was changed since the last run. Move it, or pass --restart --force."
            raise OutputError(self.path, problem)
        kept = saved.tail_size if cut else max(rest.rfind(b"\n") + 1, saved.tail_size)
        self.size, self._tail = first + kept, rest[:kept][-TAIL_BYTES:]

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
