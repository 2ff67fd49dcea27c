"""Threads for blocks of rows, with the threads of BLAS switched off.

BLAS threads slow small products down, and compete when two BLAS libraries (NumPy brings one, SciPy
another) or other programs are busy (docs/notes/threads.md). Blocks of rows are independent, so a
few threads that each take whole blocks use the cores better, element-wise work included. The
blocks, and the order in which their results are added, do not depend on the number of threads, so
neither do the results.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

T = TypeVar("T")
B = TypeVar("B")

BLOCK_BYTES = 1 << 21
"""Size of one n x r work array of a block: it fits into a cache, and Python's overhead is small."""
MIN_SHARED_COST = 2e7
"""Multiplications below which passing blocks to threads costs more than it saves."""


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def allowed_threads() -> int:
    """Return how many threads BLAS may use now, as set by the user or the machine."""
    return max((library.get_num_threads() or 1 for library in _blas_libraries()), default=1)


def _set_blas_threads(counts: Sequence[int | None]) -> None:
    """Set the number of threads of each library; None leaves it.

    Since version 3.8, threadpoolctl ignores all threads but the one that set a limit first, which
    need not be the one that restores it.
    """
    for library, count in zip(_blas_libraries(), counts, strict=True):
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        if count is not None:
            release(force=True)
            library.set_num_threads(count)
            release(force=True)


class _User:
    """A block that uses the limit of BLAS; it can be referred to weakly."""


class _BlasLimit:
    """The limit of BLAS to one thread: one for the whole process, whose threads may overlap.

    The first that enters stores what was allowed before, and the last that leaves restores it. A
    user that an interrupt kept from leaving is forgotten when it is destroyed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: WeakSet[_User] = WeakSet()
        self._before: list[int | None] | None = None  # None: there is no limit

    def enter(self, user: _User) -> int:
        """Return how many threads BLAS may use outside."""
        with self._lock:
            if self._before is None:
                self._before = [library.get_num_threads() for library in _blas_libraries()]
            _set_blas_threads([1] * len(self._before))
            self._users.add(user)
            return max((count or 1 for count in self._before), default=1)

    def leave(self, user: _User) -> None:
        with self._lock:
            self._users.discard(user)
            if not self._users and self._before is not None:
                _set_blas_threads(self._before)
                self._before = None


_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[int]:
    """Keep BLAS on one thread in a block; the value is how many it may use outside."""
    user = _User()
    try:
        yield _limit.enter(user)
    finally:
        _limit.leave(user)


_current = threading.local()  # `busy`: the thread works for a context of Workers already


class Workers:
    """A context in which BLAS runs on one thread and ``map`` shares blocks among several.

    Parameters
    ----------
    n_threads : int, optional
        None takes as many as BLAS may use on entry (``OMP_NUM_THREADS``, threadpoolctl), but one
        inside another such context.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads
        self._stack = ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._local = threading.local()

    def __enter__(self) -> Workers:
        busy = getattr(_current, "busy", False)
        allowed = self._stack.enter_context(one_blas_thread())
        n_threads = self.n_threads or (1 if busy else allowed)
        self._stack.callback(_set_busy, busy)
        _set_busy()
        if n_threads > 1:
            pool = ThreadPoolExecutor(n_threads, "hirank", initializer=_set_busy)
            self._pool = self._stack.enter_context(pool)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool = None
        self._stack.close()

    def alone(self) -> Workers:
        """Return workers without threads, for use inside a task of these."""
        return Workers(1)

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory that belongs to the calling thread until its next call."""
        size = math.prod(shape)
        buffer = getattr(self._local, "buffer", None)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._local.buffer = np.empty(size, dtype)
        return buffer[:size].reshape(shape)

    def map(self, work: Callable[[B], T], blocks: Sequence[B], cost: float) -> Iterator[T]:
        """Return ``work(block)`` of each block, in order; `cost` is in multiplications."""
        if self._pool is None or len(blocks) == 1 or cost < MIN_SHARED_COST:
            return map(work, blocks)
        return self._pool.map(work, blocks)


def _set_busy(busy: bool = True) -> None:
    _current.busy = busy


def row_blocks(n: int, row_bytes: int, cost: float) -> list[slice]:
    """Split n rows, each of `row_bytes` in a work array, into slices of nearly equal length.

    `cost` is the number of multiplications: work to be shared is split into at least two blocks.
    """
    count = max(1 if cost < MIN_SHARED_COST else 2, -(-n * row_bytes // BLOCK_BYTES))
    count += count % 2 if count > 1 else 0  # an even number keeps two threads equally busy
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
