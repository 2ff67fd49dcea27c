"""The lines of a text file: bytes, decompressed, decoded and cut into records."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator
from typing import BinaryIO, cast

from hirank.io.dialect import Dialect
from hirank.io.errors import FileError, Path, reading

__all__ = ["Source"]

_BLOCK = 1 << 20
_LONGEST = 1 << 26  # characters of a record; more than this is no table
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# The mark is kept and written by itself, so the codec must neither want nor add one.
_WITHOUT_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


class Source:
    r"""A text file, compressed by gzip or not, or standard input.

    Parameters
    ----------
    path : str or path; "-" is standard input
    encoding : str
        A byte order mark says more than this.
    again : bool
        Whether the text will be read more than once: a pipe is then copied to a temporary file.

    Attributes
    ----------
    bom : bytes
    encoding : str
    compressed : bool
    head : str
        The first megabyte or so.
    newline : str
        "\n", which may follow a "\r", or "\r" in a file that has nothing else.
    """

    def __init__(self, path: Path, encoding: str, *, again: bool) -> None:
        self.path = path
        self._copy: tempfile._TemporaryFileWrapper[bytes] | None = None
        self._once: BinaryIO | None = None
        self._used = False
        self._line = 1
        try:
            name = codecs.lookup(encoding).name
        except LookupError:
            raise FileError(f'{path}: no such encoding: "{encoding}"; try latin-1') from None
        self.encoding = _WITHOUT_BOM.get(name, name)
        with reading(path):
            if os.fspath(path) == "-" or not stat.S_ISREG(os.stat(path).st_mode):
                self._open_pipe(again)
            start = self._peek()
        self.compressed = start[:2] == b"\x1f\x8b"
        self.bom = b""
        self._blocks = self._decoded()
        self.head = next(self._blocks, "")
        if self._once is None:
            self._blocks.close()
        returns = "\r" in self.head and "\n" not in self.head
        self.newline = "\r" if returns else "\n"

    def records(self, dialect: Dialect, *, blank_rows: bool) -> Iterator[list[str]]:
        """The records of the file, many at a time.

        A blank line goes with the record before it, unless `blank_rows` makes it a row.
        """
        held: list[str] = []  # the last record, which a blank line may follow
        opened: list[str] = []  # the lines of a record in which a quote is open
        size = 0
        for lines in self._lines(dialect.newline):
            records = held
            plain = not opened and not any(dialect.quote in line for line in lines)
            if plain and (blank_rows or not (lines.count("\n") or lines.count("\r\n"))):
                records += lines
            else:
                for line in lines:
                    if not opened and not blank_rows and records and not line.rstrip("\r\n"):
                        records[-1] += line
                    elif not opened and dialect.quote not in line:
                        records.append(line)
                    elif dialect.leaves_open(line, bool(opened)):
                        size = size + len(line) if opened else len(line)
                        opened.append(line)
                        if size > _LONGEST:
                            break
                    else:
                        records.append("".join((*opened, line)))
                        opened = []
            if size > _LONGEST:
                break
            held = [records.pop()] if records else []
            self._line += sum(record.count(dialect.newline) for record in records)
            yield records
        self._line += sum(record.count(dialect.newline) for record in held)
        if opened:
            raise FileError(
                f"{self.path}, line {self._line}: a quote {dialect.quote} is opened and never "
                "closed; close it, or double a quote that is meant as such"
            )
        yield held

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        if self._once is not None and os.fspath(self.path) != "-":
            self._once.close()

    def _open_pipe(self, again: bool) -> None:
        if os.fspath(self.path) == "-":
            stream = cast("BinaryIO", sys.stdin.buffer)
        elif os.path.isdir(self.path):
            raise FileError(f"{self.path}: this is a folder; name a file in it")
        else:
            stream = open(self.path, "rb")  # noqa: SIM115 - read later, closed by its end
        if again:
            self._copy = tempfile.NamedTemporaryFile(prefix="hirank-")  # noqa: SIM115
            shutil.copyfileobj(stream, self._copy, _BLOCK)
            self._copy.flush()
            if os.fspath(self.path) != "-":
                stream.close()
        else:
            peeks = hasattr(stream, "peek")
            self._once = stream if peeks else cast("BinaryIO", io.BufferedReader(stream))

    def _peek(self) -> bytes:
        if self._once is not None:
            return cast("io.BufferedReader", self._once).peek(2)
        with self._open() as stream:
            return stream.read(2)

    def _open(self) -> BinaryIO:
        if self._once is None:
            return open(self._copy.name if self._copy is not None else self.path, "rb")
        return self._once

    def _text(self) -> Iterator[str]:
        """The text from its start, in blocks."""
        if self._once is None:
            yield from self._decoded()
            return
        if self._used:
            raise FileError(f"{self.path}: a pipe can be read once only; save it to a file first")
        self._used = True
        yield self.head
        yield from self._blocks

    def _decoded(self) -> Generator[str, None, None]:
        lines, decoder = 1, None
        for block in self._bytes():
            if decoder is None:
                block = self._without_bom(block)
                decoder = codecs.getincrementaldecoder(self.encoding)()
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                byte = error.object[error.start] if error.start < len(error.object) else 0
                raise FileError(
                    f"{self.path}, line {line}: the byte 0x{byte:02x} is not {self.encoding} "
                    "text; if the file is a table, name its encoding (often --encoding latin-1)"
                ) from error
            except UnicodeError as error:
                raise FileError(f"{self.path}: not {self.encoding} text: {error}") from error
            if not isinstance(text, str):
                raise FileError(f'{self.path}: "{self.encoding}" is no encoding of text')
            lines += text.count("\n")
            if text:
                yield text

    def _without_bom(self, block: bytes) -> bytes:
        for bom, encoding in _BOMS:
            if block.startswith(bom):
                self.bom, self.encoding = bom, encoding
                return block[len(bom) :]
        return block

    def _bytes(self) -> Iterator[bytes]:
        """Blocks of bytes, the last of them empty."""
        with reading(self.path):
            stream = self._open()
            try:
                source = (
                    cast("BinaryIO", gzip.GzipFile(fileobj=stream)) if self.compressed else stream
                )
                while block := source.read(_BLOCK):
                    yield block
                yield b""
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise FileError(
                    f"{self.path}: the compressed file is damaged or cut short ({error}); "
                    "fetch it again"
                ) from error
            finally:
                if stream is not self._once:
                    stream.close()

    def _lines(self, newline: str) -> Iterator[list[str]]:
        self._line = 1
        rest = ""
        for text in self._text():
            block = rest + text
            if not block:
                continue
            if newline == "\n":
                lines = list(io.StringIO(block, newline="\n"))
            else:
                lines = re.findall(r"[^\r]*\r|[^\r]+", block)
            rest = "" if lines[-1].endswith(newline) else lines.pop()
            if len(rest) > _LONGEST:
                raise FileError(f"{self.path}: a line without end; this is no table of text")
            yield lines
        if rest:
            yield [rest]
