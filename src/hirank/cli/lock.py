"""A lock on a model file: two processes that write it would overwrite each other's model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hirank.exceptions import OutputError
from hirank.io.errors import writing

try:
    import fcntl
except ImportError:  # Windows, where hirank stream does not run
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(model: Path | None) -> Iterator[None]:
    """Hold the lock of a model file, in FILE.lock; raise OutputError if another process has it.

    The system releases the lock when the process ends, however it ends. The file is removed; one
    that a killed process left is used again. Without a model, nothing is locked.
    """
    if model is None or fcntl is None:
        yield
        return
    path = model.with_name(model.name + ".lock")
    with writing(path):
        descriptor = _acquire(path, model)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path, model: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The process that had the lock may have removed the file after it was opened here.
            if path.exists() and os.path.samestat(os.stat(path), os.fstat(descriptor)):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
                return descriptor
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            os.close(descriptor)
            process = f"process {holder}" if holder.isdecimal() else "another process"
            raise OutputError(
                model,
                f"The model is in use by {process} (hirank stream, fit or complete). End it first, "
                "or use another file.",
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
