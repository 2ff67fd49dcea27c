"""The number of threads of BLAS, limited to one while hirank computes.

BLAS threads slow small products down, and compete when two BLAS libraries (NumPy brings one, SciPy
another) or other programs are busy (docs/notes/threads.md). Products of several threads may also
be rounded differently.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from weakref import WeakSet

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    # Looking for libraries takes milliseconds, so this is done once in a process.
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads of a library.

    Since version 3.8, threadpoolctl ignores all threads but the one that set a limit first, which
    need not be the one that restores it.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


class _User:
    """A block that uses the limit of BLAS; it can be referred to weakly."""


class BlasLimit:
    """The limit of BLAS to one thread: one for the whole process, whose threads may overlap.

    The first that enters stores what was allowed before, and the last that leaves restores it. A
    user that an interrupt kept from leaving is forgotten when it is destroyed. Libraries that have
    one thread anyway are left alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: WeakSet[_User] = WeakSet()
        self._before: list[tuple[Any, int]] | None = None  # None: there is no limit

    def enter(self, user: _User) -> None:
        with self._lock:
            if self._before is None:
                self._before = []
            for library in _libraries():
                count = library.get_num_threads() or 1
                if count > 1:
                    _set_threads(library, 1)
                    if not any(known is library for known, _ in self._before):
                        self._before.append((library, count))
            self._users.add(user)

    def leave(self, user: _User) -> None:
        with self._lock:
            self._users.discard(user)
            if not self._users and self._before is not None:
                for library, count in self._before:
                    _set_threads(library, count)
                self._before = None


_limit = BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread in a block."""
    user = _User()
    try:
        _limit.enter(user)
        yield
    finally:
        _limit.leave(user)
