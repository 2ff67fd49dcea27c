"""Model files: a zip without compression of JSON and arrays, with a checksum over all of it.

``header.json`` describes the file, ``state.json`` is the model as nested dicts and lists, its
arrays are in ``arrays/*.npy``, and the comment of the zip is the SHA-256 of all bytes before it.
Nothing in a file is ever run: there is no pickle. See docs/model-files.md.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hirank._atomic import replace_file
from hirank._typing import PathLike
from hirank.exceptions import ModelFileError
from hirank.persistence.encoding import from_json, to_json

MAGIC = "hirank model"
FORMAT = 2
"""Version of the layout. A file with another one is rejected."""
HEADER, STATE = "header.json", "state.json"
DIRECTORY_ENTRY = b"PK\x01\x02"
"""The bytes that each part has in the directory of a zip."""
DIGEST_SIZE = 64
"""Hexadecimal digits of SHA-256."""
ZIP_HEADER = 30
"""Bytes of a zip before the name of its first part."""
MAX_PARTS = 2000
"""Parts of a file; the default rules write fewer than 100."""
MAX_JSON, MAX_VALUES = 4_000_000, 100_000
"""Bytes and values of the JSON of a part, in addition to those in proportion to the arrays: a value
of 2 bytes may take 70 in memory."""
ARRAY_BYTES_PER_VALUE = 16
"""A feature has about 40 bytes in arrays at least, and a name and limits in the JSON."""
SAVE_AGAIN = "Save the model again, or copy the file again from its source."
NOT_A_MODEL = "not a hirank model file. Model files are written by the method save."


def pack(header: Mapping[str, Any], state: Any) -> bytes:
    """Return the content of a model file.

    Parameters
    ----------
    header : dict
        A description without arrays. ``magic`` and ``format`` are added.
    state : nested dicts and lists of arrays, numbers and strings

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hirank.persistence.container import pack, read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.hirank")
    ...     data = pack({"kind": "test"}, {"numbers": [np.arange(3.0), None, 2]})
    ...     _ = path.write_bytes(data)
    ...     header, state = read(path)
    >>> header["format"], header["kind"], state
    (2, 'test', {'numbers': [array([0., 1., 2.]), None, 2]})
    """
    arrays: list[bytes] = []
    parts = [to_json({"magic": MAGIC, "format": FORMAT, **header}), to_json(state, arrays), *arrays]
    _check_count(len(parts))
    for part in parts[:2]:
        _check_json(part, sum(map(len, arrays)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, part in zip(_part_names(len(parts)), parts, strict=True):
            # No time stamp, so that equal models make equal files.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, part)
        archive.comment = bytes(DIGEST_SIZE)  # replaced below
    data = file.getvalue()[:-DIGEST_SIZE]
    return data + _digest(data)


def write(path: PathLike, header: Mapping[str, Any], state: Any) -> None:
    """Write a model file, which appears complete or not at all; an existing one is replaced."""
    with replace_file(path) as target:
        target.write(pack(header, state))


def read(path: PathLike) -> tuple[dict[str, Any], Any]:
    """Return header and state of a model file; raise ModelFileError if it is damaged.

    Arrays of the state are read-only: they are views of the bytes of the file.
    """
    return unpack(_read_file(path), path)


def unpack(data: bytes, path: PathLike) -> tuple[dict[str, Any], Any]:
    """Return header and state of the content of a model file, as `read`; errors name the path."""
    header, archive = _open(data, path)
    with model_file_errors(path):
        names = archive.namelist()
        if names != _part_names(len(names)):
            raise ValueError("the zip has unexpected parts")
        arrays = {i: archive.read(name) for i, name in enumerate(names[2:])}
        state = from_json(_read_json(archive, STATE), arrays)
        if arrays:
            raise ValueError(f"array {min(arrays)} is not used")
    return header, state


def read_header(path: PathLike) -> dict[str, Any]:
    """Return the header of a model file, with its checksum verified, without the model."""
    return _open(_read_file(path), path)[0]


@contextmanager
def model_file_errors(path: PathLike) -> Iterator[None]:
    """Raise ModelFileError in place of whatever a damaged file makes the block raise."""
    try:
        yield
    except Exception as error:
        problem = printable(error, 300) or type(error).__name__
        raise ModelFileError(path, f"damaged or cut off ({problem}). {SAVE_AGAIN}") from error


def printable(text: object, length: int) -> str:
    """Return text from a file or an error as one line of at most `length` characters."""
    line = " ".join(str(text)[: 2 * length].split()).rstrip(".")
    return "".join(c if c.isprintable() else "?" for c in line[:length])


def _read_file(path: PathLike) -> bytes:
    """Return the content of a model file, of which only the start is read if it is another file."""
    with open(path, "rb") as file:
        _check_start(file.peek(ZIP_HEADER + len(HEADER)), path)  # another file may be of any size
        return file.read()


def _check_start(start: bytes, path: PathLike) -> None:
    name = start[ZIP_HEADER : ZIP_HEADER + len(HEADER)]
    if not start.startswith(b"PK\x03\x04") or name != HEADER.encode():
        raise ModelFileError(path, NOT_A_MODEL)


def _open(data: bytes, path: PathLike) -> tuple[dict[str, Any], zipfile.ZipFile]:
    """Return the header and all parts, with the checksum and the format verified."""
    _check_start(data, path)
    with model_file_errors(path):
        if _digest(memoryview(data)[:-DIGEST_SIZE]) != data[-DIGEST_SIZE:]:
            raise ValueError("the checksum does not match")
        _check_count(data.count(DIRECTORY_ENTRY))  # before ZipFile reads them
        archive = zipfile.ZipFile(io.BytesIO(data))
        parts = archive.infolist()
        # Before anything is read: a part that is compressed could be of any size.
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
            raise ValueError("a part of the zip is compressed")
        if sum(max(part.file_size, part.compress_size) for part in parts) > len(data):
            raise ValueError("the parts of the zip are larger than the file")
        header = from_json(_read_json(archive, HEADER))
    if not isinstance(header, dict) or header.get("magic") != MAGIC:
        raise ModelFileError(path, NOT_A_MODEL)
    version = header.get("format")
    if type(version) is not int or version != FORMAT:
        later = type(version) is int and version > FORMAT
        remedy = "Update hirank: pip install -U hirank." if later else SAVE_AGAIN
        writer = printable(header.get("hirank"), 40)
        raise ModelFileError(
            path,
            f"has format {printable(version, 40)}, written by hirank {writer}; this version reads "
            f"format {FORMAT}. {remedy}",
        )
    return header, archive


def _read_json(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a part that is JSON, after checking that it does not take too much to parse."""
    array_bytes = sum(part.file_size for part in archive.infolist()[2:])
    data = archive.read(name)
    _check_json(data, array_bytes)
    return data


def _check_json(data: bytes, array_bytes: int) -> None:
    """Raise ValueError if the JSON of a file with so many bytes of arrays is too large."""
    if len(data) > MAX_JSON + array_bytes:
        raise ValueError(
            f"the JSON must have at most {MAX_JSON + array_bytes} bytes; got {len(data)}"
        )
    values, most = sum(map(data.count, b"[{,")), MAX_VALUES + array_bytes // ARRAY_BYTES_PER_VALUE
    if values > most:
        raise ValueError(f"the JSON must have at most {most} values; got about {values}")


def _check_count(count: int) -> None:
    if count > MAX_PARTS:
        raise ValueError(f"there must be at most {MAX_PARTS} parts; got {count}")


def _part_names(count: int) -> list[str]:
    return [HEADER, STATE, *(f"arrays/{i:05d}.npy" for i in range(count - 2))]


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
