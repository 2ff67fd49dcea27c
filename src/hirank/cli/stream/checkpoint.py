"""Where a stream stopped: kept beside the model, so that neither can be newer than the other.

A position holds the digest of the model file it belongs to. The file of positions is written
first, with the new position and the one before, then the model takes its name. Whenever the program
is killed, the model that is there finds its own position.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

from hirank.cli.errors import BAD_INPUT, CANNOT_WRITE, Failure
from hirank.cli.stream.sources import digest
from hirank.estimators import saving

FORMAT = 1
TAIL = 256
"""Bytes before the end of the output by which it is known again."""


class Positions:
    """The positions of a model file.

    Parameters
    ----------
    model : path of the model file, which need not be there yet
    """

    def __init__(self, model: Path) -> None:
        self.model, self.path = model, model.with_name(model.name + ".position")
        self.notes: dict[str, Any] = {}  # kept with the model
        self._now = file_digest(model) if model.exists() else None
        self._saves = self._read()
        # What a run left behind that was killed while it saved.
        for left in model.parent.glob(f"..{escape(model.name)}.next.*.tmp"):
            with suppress(OSError):
                left.unlink()

    def _read(self) -> list[dict[str, Any]]:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return []
        try:
            state = json.loads(text)
            if state["format"] != FORMAT:
                raise Failure(
                    f"{self.path} has format {state['format']}; this version of hirank knows "
                    f"format {FORMAT}: update hirank, or remove it to start from the beginning.",
                    BAD_INPUT,
                )
            saves = state["saves"]
            for save in saves:
                _check(save)
        except (ValueError, KeyError, TypeError):
            raise Failure(
                f"{self.path} is damaged: remove it to read the input from its start.", BAD_INPUT
            ) from None
        return list(saves)

    def last(self) -> dict[str, Any] | None:
        """The position that belongs to the model; None if there is none."""
        return next((save for save in self._saves if save["model"] == self._now), None)

    @property
    def known(self) -> bool:
        """Whether there are any, be it of another model."""
        return bool(self._saves)

    def save(self, position: dict[str, Any], model: Any = None) -> None:
        """Keep a position, and the model if it has changed; OSError leaves all as it was."""
        new, now = None, self._now
        try:
            if model is not None:
                new = self.model.with_name(f".{self.model.name}.next")
                saving.save(model, new, self.notes)
                now = file_digest(new)
            before = [save for save in self._saves if save["model"] == self._now != now][:1]
            saves = [{**position, "model": now}, *before]
            _replace(self.path, json.dumps({"format": FORMAT, "saves": saves}).encode())
            self._saves = saves
            if new is not None:
                os.replace(new, self.model)
                _sync_folder(self.model)
            self._now = now
        except OSError:
            if new is not None:
                with suppress(OSError):
                    new.unlink()
            raise


class Output:
    """Where rows go: standard output, or a file that can be cut back.

    Parameters
    ----------
    path : str
        "-" is standard output.
    """

    def __init__(self, path: str) -> None:
        self.path = None if path == "-" else Path(path)
        self.fd = 1
        self.size = 0
        self._tail = b""

    def open(self, saved: dict[str, Any] | None, *, cut: bool, force: bool) -> bool:
        """Get ready to write; True if it goes on from a saved end.

        With `cut`, whatever came after that end is cut off, else only a line without end.
        """
        path = self.path
        if path is None:
            return False
        if path.exists() and not path.is_file():  # a named pipe or a device
            self.fd, self.path = os.open(path, os.O_WRONLY), None
            return False
        goes_on = saved is not None and saved["path"] == str(path.resolve()) and path.exists()
        if not goes_on and path.exists() and not force and path.stat().st_size:
            raise Failure(
                f"{path} is there, and it does not go on from where this run starts: --force "
                "overwrites it.",
                CANNOT_WRITE,
            )
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if goes_on:
                assert saved is not None
                self._continue(saved, cut=cut)
            else:
                os.ftruncate(self.fd, 0)
        except OSError as error:
            raise Failure(f"Can't write {path}: {error.strerror}.", CANNOT_WRITE) from None
        return goes_on

    def _continue(self, saved: dict[str, Any], *, cut: bool) -> None:
        size, tail = saved["size"], saved["tail_size"]
        self._tail = os.pread(self.fd, tail, size - tail)
        if digest(self._tail) != saved["tail"]:
            raise Failure(
                f"{self.path} was changed since the last run, so it can't go on: move it away, or "
                "start anew with --restart --force.",
                CANNOT_WRITE,
            )
        if not cut:
            size = _whole_lines(self.fd, size)
            first = max(size - TAIL, 0)
            self._tail = os.pread(self.fd, size - first, first)
        os.ftruncate(self.fd, size)
        os.lseek(self.fd, size, os.SEEK_SET)
        self.size = size

    def write(self, data: bytes) -> None:
        """All of it, or a file stays as it was."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError:
            if self.path is not None:
                with suppress(OSError):
                    os.ftruncate(self.fd, self.size)
                    os.lseek(self.fd, self.size, os.SEEK_SET)
            raise
        self.size += len(data)
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]

    def place(self) -> dict[str, Any] | None:
        """Where it ends, and what it ends with; all of it is on the disk."""
        if self.path is None:
            return None
        with suppress(OSError):  # a device, say
            os.fsync(self.fd)
        return {
            "path": str(self.path.resolve()),
            "size": self.size,
            "tail": digest(self._tail),
            "tail_size": len(self._tail),
        }


def file_digest(path: Path) -> str:
    """Of all bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(save: dict[str, Any]) -> None:
    """Raise TypeError, KeyError or ValueError if a position is not what one must be."""
    sizes, texts = [save["rows"]], [save["model"] or "", save["header"] or ""]
    if save["input"] is not None:
        sizes += [save["input"][key] for key in ("offset", "line", "last_size")]
        sizes += [save["input"][key] for key in ("device", "inode", "head_size")]
        texts += [save["input"][key] for key in ("path", "head", "last")]
        if save["input"]["last_size"] > save["input"]["offset"]:
            raise ValueError
    if save["output"] is not None:
        sizes += [save["output"]["size"], save["output"]["tail_size"]]
        texts += [save["output"]["path"], save["output"]["tail"]]
        if save["output"]["tail_size"] > save["output"]["size"]:
            raise ValueError
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError
    if not all(isinstance(text, str) for text in texts):
        raise TypeError


def _whole_lines(fd: int, least: int) -> int:
    """The end of the last line that has one, at `least` or after."""
    end = os.fstat(fd).st_size
    while end > least:
        start = max(end - 4096, least)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return least


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(f".{path.name}.next")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise
    _sync_folder(path)


def _sync_folder(path: Path) -> None:
    fd = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
