"""Run the cells of an experiment in processes, one thread each."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from reproduction.cache import Cache
from reproduction.cells import Cell, CellResult, Measurement
from reproduction.config import Experiment
from reproduction.data import DataNotFoundError, load_table
from reproduction.fingerprint import fingerprint
from reproduction.schedule import make_schedule

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

T = TypeVar("T")


class WorkerCrashedError(RuntimeError):
    """A process ended without a result; earlier results are saved."""


@dataclass(frozen=True)
class Progress:
    """How many cells of an experiment are done."""

    cell: Cell  # the last one
    result: CellResult
    done: int
    total: int
    seconds_left: float  # estimated from the cells that are done


@dataclass(frozen=True)
class Budget:
    """The CPU time that a run may take. Cells that may exceed it are not started."""

    seconds: float = math.inf
    min_trials: int = 0  # trials that are run in any case

    def allows(self, cell: Cell, seconds: float) -> bool:
        """Return whether a cell may be started if the run then takes so many seconds in all."""
        return cell.seed < self.min_trials or seconds <= self.seconds


NO_LIMIT = Budget()


def run(
    experiment: Experiment,
    cache: Cache,
    *,
    jobs: int = 1,
    budget: Budget = NO_LIMIT,
    callback: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Run the cells that are not in the cache or are outdated there; return how many are left.

    They are run trial by trial, until the budget is spent. Raise DataNotFoundError before any is
    run, if a table is not available.
    """
    for name in experiment.data:
        load_table(name, 0)
    schedule = make_schedule(experiment)
    costs, spent = Costs(schedule.cells, cache.results), 0.0
    total = len(schedule.pending({})) + schedule.n_later({})
    others = multiprocessing.active_children()
    with _single_threaded(), InProcessExecutor() if jobs == 1 else SpawnExecutor(jobs) as pool:
        running: dict[Future[CellResult], Cell] = {}
        stopped = False
        try:
            while True:
                done, busy = cache.valid, {cell.key for cell in running.values()}
                pending = schedule.pending(done)
                left = len(pending) + schedule.n_later(done)
                queue = [cell for cell in pending if cell.key not in busy]
                for cell in queue[: jobs - len(running)]:
                    expected = spent + sum(map(costs.estimate, [*running.values(), cell]))
                    stopped = stopped or not budget.allows(cell, expected)
                    if stopped:
                        break
                    running[pool.submit(execute, cell)] = cell
                if not running:
                    return left
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    cell, result = running.pop(future), future.result()
                    cache.add(result)
                    costs.add(cell, result.cpu_seconds)
                    spent += result.cpu_seconds
                    left -= 1
                    seconds = costs.mean(pending) * left / jobs
                    callback(Progress(cell, result, total - left, total, seconds))
        except BrokenProcessPool as error:
            raise WorkerCrashedError(
                "A process died, most likely because memory ran out. Finished runs are saved; run "
                "the same command again with --jobs 1."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()  # else leaving the pool would wait for its cells
            raise


def execute(cell: Cell) -> CellResult:
    """Run one cell in this process; an error becomes the failure of its result."""
    task = import_module(f"reproduction.tasks.{cell.task}")
    began, cpu = time.perf_counter(), time.process_time()
    measurements: tuple[Measurement, ...] = ()
    failure = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measurements = tuple(task.run(cell))
    except (DataNotFoundError, MemoryError):
        raise
    except Exception as error:  # that a method fails is a result
        failure = f"{type(error).__name__}: {error}"
    return CellResult(
        cell.key,
        measurements,
        time.perf_counter() - began,
        time.process_time() - cpu,
        failure,
        fingerprint(cell),
    )


class Costs:
    """CPU times of finished cells, to estimate those of others."""

    def __init__(
        self, cells: Iterable[Cell] = (), results: Mapping[str, CellResult] | None = None
    ) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = {}
        for cell in cells:
            if results and cell.key in results:
                self.add(cell, results[cell.key].cpu_seconds)

    def add(self, cell: Cell, seconds: float) -> None:
        """Record the time of a cell."""
        for key in self._keys(cell):
            self._seconds.setdefault(key, []).append(seconds)

    def mean(self, cells: Sequence[Cell]) -> float:
        """Estimate the mean time of cells, from a few hundred of them."""
        some = cells[:: 1 + len(cells) // 300]
        return sum(map(self.estimate, some)) / max(len(some), 1)

    def estimate(self, cell: Cell) -> float:
        """Estimate the time of a cell from the most similar ones; 0 if there are none."""
        for key in self._keys(cell):
            if key in self._seconds:
                return sum(self._seconds[key]) / len(self._seconds[key])
        return 0.0

    @staticmethod
    def _keys(cell: Cell) -> list[tuple[str, ...]]:
        options = json.dumps([cell.options, cell.pattern, cell.rate], sort_keys=True)
        settings = json.dumps(cell.method.settings, sort_keys=True)
        method, data = cell.method.name, cell.data
        keys = [(method, data, options, settings), (method, data, options), (method, data)]
        return [*keys, (method,), (data,), ()]


class InProcessExecutor(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        with threadpool_limits(1):
            future.set_result(fn(*args, **kwargs))
        return future


class SpawnExecutor(ProcessPoolExecutor):
    """Runs it in processes that end with this one and ignore Ctrl-C.

    A process that is interrupted while it holds a lock would block the others.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs, multiprocessing.get_context("spawn"), _end_with_parent)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        with _sigint_blocked():  # it starts processes
            return super().submit(fn, *args, **kwargs)


def _end_with_parent() -> None:
    """End this process when its parent ends, also if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C; this process handles it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Start processes with one thread each, so that their times can be compared."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
