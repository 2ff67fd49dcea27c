"""One way to write a file: to a temporary file beside it, renamed when it is complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hirank._typing import PathLike


@contextmanager
def replace_file(path: PathLike, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    The file at `path` is complete at any time: the old one, or the new one. Permissions of a file
    that is replaced are kept, and a symbolic link keeps pointing to the file that is replaced. An
    error in the block leaves everything as it was. Without `overwrite`, a file that exists when the
    block ends is kept, and FileExistsError is raised.

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
    folder, name = os.path.split(target)
    # The name is cut such that a long one does not exceed the limit of the file system.
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
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
