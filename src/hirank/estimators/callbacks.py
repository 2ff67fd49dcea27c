"""Progress for whoever wants it: lines on standard error, and scikit-learn's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from hirank.optim.trace import ProgressEvent, Step

__all__ = [
    "CallbackSupportMixin",
    "SklearnBridge",
    "listening",
    "reporter",
    "teller",
    "with_callbacks",
]

if TYPE_CHECKING:
    from hirank.optim.trace import Callback

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


def reporter(name: str, verbose: int) -> Callback | None:
    """Write a line to standard error at the start of each stage, or at each step if verbose > 1."""
    if not verbose:
        return None
    last = -1

    def report(line: Step) -> None:
        nonlocal last
        if line.stage > last or verbose > 1:
            last = line.stage
            sys.stderr.write(
                f"[{name}] stage {line.stage + 1}, step {line.step}: "
                f"objective {line.objective:.6g}, {line.seconds:.1f} s\n"
            )

    return report


_LISTENER: ContextVar[Callable[[ProgressEvent], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[ProgressEvent], None]) -> Iterator[None]:
    """Let someone else hear what the fits in this block tell: for progress bars."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def teller(name: str, verbose: int) -> Callable[[ProgressEvent], None] | None:
    """Write sentences to standard error, if verbose; whoever is listening hears them too."""
    listener = _LISTENER.get()
    if not verbose:
        return listener

    def tell(event: ProgressEvent) -> None:
        sys.stderr.write(f"[{name}] {event} ({event.seconds:.1f} s)\n")
        if listener is not None:
            listener(event)

    return tell


class SklearnBridge:
    """Tells the callbacks set on an estimator of each step, as subtasks of its fit."""

    def __init__(self, estimator: Any, X: Any, most_steps: int) -> None:
        self.estimator, self.X = estimator, X
        self.root = (
            estimator._init_callback_context(max_subtasks=most_steps)
            if hasattr(estimator, "_skl_callbacks")
            else None
        )
        if self.root is not None:
            self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def __call__(self, line: Step) -> bool:
        """Report one step; true if a callback asks to stop."""
        if self.root is None:
            return False
        task = self.root.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X))

    def close(self) -> None:
        """Report the end of the fit."""
        if self.root is not None:
            self.root.call_on_fit_task_end(estimator=self.estimator, X=self.X)
