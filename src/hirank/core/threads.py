"""Threads for blocks of rows: hirank's own, with the threads of BLAS switched off meanwhile.

BLAS threads slow small products down badly and fight each other when two BLAS libraries (NumPy
brings one, SciPy another) or other programs are busy. Blocks of rows are independent, so a few
threads that each take whole blocks use the cores better, element-wise work included. The
blocks, and the order in which their results are added, never depend on the number of threads:
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
"""Size of one n x r work array of a block: small enough for a cache, large enough that what Python
does around it does not count."""
WORTH_SHARING = 2e7
"""Multiplications below which handing blocks to threads costs more than it saves."""


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def allowed_threads() -> int:
    """Threads that BLAS may use now: what the user or the machine allows."""
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
        """One that shares nothing, to use inside a task of this one's."""
        return Workers(1)

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Memory to work in, of the calling thread alone, until that thread asks again."""
        size = math.prod(shape)
        buffer = getattr(self._local, "buffer", None)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._local.buffer = np.empty(size, dtype)
        return buffer[:size].reshape(shape)

    def map(self, work: Callable[[B], T], blocks: Sequence[B], cost: float) -> Iterator[T]:
        """``work(block)`` for each block, in order; `cost` is the multiplications in all."""
        if self._pool is None or len(blocks) == 1 or cost < WORTH_SHARING:
            return map(work, blocks)
        return self._pool.map(work, blocks)


def row_blocks(n: int, row_bytes: int, cost: float) -> list[slice]:
    """Slices of nearly equal length that cover n rows, each of `row_bytes` in a work array.

    `cost` is the multiplications in all: work that is worth sharing makes more than one block.
    """
    count = max(1 if cost < WORTH_SHARING else 2, -(-n * row_bytes // BLOCK_BYTES))
    count += count % 2 if count > 1 else 0  # an even number shares well
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
