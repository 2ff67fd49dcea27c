"""One way to write a file: to a temporary file beside it, renamed when it is complete."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hirank._typing import PathLike

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed anyway
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replace_file(path: PathLike, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The file at `path` is complete at any time: the old one, or the new one. Permissions of a file
    that is replaced are kept, and a symbolic link keeps pointing to the file that is replaced. An
    error in the block leaves everything as it was. Without `overwrite`, a file that exists when the
    block ends is kept, and FileExistsError is raised. Temporary files that killed processes left
    are removed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hirank._atomic import replace_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder, "a.txt")) as file:
    ...         _ = file.write(b"complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    target = os.path.realpath(path)
    remove_left(target)
    descriptor, temporary = _create_beside(target)
    lock = None if fcntl is None else os.dup(descriptor)  # kept until the file has its name
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, target)
        else:
            _rename_to_new(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def remove_left(target: str) -> None:
    """Remove temporary files of `target` that no process has open: those were killed."""
    if fcntl is None:
        return
    folder, name = os.path.split(target)
    pattern = re.compile(rf"\.{re.escape(name[:100])}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for left in [entry.path for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError), open(os.open(left, os.O_RDONLY | os.O_NOFOLLOW)) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(left)


def _create_beside(target: str) -> tuple[int, str]:
    """Create a temporary file with the permissions of `target`; return descriptor and name."""
    folder, name = os.path.split(target)
    permissions = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else None
    # The name is cut such that a long one does not exceed the limit of the file system.
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # At no time can more users read it than the file that it replaces.
    descriptor = os.open(temporary, flags, 0o666 if permissions is None else permissions & 0o600)
    try:
        if permissions is not None:
            os.chmod(temporary, permissions)
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink == 0:  # another process took it for a file left behind
                os.close(descriptor)
                return _create_beside(target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return descriptor, temporary


def _rename_to_new(temporary: str, target: str) -> None:
    """Rename a file; raise FileExistsError if there is one of that name, also in a race."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: an empty file reserves the name
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, target)
    else:
        os.unlink(temporary)
