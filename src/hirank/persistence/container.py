"""Model files: a zip without compression of JSON and arrays, with a checksum over all of it.

``header.json`` describes the file, ``state.json`` is the model as nested dicts and lists, its
arrays are in ``arrays/*.npy``, and ``sha256`` comes last. Nothing in a file is ever run: there
is no pickle. See docs/model-files.md.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from numpy.typing import NDArray

from hirank._atomic import replace_file
from hirank._text import abbreviated
from hirank._typing import PathLike
from hirank.exceptions import ModelFileError
from hirank.persistence.encoding import from_json, from_npy, printable, to_json

MAGIC = "hirank model"
FORMAT = 2
"""Version of the layout. A file with a later one is rejected."""
HEADER, STATE, CHECKSUM = "header.json", "state.json", "sha256"
FIRST_BYTES = b"PK\x03\x04"
CHUNK = 1 << 20
SAVE_AGAIN = "Save the model again, or copy the file again from its source."
NOT_A_MODEL = "not a hirank model file. Model files are written by the method save."

_READ_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,  # RecursionError among them
    EOFError,
    ValueError,  # UnicodeError among them
    OverflowError,
    TypeError,
    SyntaxError,
)
"""What reading a damaged file may end in."""


def write(path: PathLike, header: Mapping[str, Any], state: Any) -> None:
    """Write a model file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        An existing file is replaced.
    header : dict
        A description without arrays. ``magic`` and ``format`` are added.
    state : nested dicts and lists of arrays, numbers and strings

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from hirank.persistence.container import read, write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "a.hirank")
    ...     write(path, {"kind": "test"}, {"numbers": [np.arange(3.0), None, 2]})
    ...     header, state = read(path)
    >>> header["format"], header["kind"], state
    (2, 'test', {'numbers': [array([0., 1., 2.]), None, 2]})
    """
    arrays: list[bytes] = []
    text = to_json(state, arrays)
    members = {
        HEADER: to_json({"magic": MAGIC, "format": FORMAT, **header}, None),
        STATE: text,
        **{_array_name(i): data for i, data in enumerate(arrays)},
    }
    digest = hashlib.sha256()
    for name, data in members.items():
        digest.update(_digest_prefix(name, len(data)))
        digest.update(data)
    members[CHECKSUM] = digest.hexdigest().encode()
    with replace_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            # No time stamp, so that equal models make equal files.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, data)


def read(path: PathLike) -> tuple[dict[str, Any], Any]:
    """Return header and state of a model file; raise ModelFileError if it is damaged.

    Arrays of the state are read-only: they are views of the bytes of the file.
    """
    header, members = _read_members(path, lambda name: True)
    n_arrays = len(members) - 2
    expected = [HEADER, STATE, *map(_array_name, range(n_arrays))]
    used: set[int] = set()

    def array(number: int) -> NDArray[Any]:
        if number in used or not 0 <= number < n_arrays:
            raise ValueError(f"array {number} is used twice, or missing")
        used.add(number)
        return from_npy(members[_array_name(number)])

    with _damage(path):
        if [*members] != expected:
            raise ValueError(f"unexpected parts {abbreviated([*map(printable, members)])}")
        state = from_json(members[STATE], array)
        if len(used) < n_arrays:
            raise ValueError(f"{n_arrays - len(used)} arrays are not used")
    return header, state


def read_header(path: PathLike) -> dict[str, Any]:
    """Return the header of a model file, with its checksum verified, without the model."""
    return _read_members(path, lambda name: name == HEADER)[0]


@contextmanager
def _damage(path: PathLike) -> Iterator[None]:
    """Turn what reading a damaged file may end in into a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except _READ_ERRORS as error:
        problem = printable(error, 200) or type(error).__name__
        raise ModelFileError(path, f"damaged or cut off ({problem}). {SAVE_AGAIN}") from error


def _read_members(
    path: PathLike, keep: Callable[[str], bool]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header, and the parts to keep, with the checksum verified."""
    with open(path, "rb") as file, _damage(path):
        if file.read(len(FIRST_BYTES)) != FIRST_BYTES:
            raise ModelFileError(path, NOT_A_MODEL)
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            names = [info.filename for info in infos]
            if len(names) < 3 or names[0] != HEADER or names[-1] != CHECKSUM:
                raise ModelFileError(path, NOT_A_MODEL)
            _check_layout(infos, os.fstat(file.fileno()).st_size)
            members = _read_verified(archive, infos, keep)
        header = from_json(members[HEADER], None)
        if not isinstance(header, dict) or header.get("magic") != MAGIC:
            raise ModelFileError(path, NOT_A_MODEL)
        version = header.get("format")
        if type(version) is int and version > FORMAT:
            raise ModelFileError(
                path,
                f"has format {version}, written by hirank {printable(header.get('hirank'), 40)}; "
                f"this version reads format {FORMAT}. Update hirank: pip install -U hirank.",
            )
        if version != FORMAT:
            raise ModelFileError(
                path, f"has format {printable(version, 40)}, which is not supported. {SAVE_AGAIN}"
            )
    return header, members


def _check_layout(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Raise ValueError if a part cannot be in a file of so many bytes, before it is read."""
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("two parts have the same name")
    end = 0
    for info in infos:
        stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & ~0x800
        if not stored or info.file_size != info.compress_size or info.header_offset < end:
            raise ValueError(f"{printable(info.filename, 40)} is not stored as expected")
        end = info.header_offset + 30 + len(info.filename.encode()) + info.file_size
        if end > size:
            raise ValueError(f"{printable(info.filename, 40)} is longer than the file")


def _read_verified(
    archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], keep: Callable[[str], bool]
) -> dict[str, bytes]:
    digest, members = hashlib.sha256(), {}
    for info in infos[:-1]:
        digest.update(_digest_prefix(info.filename, info.file_size))
        with archive.open(info) as part:
            data = _read_part(part, digest, keep=keep(info.filename))
        if keep(info.filename):
            members[info.filename] = data
    if infos[-1].file_size != 64 or archive.read(infos[-1]) != digest.hexdigest().encode():
        raise ValueError("the checksum does not match")
    return members


def _read_part(part: IO[bytes], digest: Any, *, keep: bool) -> bytes:
    """Return the bytes of a part if they are to be kept; `digest` gets them in any case."""
    blocks = []
    while block := part.read(CHUNK):
        digest.update(block)
        if keep:
            blocks.append(block)
    return b"".join(blocks)


def _digest_prefix(name: str, size: int) -> bytes:
    return f"{name}\n{size}\n".encode()


def _array_name(number: int) -> str:
    return f"arrays/{number:05d}.npy"
