"""Errors of the operating system and of file libraries, as errors that name file and remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hirank._typing import PathLike
from hirank.exceptions import FileError, OutputError

_PERMISSION = "No permission. Change the permissions of the file or of its folder."
_PROBLEMS = {
    errno.ENOENT: "No such file. Check the name and the folder.",
    errno.ENOTDIR: "A part of this path is a file, not a folder. Check the path.",
    errno.EISDIR: "This is a folder. Add a file name.",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.ENOSPC: "No space is left on the disk. Free some, or write to another disk.",
    errno.EDQUOT: "The disk quota is used up. Free some space, or write to another disk.",
    errno.EFBIG: "The file exceeds the maximal size on this disk. Write to another disk.",
    errno.EROFS: "The disk is read-only. Write to another folder.",
    errno.EBADF: "It is closed. Open it, or use a file.",
    errno.ENAMETOOLONG: "The name is too long. Shorten it.",
}


def describe_problem(error: OSError) -> str:
    """Return what is wrong, and the remedy."""
    default = f"{error.strerror or error}. Repeat the command, or use another disk."
    return _PROBLEMS.get(error.errno or 0, default)


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Raise errors of the system while reading `path` as `FileError`."""
    try:
        yield
    except OSError as error:
        raise FileError(path, describe_problem(error)) from error


@contextmanager
def writing(path: PathLike) -> Iterator[None]:
    """Raise errors of the system while writing `path` as `OutputError`.

    A closed pipe stays a `BrokenPipeError`: the reader of the output ended, which is no error.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except FileNotFoundError as error:
        raise OutputError(path, "The folder does not exist. Create it first.") from error
    except OSError as error:
        raise OutputError(path, describe_problem(error)) from error


def damaged(path: PathLike, extension: str, error: BaseException) -> FileError:
    """Make the error for bytes that a file library cannot read."""
    reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
    return FileError(path, f"Not a {extension} file, or damaged ({reason}). Write it again.")


def require(module: str, path: PathLike) -> Any:
    """Import a module of an optional package that reads or writes `path`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise FileError(
            path,
            f'This format requires {package}. Install it by pip install "hirank[cli]", or convert '
            "the file to CSV.",
        ) from error
