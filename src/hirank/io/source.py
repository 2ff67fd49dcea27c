"""The records of a text file: bytes, decompressed, decoded and split at line ends."""

from __future__ import annotations

import codecs
import errno
import gzip
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from typing import BinaryIO, cast

from hirank._typing import PathLike
from hirank.exceptions import FileError
from hirank.io.dialect import Dialect
from hirank.io.errors import reading, writing

_BLOCK = 1 << 20
_MAX_LINE = 1 << 26  # characters
_MAX_OPEN = 100_000  # lines of a quoted cell; more are a quote that is never closed
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The mark is kept and written separately, so the codec must neither require nor add one.
_WITHOUT_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


class Source:
    r"""A text file, compressed by gzip or not, or standard input.

    A pipe is copied to a temporary file, since the text may be read more than once.

    Parameters
    ----------
    path : str or path; "-" is standard input
    encoding : str
        A byte order mark takes precedence.

    Attributes
    ----------
    bom : bytes
    encoding : str
    head : str
        The first megabyte or so.
    newline : str
        "\n", which may follow a "\r", or "\r" in a file that has nothing else.
    """

    def __init__(self, path: PathLike, encoding: str) -> None:
        self.path = path
        try:
            "".encode(encoding)
        except LookupError:
            raise FileError(path, f'Unknown encoding "{encoding}". Try latin-1.') from None
        name = codecs.lookup(encoding).name
        self.encoding = _WITHOUT_BOM.get(name, name)
        self.bom = b""
        self._stack = ExitStack()
        self._name: PathLike = path
        with reading(path):
            if os.fspath(path) == "-" or not os.path.isfile(path):
                self._copy_pipe()
        self.head = next(self._text(), "")
        self.newline = "\r" if "\r" in self.head and "\n" not in self.head else "\n"

    def records(self, dialect: Dialect, *, empty_rows: bool) -> Iterator[list[str]]:
        """Yield the records of the file, many at a time.

        An empty line is added to the record before it, unless `empty_rows` makes it a row.
        """
        last: list[str] = []  # the last record, which an empty line may follow
        opened: list[str] = []  # the lines of a record in which a quote is open
        n_lines = 1
        for lines in self._lines(dialect.newline):
            records = last
            for line in lines:
                if not opened and not empty_rows and records and not line.rstrip("\r\n"):
                    records[-1] += line
                elif not opened and dialect.quote not in line:
                    records.append(line)
                elif dialect.leaves_open(line, bool(opened)):
                    opened.append(line)
                else:
                    records.append("".join((*opened, line)))
                    opened = []
            if len(opened) > _MAX_OPEN or sum(map(len, opened)) > _MAX_LINE:
                break
            last = [records.pop()] if records else []
            n_lines += sum(record.count(dialect.newline) for record in records)
            yield records
        if opened:
            n_lines += sum(record.count(dialect.newline) for record in last)
            raise FileError(
                self.path,
                f"Line {n_lines}: a quote {dialect.quote} is opened and never closed. Close it, or "
                "double a quote that is part of a text.",
            )
        yield last

    def close(self) -> None:
        """Remove the copy of a pipe."""
        self._stack.close()

    def _copy_pipe(self) -> None:
        is_stdin = os.fspath(self.path) == "-"
        if is_stdin and sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with nullcontext(sys.stdin.buffer) if is_stdin else open(self.path, "rb") as stream:
            with writing(tempfile.gettempdir()):
                copy = tempfile.NamedTemporaryFile(prefix="hirank-")  # noqa: SIM115 - see `close`
            self._stack.callback(copy.close)
            while block := stream.read(_BLOCK):
                with writing(copy.name):  # a full disk is that of the copy
                    copy.write(block)
                    copy.flush()
        self._name = copy.name

    def _text(self) -> Iterator[str]:
        """Yield the text from its start, in blocks."""
        n_lines, decoder = 1, None
        for block in self._bytes():
            if decoder is None:
                found = [(bom, name) for bom, name in _BOMS if block.startswith(bom)]
                self.bom, self.encoding = (*found, (b"", self.encoding))[0]
                block = block[len(self.bom) :]
                decoder = codecs.getincrementaldecoder(self.encoding)()
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line = n_lines + error.object[: error.start].count(b"\n")
                byte = error.object[error.start] if error.start < len(error.object) else 0
                raise FileError(
                    self.path,
                    f"Line {line}: byte 0x{byte:02x} is not {self.encoding} text. Give the "
                    "encoding of the file (often --encoding latin-1).",
                ) from error
            n_lines += text.count("\n")
            if text:
                yield text

    def _bytes(self) -> Iterator[bytes]:
        """Yield blocks of bytes, the last of them empty."""
        with reading(self.path), open(self._name, "rb") as stream:
            compressed = stream.peek(2)[:2] == b"\x1f\x8b"
            source = cast("BinaryIO", gzip.GzipFile(fileobj=stream) if compressed else stream)
            try:
                while block := source.read(_BLOCK):
                    yield block
                yield b""
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                problem = f"The compressed file is damaged ({error}). Compress it again."
                raise FileError(self.path, problem) from error

    def _lines(self, newline: str) -> Iterator[list[str]]:
        parts, size, n_lines = list[str](), 0, 1  # of a line whose end is yet to come
        for text in self._text():
            part, *lines = text.split(newline)
            parts.append(part)
            size += len(part)
            if lines:
                *lines, rest = ["".join(parts), *lines]
                parts, size = [rest], len(rest)
                n_lines += len(lines)
                yield [line + newline for line in lines]
            if size > _MAX_LINE:
                raise FileError(
                    self.path,
                    f"Line {n_lines} is longer than {_MAX_LINE >> 20} MiB. Check the line ends, "
                    "or whether this is a text file.",
                )
        if size:
            yield ["".join(parts)]
