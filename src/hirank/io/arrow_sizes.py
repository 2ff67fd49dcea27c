"""The size of an Arrow file in memory, from its messages: pyarrow gives it only after reading.

A message is metadata, a flatbuffer, and a body of buffers; a compressed buffer starts with its size
before compression (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_CONTINUES = 0xFFFFFFFF  # before the size of the metadata, except in old files
_MAX_METADATA = 1 << 26  # bytes
_DICTIONARY, _RECORDS = 2, 3  # types of messages that have buffers


def batch_sizes(stream: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield the rows of each batch, and the bytes of its buffers after decompression."""
    for message, body in _messages(stream):
        kind, batch = message.number(1, "<B"), message.table(2)
        if kind == _DICTIONARY and batch is not None:
            batch = batch.table(1)
        if kind not in (_DICTIONARY, _RECORDS) or batch is None:
            continue
        rows = batch.number(0, "<q") if kind == _RECORDS else 0
        compressed, size = batch.table(3) is not None, 0
        for offset, length in batch.pairs(2):
            size += length
            if compressed and length:
                stream.seek(body + offset)
                size += max(0, *struct.unpack("<q", stream.read(8)))
        yield rows, size


def _messages(stream: BinaryIO) -> Iterator[tuple[_Table, int]]:
    """Yield the metadata of all messages, and the positions of their bodies."""
    position = 8 if stream.read(6) == b"ARROW1" else 0
    while True:
        stream.seek(position)
        head = stream.read(8)
        first, second = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
        size, start = (second, 8) if first == _CONTINUES else (first, 4)
        if not size:
            return
        if size > _MAX_METADATA:
            raise ValueError(f"a message has {size} bytes of metadata")
        stream.seek(position + start)
        data = stream.read(size)
        message = _Table(data, *struct.unpack_from("<I", data))
        body = position + start + size
        yield message, body
        length = message.number(3, "<q")
        if length < 0:
            raise ValueError("a message has a negative length")
        position = body + length


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer: fields by number, at positions that a list of offsets states."""

    data: bytes
    position: int

    def _find(self, field: int) -> int:
        """Return the position of a field; 0 if it is absent."""
        offsets = self.position - struct.unpack_from("<i", self.data, self.position)[0]
        place = 4 + 2 * field
        if place >= struct.unpack_from("<H", self.data, offsets)[0]:
            return 0
        offset = int(struct.unpack_from("<H", self.data, offsets + place)[0])
        return self.position + offset if offset else 0

    def _follow(self, field: int) -> int:
        found = self._find(field)
        return found + int(struct.unpack_from("<I", self.data, found)[0]) if found else 0

    def number(self, field: int, form: str) -> int:
        """Return a number; 0 if it is absent."""
        found = self._find(field)
        return int(struct.unpack_from(form, self.data, found)[0]) if found else 0

    def table(self, field: int) -> _Table | None:
        """Return a table within this one."""
        found = self._follow(field)
        return _Table(self.data, found) if found else None

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs of 64-bit integers of a vector."""
        found = self._follow(field)
        for k in range(struct.unpack_from("<I", self.data, found)[0] if found else 0):
            yield struct.unpack_from("<qq", self.data, found + 4 + 16 * k)
