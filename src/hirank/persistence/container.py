"""Model files: a zip without compression that holds JSON and arrays, and a checksum over all of it.

``header.json`` says what the file is, ``state.json`` is the model as nested dicts and lists, the
numbers of its arrays lie in ``arrays/*.npy``, and ``sha256`` comes last. Nothing in a file is ever
run: there is no pickle, and not even the headers of arrays are evaluated. See docs/model-files.md.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hirank.persistence.encoding import ModelFileError, npy_view, parsed, said, to_json, whole

__all__ = ["FORMAT", "MAGIC", "ModelFileError", "read", "read_header", "write"]

MAGIC = "hirank model"
FORMAT = 1
"""Version of the layout. A file with a later one is refused."""
HEADER, STATE, CHECKSUM = "header.json", "state.json", "sha256"
FIRST_BYTES = b"PK\x03\x04"
CHUNK = 1 << 20
AGAIN = "Save the model again, or copy the file again from where it came."
NO_MODEL = "Model files are written by KFMC.save and OnlineKFMC.save."

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
    UnicodeError,
)
"""What reading a damaged zip may end in."""


def write(path: str | os.PathLike[str], header: Mapping[str, Any], state: Any) -> None:
    """Write a model file; it is there as a whole or not at all.

    Parameters
    ----------
    path : str or path
        Another file of that name is replaced.
    header : dict
        What the file is, without arrays. What it is by itself (``magic``, ``format``) is added.
    state : nested dicts and lists of arrays, numbers and words

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
    (1, 'test', {'numbers': [array([0., 1., 2.]), None, 2]})
    """
    arrays: list[bytes] = []
    text = to_json(state, arrays)
    named = {
        HEADER: to_json({"magic": MAGIC, "format": FORMAT, **header}, None),
        STATE: text,
        **{_array_name(i): data for i, data in enumerate(arrays)},
    }
    digest = hashlib.sha256()
    for name, data in named.items():
        _update(digest, name, len(data))
        digest.update(data)
    named[CHECKSUM] = digest.hexdigest().encode()
    _replace(Path(os.path.realpath(path)), named)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Any]:
    """Header and state of a model file; raises ModelFileError if there is anything wrong with it.

    Arrays of the state can't be written to: they are the bytes of the file.
    """
    header, members = _checked(path, lambda name: True)
    numbers = len(members) - 2
    expected = [HEADER, STATE, *(_array_name(i) for i in range(numbers))]
    if [*members] != expected:
        raise ModelFileError(
            f"{path} is damaged: it should have the parts {_some(expected)} but has "
            f"{_some([*members])}. {AGAIN}"
        )
    used: set[int] = set()

    def array(number: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        if number in used or not 0 <= number < numbers:
            raise ValueError(f"array {number} is used twice, or is not there")
        used.add(number)
        return npy_view(members[_array_name(number)], dtype, shape)

    try:
        state = whole(parsed(members[STATE]), array)
        if len(used) < numbers:
            raise ValueError(f"{numbers - len(used)} arrays belong to nothing")
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {error!s:.200}. {AGAIN}") from error
    return header, state


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of a model file, its checksum verified, without building the model."""
    return _checked(path, lambda name: name == HEADER)[0]


def _checked(
    path: str | os.PathLike[str], keep: Callable[[str], bool]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header, and the parts that are to be kept, the checksum verified."""
    with open(path, "rb") as file:
        if file.read(len(FIRST_BYTES)) != FIRST_BYTES:
            raise ModelFileError(f"{path} is no hirank model file. {NO_MODEL}")
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, os.fstat(file.fileno()).st_size, keep)
        except ModelFileError as error:
            raise ModelFileError(f"{path} {error}") from error.__cause__
        except _ZIP_ERRORS as error:
            raise ModelFileError(
                f"{path} is damaged or was cut off: it is no complete zip file "
                f"({said(error, 80)}). {AGAIN}"
            ) from error
    try:
        header = whole(parsed(members[HEADER]), None)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: {error!s:.200}. {AGAIN}") from error
    _check_header(path, header)
    return header, members


def _check_header(path: str | os.PathLike[str], header: Any) -> None:
    if not isinstance(header, dict) or header.get("magic") != MAGIC:
        raise ModelFileError(f"{path} is no hirank model file. {NO_MODEL}")
    version = header.get("format")
    if type(version) is int and version > FORMAT:
        raise ModelFileError(
            f"{path} has format {version}, written by hirank {said(header.get('hirank'), 40)}; "
            f"this version reads formats up to {FORMAT}. Update hirank: pip install -U hirank."
        )
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path} is damaged: there is no format {said(version, 40)}. {AGAIN}")


def _members(archive: zipfile.ZipFile, size: int, keep: Callable[[str], bool]) -> dict[str, bytes]:
    """The parts of a file of so many bytes, in order. Sizes are checked before anything is read."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if len(names) < 3 or names[0] != HEADER or names[-1] != CHECKSUM:
        raise ModelFileError(f"is no hirank model file: it is some other zip. {NO_MODEL}")
    if len(set(names)) < len(names):
        raise ModelFileError(f"is damaged: it has two parts of the same name. {AGAIN}")
    end = 0
    for info in infos:
        plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & ~0x800
        if not plain or info.file_size != info.compress_size or info.header_offset < end:
            raise ModelFileError(
                f"is damaged: {said(info.filename, 40)} is not stored as it should. {AGAIN}"
            )
        end = info.header_offset + 30 + len(info.filename.encode()) + info.file_size
        if end > size:
            raise ModelFileError(
                f"is damaged: {said(info.filename, 40)} is longer than the file. {AGAIN}"
            )
    digest, found = hashlib.sha256(), {}
    for info in infos[:-1]:
        _update(digest, info.filename, info.file_size)
        with archive.open(info) as part:
            data = _read(part, digest, keep(info.filename))
        if keep(info.filename):
            found[info.filename] = data
    if infos[-1].file_size != 64 or archive.read(infos[-1]) != digest.hexdigest().encode():
        raise ModelFileError(f"is damaged: its checksum does not match its contents. {AGAIN}")
    return found


def _read(part: IO[bytes], digest: Any, keep: bool) -> bytes:
    """A part's bytes, if they are to be kept; `digest` sees them in any case."""
    if keep:
        data = part.read()
        digest.update(data)
        return data
    while block := part.read(CHUNK):
        digest.update(block)
    return b""


def _update(digest: Any, name: str, size: int) -> None:
    digest.update(f"{name}\n{size}\n".encode())


def _array_name(number: int) -> str:
    return f"arrays/{number:05d}.npy"


def _some(names: list[str]) -> str:
    return ", ".join(said(name, 40) for name in names[:5]) + (", ..." if len(names) > 5 else "")


def _replace(path: Path, named: Mapping[str, bytes]) -> None:
    """Write a zip beside the path, and rename it."""
    # Not by tempfile: its files are for their owner only, and would stay so.
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with new.open("xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, data in named.items():
                    # No time stamp: equal models make equal files.
                    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                    info.create_system, info.external_attr = 3, 0o644 << 16
                    archive.writestr(info, data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # so that the new name outlasts a power cut too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
