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
from contextlib import ExitStack
from functools import lru_cache
from itertools import pairwise
from types import TracebackType
from typing import Any, TypeVar

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
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def allowed_threads() -> int:
    """Return how many threads BLAS may use now, as set by the user or the machine."""
    counts = [lib["num_threads"] for lib in _controller().info() if lib["user_api"] == "blas"]
    return max(counts, default=1)


class Workers:
    """A context in which BLAS runs on one thread and ``map`` shares blocks among several.

    Parameters
    ----------
    n_threads : int, optional
        None takes as many as BLAS may use on entry (``OMP_NUM_THREADS``, threadpoolctl).
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = n_threads
        self._stack = ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._local = threading.local()

    def __enter__(self) -> Workers:
        n_threads = allowed_threads() if self.n_threads is None else self.n_threads
        self._stack.enter_context(_controller().limit(limits=1, user_api="blas"))
        if n_threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(n_threads, "hirank"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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


def row_blocks(n: int, row_bytes: int, cost: float) -> list[slice]:
    """Split n rows, each of `row_bytes` in a work array, into slices of nearly equal length.

    `cost` is the number of multiplications: work to be shared is split into at least two blocks.
    """
    count = max(1 if cost < MIN_SHARED_COST else 2, -(-n * row_bytes // BLOCK_BYTES))
    count += count % 2 if count > 1 else 0  # an even number keeps two threads equally busy
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
