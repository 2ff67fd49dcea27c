"""Runs cells side by side in processes, one thread each, and tells how far it is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from reproduction.cache import Cache
from reproduction.cells import Cell, Measurement, Outcome
from reproduction.config import Experiment
from reproduction.data import NoData, table
from reproduction.plan import plan_of

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


T = TypeVar("T")


class WorkerDied(RuntimeError):
    """A process ended without an outcome; what was done before is kept."""


@dataclass(frozen=True)
class Progress:
    """How far an experiment is."""

    cell: Cell  # that ended
    outcome: Outcome
    done: int
    total: int
    seconds_left: float  # a guess by what has been run


def run(
    experiment: Experiment,
    cache: Cache,
    *,
    jobs: int = 1,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> None:
    """Run what the cache does not have yet. Raises NoData before anything is run."""
    for name in experiment.data:
        table(name, 0)
    plan, known = plan_of(experiment), Costs()
    total = plan.left({})
    others = multiprocessing.active_children()
    with _one_thread(), Here() if jobs == 1 else Beside(jobs) as pool:
        running: dict[Future[Outcome], Cell] = {}
        asked: set[str] = set()
        try:
            while True:
                queue = [c for c in plan.waiting(cache.outcomes) if c.key not in asked]
                for cell in queue if jobs > 1 else queue[:1]:
                    running[pool.submit(execute, cell)] = cell
                    asked.add(cell.key)
                if not running:
                    return
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    cell, outcome = running.pop(future), future.result()
                    cache.add(outcome)
                    known.learn(cell, outcome.seconds)
                    rest = plan.left(cache.outcomes)
                    seconds = known.mean(plan.waiting(cache.outcomes)) * rest / jobs
                    tell(Progress(cell, outcome, total - rest, total, seconds))
        except BrokenProcessPool as error:
            raise WorkerDied(
                "A process died, most likely for lack of memory. What was done is kept: run the "
                "same command again, with --jobs 1."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()  # else leaving the pool would wait for what it runs
            raise


def execute(cell: Cell) -> Outcome:
    """Run one cell here; what goes wrong is told in the outcome."""
    task = import_module(f"reproduction.tasks.{cell.task}")
    began, cpu = time.perf_counter(), time.process_time()
    measurements: tuple[Measurement, ...] = ()
    failure = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measurements = tuple(task.run(cell))
    except (NoData, MemoryError):
        raise
    except Exception as error:  # a method that fails is a result
        failure = f"{type(error).__name__}: {error}"
    return Outcome(
        cell.key, measurements, time.perf_counter() - began, time.process_time() - cpu, failure
    )


class Costs:
    """What cells have taken, to guess what others will."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], list[float]] = {}

    def learn(self, cell: Cell, seconds: float) -> None:
        for key in self._keys(cell):
            self._found.setdefault(key, []).append(seconds)

    def mean(self, cells: Collection[Cell]) -> float:
        """Seconds that one of these cells will take, as far as can be told."""
        return sum(self._one(cell) for cell in cells) / max(len(cells), 1)

    def _one(self, cell: Cell) -> float:
        for key in self._keys(cell):
            if key in self._found:
                return sum(self._found[key]) / len(self._found[key])
        return 0.0

    @staticmethod
    def _keys(cell: Cell) -> list[tuple[str, ...]]:
        size = str(cell.options.get("n", ""))
        return [(cell.method.name, cell.data, size), (cell.method.name,), (cell.data,), ()]


class Here(Executor):
    """Does at once, in this process, what it is given."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        with threadpool_limits(1):
            future.set_result(fn(*args, **kwargs))
        return future


class Beside(ProcessPoolExecutor):
    """Does it in processes that end with this one, and leave Ctrl-C to it.

    A process that is interrupted while it holds a lock would block the others.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs, multiprocessing.get_context("spawn"), _end_with_parent)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        with _deaf():  # it starts processes
            return super().submit(fn, *args, **kwargs)


def _end_with_parent() -> None:
    """End this process when the one that started it does, also if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started now do not hear Ctrl-C; this one hears it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started now have one thread: they are compared by their times."""
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
