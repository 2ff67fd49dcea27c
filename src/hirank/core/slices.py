"""A long computation that is cut into slices, between which its caller goes on.

It runs in a thread of its own, but never at the same time as the caller, and is handed on after so
much counted work, not time: where a slice ends does not depend on the machine. What takes long
counts its work (`count_work`); outside of slices that does nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import numpy as np

from hirank.core.threads import Cancelled, Workers, current_n_jobs

T = TypeVar("T")


class _Local(threading.local):
    """The computation that a thread runs; None: it is not cut into slices."""

    turns: _Turns | None = None


_local = _Local()


def count_work(multiplications: float) -> None:
    """Count work of the calling thread; at the end of a slice, wait for the next one."""
    turns = _local.turns
    if turns is not None:
        turns.spend(multiplications)


class _Turns:
    """Whose turn it is: that of the caller or that of the computation, which it does not own."""

    def __init__(self, budget: float) -> None:
        self.budget = self.left = budget
        self.computing, self.calling = threading.Semaphore(0), threading.Semaphore(0)
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = self.cancelled = False

    def spend(self, work: float) -> None:
        if self.cancelled:
            raise Cancelled
        self.left -= work
        if self.left > 0:
            return
        self.calling.release()
        self.wait()
        self.left = self.budget

    def wait(self) -> None:
        """Wait for the turn of the computation."""
        self.computing.acquire()
        if self.cancelled:
            raise Cancelled

    def cancel(self) -> None:
        self.cancelled = True
        self.computing.release()

    def run(self, compute: Callable[[], Any], n_jobs: int | None, errors: dict[str, Any]) -> None:
        """Compute in a thread of its own, with the settings of NumPy of the caller."""
        _local.turns = self
        try:
            self.wait()
            # The caller's limit of BLAS holds in each slice. Contexts carry the handling of
            # floating-point errors from NumPy 2.2 on only.
            with Workers(n_jobs, limit_blas=False), np.errstate(**errors):
                self.result = compute()
        except Cancelled:
            return
        except BaseException as error:  # raised where the result is asked for
            self.error = error
        self.done = True
        self.calling.release()


class Slices(Generic[T]):
    """A computation in slices of so many counted multiplications.

    Parameters
    ----------
    compute : function
        Called without arguments, in another thread.
    budget : float
        Multiplications of a slice, at least: it ends with the step that reaches them.

    Examples
    --------
    >>> from hirank.core.slices import Slices, count_work
    >>> def compute():
    ...     for _ in range(5):
    ...         count_work(10)
    ...     return "done"
    >>> slices = Slices(compute, budget=20)
    >>> slices.advance(), slices.advance(), slices.advance()
    (False, False, True)
    >>> slices.result()
    'done'
    """

    def __init__(self, compute: Callable[[], T], budget: float) -> None:
        self.taken = 0  # slices; -1 after an interrupt
        self._lock = threading.Lock()  # several threads may ask for the result
        self._process = os.getpid()
        self._turns = _Turns(budget)
        context, arguments = copy_context(), (compute, current_n_jobs(), np.geterr())
        # Daemons do not keep a program from ending, and wait without using a processor.
        threading.Thread(
            target=context.run,
            args=(self._turns.run, *arguments),
            name="hirank slices",
            daemon=True,
        ).start()

    @property
    def done(self) -> bool:
        """Whether the last slice was computed."""
        return self._turns.done

    @property
    def usable(self) -> bool:
        """Whether the computation is in this process, and was not interrupted."""
        return self.taken >= 0 and self._process == os.getpid()

    def advance(self) -> bool:
        """Compute the next slice; return whether it was the last. An error is raised here."""
        turns = self._turns
        with self._lock:
            if not turns.done:
                turns.computing.release()
                try:
                    turns.calling.acquire()
                except BaseException:  # interrupted: it is not known where the computation stands
                    self.taken = -1
                    turns.cancel()
                    raise
                self.taken += 1
        if turns.error is not None:
            raise turns.error
        return turns.done

    def result(self) -> T:
        """Return what was computed; what remains of it is computed now."""
        while not self.advance():
            pass
        found: T = self._turns.result
        return found

    def __del__(self) -> None:
        turns = getattr(self, "_turns", None)
        if turns is not None and not turns.done:
            turns.cancel()
