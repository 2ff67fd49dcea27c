"""Whom a fit reports to: the user, subscribers to its events, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from hirank.estimators.progress import ProgressBar, open_line
from hirank.optim.trace import Callback, ProgressEvent, Step, Subscriber

__all__ = [
    "CallbackSupportMixin",
    "reporting",
    "subscribed",
    "with_callbacks",
]

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Takes the place of scikit-learn's class where there is none."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


_SUBSCRIBER: ContextVar[Subscriber | None] = ContextVar("subscriber", default=None)


@contextmanager
def subscribed(subscriber: Subscriber) -> Iterator[None]:
    """Pass the progress events of all fits in this block to a function, for progress bars."""
    token = _SUBSCRIBER.set(subscriber)
    try:
        yield
    finally:
        _SUBSCRIBER.reset(token)


class Reporting(NamedTuple):
    """What a fit passes its steps and its events to."""

    callback: Callback
    subscriber: Subscriber | None


@contextmanager
def reporting(
    estimator: Any, X: Any, max_steps: int | None, *, verbose: int, step_verbose: int
) -> Iterator[Reporting]:
    """Report the progress of a fit to the user, to subscribers and to scikit-learn's callbacks.

    With ``verbose=1`` a terminal or a notebook shows a bar. Otherwise, if verbose, events are
    printed to standard error; `step_verbose` prints steps, 1 the first of each stage, 2 all.
    """
    outer, name = _SUBSCRIBER.get(), type(estimator).__name__
    line = open_line() if verbose == 1 else None
    bar = None
    if line is not None:
        bar = ProgressBar(name, line, getattr(estimator, "max_time", None))

    def report(event: ProgressEvent) -> None:
        if bar is not None:
            bar.event(event)
        elif verbose:
            sys.stderr.write(f"[{name}] {event} ({event.seconds:.1f} s)\n")
        if outer is not None:
            outer(event)

    root = None
    if hasattr(estimator, "_skl_callbacks"):
        root = estimator._init_callback_context(max_subtasks=max_steps)
        root.call_on_fit_task_begin(estimator=estimator, X=X)
    last_stage = -1

    def callback(step: Step) -> bool:
        nonlocal last_stage
        if bar is not None:
            bar.step(step)
        elif step_verbose and (step.stage > last_stage or step_verbose > 1):
            last_stage = step.stage
            sys.stderr.write(
                f"[{name}] stage {step.stage + 1}, step {step.step}: "
                f"objective {step.objective:.6g}, {step.seconds:.1f} s\n"
            )
        if root is None:
            return False
        task = root.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=estimator, X=X)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X))

    try:
        yield Reporting(callback, report if verbose else outer)
    finally:
        if bar is not None:
            bar.close()
    if root is not None:
        root.call_on_fit_task_end(estimator=estimator, X=X)
