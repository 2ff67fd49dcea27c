"""Whether a MATLAB file is whole: SciPy's reader may crash the process on one that is not."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["check"]

_MATRIX, _COMPRESSED = 14, 15
_DATA = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})
_CELL, _STRUCT, _OBJECT, _SPARSE = 1, 2, 3, 5
_PLAIN = frozenset({4, *range(6, 16)})  # text and numbers
_DEEPEST = 40


class _Element(NamedTuple):
    kind: int
    start: int
    stop: int


def check(data: bytes) -> None:
    """Walk the elements of a file of version 5; a ValueError tells of one that is damaged.

    Parameters
    ----------
    data : bytes
        The whole file. Files of version 4 have no such elements and are let through.
    """
    if len(data) < 128 or 0 in data[:4]:
        return
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise ValueError("no byte order in the header")
    position = 128
    while position < len(data):
        kind, size = _words(data, position, order)
        start, position = position + 8, position + 8 + size
        if position > len(data) or kind not in (_MATRIX, _COMPRESSED):
            raise ValueError("a variable is cut short or of no known kind")
        if kind == _MATRIX:
            _matrix(data, start, position, order, 0)
            continue
        unpacked = zlib.decompress(data[start:position])
        kind, size = _words(unpacked, 0, order)
        if kind != _MATRIX or size + 8 > len(unpacked):
            raise ValueError("a compressed variable is cut short or of no known kind")
        _matrix(unpacked, 8, size + 8, order, 0)


def _words(data: bytes, position: int, order: str) -> tuple[int, int]:
    if position + 8 > len(data):
        raise ValueError("cut short")
    first, second = struct.unpack_from(f"{order}II", data, position)
    return first, second


def _elements(data: bytes, position: int, stop: int, order: str) -> Iterator[_Element]:
    """The elements from a position on, each in bounds and of a known type."""
    while position < stop:
        kind, size = _words(data, position, order)
        if kind >> 16:  # four bytes or less, kept with the tag
            kind, size, start, after = kind & 0xFFFF, kind >> 16, position + 4, position + 8
            if size > 4:
                raise ValueError("a short element is too long")
        else:
            start = position + 8
            after = start + size + (-size % 8 if kind != _MATRIX else 0)
        if start + size > stop or kind not in _DATA | {_MATRIX}:
            raise ValueError("an element is cut short or of no known type")
        yield _Element(kind, start, start + size)
        position = after


def _matrix(data: bytes, start: int, stop: int, order: str, depth: int) -> None:
    if start == stop:
        return  # an empty cell
    if depth > _DEEPEST:
        raise ValueError("variables too deep within each other")
    parts = list(_elements(data, start, stop, order))
    if (
        len(parts) < 3
        or parts[0].kind != 6
        or parts[1].kind not in (5, 6)
        or parts[2].kind == _MATRIX
    ):
        raise ValueError("a variable without flags, dimensions and name")
    flags, _ = _words(data, parts[0].start, order)
    width = parts[1].stop - parts[1].start
    if parts[0].stop - parts[0].start != 8 or width % 4 or not 8 <= width <= 128:
        raise ValueError("flags or dimensions of a wrong size")
    shape = struct.unpack_from(f"{order}{width // 4}i", data, parts[1].start)
    kind, is_complex, rest = flags & 0xFF, bool(flags & 0x800), parts[3:]
    count = math.prod(shape)
    if min(shape) < 0:
        raise ValueError("a negative dimension")
    if kind in _PLAIN or kind == _SPARSE:
        wanted = (3 if kind == _SPARSE else 1) + is_complex
        if len(rest) != wanted or any(part.kind == _MATRIX for part in rest):
            raise ValueError("the values of a variable are missing")
    elif kind in (_CELL, _STRUCT, _OBJECT):
        names = {_CELL: 0, _STRUCT: 2, _OBJECT: 3}[kind]
        inner = rest[names:]
        if any(part.kind == _MATRIX for part in rest[:names]) or len(rest) < names:
            raise ValueError("a structure without names")
        if any(part.kind != _MATRIX for part in inner) or (kind == _CELL and len(inner) != count):
            raise ValueError("the number of cells differs from the dimensions")
        if names:
            _fields(data, rest[names - 2 : names], len(inner), count, order)
        for part in inner:
            _matrix(data, part.start, part.stop, order, depth + 1)


def _fields(data: bytes, names: list[_Element], inner: int, count: int, order: str) -> None:
    """Whether a structure has as many values as its names and dimensions say."""
    size, text = names
    if size.stop - size.start != 4:
        raise ValueError("names of a wrong length")
    (length,) = struct.unpack_from(f"{order}i", data, size.start)
    if length < 1 or (text.stop - text.start) % length:
        raise ValueError("names of a wrong length")
    if (text.stop - text.start) // length * count != inner:
        raise ValueError("the number of values differs from the names and dimensions")
