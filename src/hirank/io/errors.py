"""What can go wrong with a file, said so that the reader knows what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import NoReturn

__all__ = ["FileError", "OutputError", "missing_package", "reading", "writing"]

Path = str | PathLike[str]


class FileError(ValueError):
    """A table can't be read or written; the message says why and what to do.

    Examples
    --------
    >>> from hirank.io import FileError, open_table
    >>> try:
    ...     open_table("no such file.csv")
    ... except FileError as error:
    ...     print(error)
    no such file.csv: there is no such file; check the name and the folder
    """


class OutputError(FileError):
    """The table can't be written: the disk is full, the file is there already, no permission.

    Examples
    --------
    >>> from hirank.io import FileError, OutputError
    >>> issubclass(OutputError, FileError)
    True
    """


_REASONS = {
    errno.ENOENT: "there is no such file; check the name and the folder",
    errno.ENOTDIR: "a part of this path is a file, not a folder; check the path",
    errno.EISDIR: "this is a folder; name a file in it",
    errno.EACCES: "no permission; change the permissions of the file or of its folder",
    errno.EPERM: "no permission; change the permissions of the file or of its folder",
    errno.ENOSPC: "no space left on the disk; free some, or write to another disk",
    errno.EDQUOT: "the disk quota is used up; free some space, or write to another disk",
    errno.EFBIG: "the file gets larger than the disk allows; write to another disk",
    errno.EROFS: "the disk is read-only; write to another folder",
    errno.ENAMETOOLONG: "the name is too long; shorten it",
}


def _sentence(error: OSError) -> str:
    return _REASONS.get(error.errno or 0, f"{error.strerror or error}; try again, or another disk")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of the system while reading `path` into a `FileError`."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: {_sentence(error)}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the system while writing `path` into an `OutputError`.

    A closed pipe stays a `BrokenPipeError`: whoever reads the output has had enough, which is no
    fault of the file.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise OutputError(f"{path}: its folder does not exist; create it first") from error
        raise OutputError(f"{path}: {_sentence(error)}") from error


def missing_package(path: Path, package: str, error: ImportError) -> NoReturn:
    """Say which package reads this kind of file."""
    raise FileError(
        f'{path}: this kind of file needs {package}; pip install "hirank[cli]", or convert to CSV'
    ) from error
