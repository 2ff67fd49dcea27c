"""Progress of a fit: lines on standard error, subscribers to events, scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hirank.optim.trace import Callback, ProgressEvent, Step, Subscriber

__all__ = [
    "CallbackSupportMixin",
    "event_subscriber",
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


def event_subscriber(name: str, verbose: int) -> Subscriber | None:
    """Return what a fit passes its events to: standard error if verbose, and the subscriber."""
    subscriber = _SUBSCRIBER.get()
    if not verbose:
        return subscriber

    def report(event: ProgressEvent) -> None:
        sys.stderr.write(f"[{name}] {event} ({event.seconds:.1f} s)\n")
        if subscriber is not None:
            subscriber(event)

    return report


@contextmanager
def reporting(estimator: Any, X: Any, max_steps: int | None, verbose: int) -> Iterator[Callback]:
    """Provide a callback that prints steps and passes them to scikit-learn's callbacks."""
    root = None
    if hasattr(estimator, "_skl_callbacks"):
        root = estimator._init_callback_context(max_subtasks=max_steps)
        root.call_on_fit_task_begin(estimator=estimator, X=X)
    last_stage = -1

    def callback(step: Step) -> bool:
        nonlocal last_stage
        if verbose and (step.stage > last_stage or verbose > 1):
            last_stage = step.stage
            sys.stderr.write(
                f"[{type(estimator).__name__}] stage {step.stage + 1}, step {step.step}: "
                f"objective {step.objective:.6g}, {step.seconds:.1f} s\n"
            )
        if root is None:
            return False
        task = root.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=estimator, X=X)
        return bool(task.call_on_fit_task_end(estimator=estimator, X=X))

    yield callback
    if root is not None:
        root.call_on_fit_task_end(estimator=estimator, X=X)
