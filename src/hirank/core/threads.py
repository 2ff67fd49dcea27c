"""Threads that share independent parts of a computation: folds, models, blocks of rows.

The parts, and the order in which their results are used, do not depend on the number of threads,
so neither do the results. Small computations stay on one thread: waking another takes longer
(docs/notes/threads.md).
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from itertools import pairwise
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from hirank.core.blas import one_blas_thread

T = TypeVar("T")
B = TypeVar("B")

BLOCK_BYTES = 1 << 21
"""Size of one n x r work array of a block: it fits into a cache, and Python's overhead is small."""
MIN_SHARED_COST = 1e7
"""Multiplications below which passing blocks to threads costs more than it saves."""


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs`, as in scikit-learn, stands for.

    None is one, unless a context of joblib sets another number. Negative numbers count back from
    all processors, of which the environment variable OMP_NUM_THREADS allows fewer where a process
    shares them with others, as among the workers of joblib or Dask.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    from joblib import cpu_count, effective_n_jobs

    # A context of joblib may stand for a cluster, of which this is one machine.
    count = min(int(effective_n_jobs(n_jobs)), int(cpu_count()))
    allowed = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return max(1, min(count, int(allowed)) if allowed.isdecimal() else count)


class _Local(threading.local):
    """What a thread is doing."""

    # In whose context it is. An interrupt may keep a context from being left: referred to weakly,
    # it is forgotten with the call that it belonged to.
    workers: ReferenceType[Workers] | None = None
    path: tuple[int, ...] = ()  # of the part it computes: see `position`
    count: int = 0

    def current(self) -> Workers | None:
        """Return the workers in whose context the thread is; None outside of any."""
        return None if self.workers is None else self.workers()


_local = _Local()


def position() -> tuple[int, ...]:
    """Return where the calling thread is in the computation, as it would be on one thread.

    Positions sort in the order in which one thread would come by.
    """
    return (*_local.path, _local.count)


def current_n_jobs() -> int | None:
    """Return the `n_jobs` of the workers in whose context the thread is; None outside of any."""
    workers = _local.current()
    return None if workers is None else workers.n_jobs


class Cancelled(BaseException):
    """Ends a part of a computation that nobody waits for any more."""


class _Job(Generic[B, T]):
    """Parts of a computation, which several threads take one by one."""

    def __init__(self, work: Callable[[B], T], blocks: Sequence[B]) -> None:
        self._work, self._blocks, self._path = work, blocks, position()
        self._context = copy_context()  # such as numpy.errstate
        self._results: list[T | None] = [None] * len(blocks)
        self._error: tuple[int, BaseException] | None = None  # of the first part that failed
        self._taken = self._running = 0
        self._condition = threading.Condition()

    @property
    def exhausted(self) -> bool:
        """Whether all parts have been taken."""
        return self._taken >= len(self._blocks)

    def close(self) -> None:
        """Let no thread take another part."""
        self._taken = len(self._blocks)

    def help(self) -> None:
        """Compute parts in a thread other than the one that waits for the results."""
        self._context.copy().run(self.run)

    def run(self) -> None:
        """Compute parts until all have been taken."""
        before = _local.path, _local.count
        try:
            while (number := self._take()) is not None:
                _local.path, _local.count = (*self._path, number), 0
                self._compute(number)
        finally:
            _local.path, _local.count = before

    def results(self) -> list[T]:
        """Wait for the parts that other threads have taken, and return all results."""
        with self._condition:
            self._condition.wait_for(lambda: not self._running)
        if self._error is not None:
            raise self._error[1]
        return self._results  # type: ignore[return-value]

    def _take(self) -> int | None:
        with self._condition:
            if self.exhausted:
                return None
            self._taken += 1
            self._running += 1
            return self._taken - 1

    def _compute(self, number: int) -> None:
        error: BaseException | None = None
        try:
            self._results[number] = self._work(self._blocks[number])
        except Exception as caught:
            error = caught
        finally:
            with self._condition:
                self._running -= 1
                # Parts are taken in order, so those before the first failure have all been taken.
                if error is not None and (self._error is None or number < self._error[0]):
                    self._error = number, error
                    self.close()
                self._condition.notify_all()


class _Pool:
    """Threads that help with open jobs.

    The thread that opens a job works on it itself and waits only for parts that others have begun.
    So jobs may open jobs, and a processor that is busy with something else delays nothing else.
    """

    def __init__(self, n_helpers: int, workers: Workers) -> None:
        self._jobs: list[_Job[Any, Any]] = []
        self._condition = threading.Condition()
        self.closed = False
        for _ in range(n_helpers):
            # Daemons, so that a part that goes on after an interrupt does not delay the exit.
            thread = threading.Thread(
                target=self._help, args=(workers,), name="hirank", daemon=True
            )
            thread.start()

    def run(self, job: _Job[B, T]) -> list[T]:
        """Compute all parts of a job."""
        if self.closed:
            raise Cancelled
        with self._condition:
            self._jobs.append(job)
            self._condition.notify_all()
        try:
            job.run()
        finally:
            job.close()  # after an interrupt, parts are left
            with self._condition:
                self._jobs.remove(job)
        return job.results()

    def close(self) -> None:
        with self._condition:
            self.closed = True
            self._condition.notify_all()

    def _help(self, workers: Workers) -> None:
        _local.workers = ref(workers)
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self.closed or self._find() is not None)
                job = self._find()
            if self.closed or job is None:
                return
            try:
                job.help()
            except Cancelled:
                return

    def _find(self) -> _Job[Any, Any] | None:
        """Return the job that was opened first, of those that have parts left."""
        return next((job for job in self._jobs if not job.exhausted), None)


class Workers:
    """A context in which BLAS runs on one thread and ``map`` shares blocks among several.

    Inside another such context, entering one returns the other, and with it all its threads: a
    function need not know whether it is part of a larger computation.

    Parameters
    ----------
    n_jobs : int, optional
        The number of threads, as in scikit-learn: see `count_threads`. None is one.
    limit_blas : bool
        False where the caller of this thread has limited BLAS already.
    """

    def __init__(self, n_jobs: int | None = None, *, limit_blas: bool = True) -> None:
        self.n_jobs, self._limit_blas = n_jobs, limit_blas
        self._limit: AbstractContextManager[None] | None = None  # None: not entered, or an outer is
        self._n_threads = 1  # outside of the context
        self._pool: _Pool | None = None
        self._local = threading.local()

    def __enter__(self) -> Workers:
        if (outer := _local.current()) is not None:
            return outer
        self._limit = one_blas_thread() if self._limit_blas else nullcontext()
        self._limit.__enter__()
        self._n_threads = 0  # not counted yet: that takes longer than imputing a row
        _local.workers = ref(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._limit is None:
            return
        try:
            self._leave()
        finally:
            self._limit.__exit__(None, None, None)
            self._limit = None

    def _leave(self) -> None:
        _local.workers, self._n_threads = None, 1
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def scratch(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return memory that belongs to the calling thread until its next call."""
        size = math.prod(shape)
        buffer = getattr(self._local, "buffer", None)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._local.buffer = np.empty(size, dtype)
        return buffer[:size].reshape(shape)

    def count(self, cost: float) -> int:
        """Return how many threads compiled code may share work of so many multiplications among.

        One inside a part of a job, since the threads have other parts to compute.
        """
        if cost < MIN_SHARED_COST or _local.path:
            return 1
        self._start()
        return max(1, self._n_threads)

    def map(self, work: Callable[[B], T], blocks: Sequence[B], cost: float) -> Iterator[T]:
        """Return ``work(block)`` of each block, in order.

        `cost` is in multiplications: those of all blocks together, or of one step of each if blocks
        take many steps. A block may map blocks of its own.
        """
        if len(blocks) < 2 or cost < MIN_SHARED_COST or not self._start():
            return map(work, blocks)
        assert self._pool is not None
        _local.count += 1
        try:
            return iter(self._pool.run(_Job(work, blocks)))
        finally:
            _local.count += 1

    def _start(self) -> bool:
        """Start the threads at first use; return whether there are several."""
        if not self._n_threads:
            self._n_threads = count_threads(self.n_jobs)
            if self._n_threads > 1:
                self._pool = _Pool(self._n_threads - 1, self)
        return self._n_threads > 1


def row_blocks(n: int, row_bytes: int, cost: float) -> list[slice]:
    """Split n rows, each of `row_bytes` in a work array, into slices of nearly equal length.

    `cost` is the number of multiplications: work to be shared is split into at least two blocks.
    """
    count = max(1 if cost < MIN_SHARED_COST else 2, -(-n * row_bytes // BLOCK_BYTES))
    count += count % 2 if count > 1 else 0  # an even number keeps two threads equally busy
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]
