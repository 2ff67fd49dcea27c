"""Progress of a fit: how much is done, the time left, and one line or bar that shows it."""

from __future__ import annotations

import math
import shutil
import sys
import threading
from time import monotonic
from typing import Any, Protocol

from hirank.optim.trace import PhaseStarted, ProgressEvent, Step

# Share of a fit that is done, as a rule, when a trial of a family or a phase is reported: those
# with which most announced times are within a factor of two (docs/notes/progress.md). Families
# before low-rank kernels tell nothing: after them a fit may end, or have only begun.
SHARES: dict[str, float] = {
    "low-rank kernel (linear)": 0.25,
    "low-rank kernel (poly)": 0.27,
    "low-rank kernel (rbf)": 0.37,
    "dictionary": 0.35,
    "REFIT": 0.62,
    "OUT_OF_SAMPLE": 0.9,
}
BAR_WIDTH = 20
SECONDS_BETWEEN = 0.2
"""Between two updates of a line."""


class TimeLeft:
    """The time that a fit still needs, which only falls.

    An event lowers the estimate if what usually remains after it is less. In between, the estimate
    falls with the clock, ever more slowly, since nobody knows when the next event comes.
    """

    def __init__(self, max_time: float | None = None) -> None:
        self._end = math.inf if max_time is None else max_time
        self._left, self._since = math.inf, 0.0  # as estimated at the last event that lowered it

    def update(self, event: ProgressEvent) -> None:
        """Take an event into account."""
        key = event.phase.name if isinstance(event, PhaseStarted) else event.family
        share = SHARES.get(key)
        if share is None:
            return
        left = event.seconds * (1 - share) / share
        if left < self.at(event.seconds):
            self._left, self._since = left, event.seconds

    def at(self, seconds: float) -> float:
        """Return the seconds left after so many; infinite if nothing is known yet."""
        left = self._left
        if 0 < left < math.inf:
            left /= 1 + max(seconds - self._since, 0) / left
        return max(min(left, self._end - seconds), 0)

    def share(self, seconds: float) -> float:
        """Return the share that is done after so many seconds, which only grows."""
        left = self.at(seconds)
        return seconds / (seconds + left) if left < math.inf and seconds > 0 else 0.0


def describe_left(left: float) -> str:
    """Return an estimate in words, in steps that suit its accuracy."""
    if left == math.inf:
        return "estimating the time"
    if left < 1:
        return "about a second left"
    if left < 90:
        return f"about {_rounded(left)} s left"
    return f"about {_rounded(left / 60)} min left"


def _rounded(x: float) -> int:
    return int(x) if x < 10 else int(x // 5 * 5)


class Activity:
    """What a fit is doing: its last event, and its lowest error so far."""

    def __init__(self, text: str = "") -> None:
        self.text, self.lowest = text, math.inf

    def update(self, event: ProgressEvent) -> None:
        """Take an event into account."""
        self.lowest = min(self.lowest, getattr(event, "error", math.inf))
        self.text = event.phase.value if isinstance(event, PhaseStarted) else event.label

    def __str__(self) -> str:
        return (
            f"{self.text}, lowest error {self.lowest:.3f}" * (self.lowest < math.inf) or self.text
        )


class _Line(Protocol):
    """A line of output that is replaced."""

    def show(self, text: str) -> None: ...
    def clear(self) -> None: ...


class _TerminalLine:
    """The last line of standard error, if that is a terminal."""

    def show(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[K{text[:width]}")
        sys.stderr.flush()

    def clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _NotebookLine:
    """An output of a notebook cell."""

    def __init__(self, display: Any) -> None:
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text: str) -> None:
        self._handle.update({"text/plain": text}, raw=True)

    def clear(self) -> None:
        self.show("")


def open_line() -> _Line | None:
    """Return a line in the notebook or terminal at hand; None if the output is a file or pipe."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        return _NotebookLine(display)
    return _TerminalLine() if _is_terminal() else None


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class ProgressBar:
    """Shows the progress of a fit in a line; threads may share it."""

    def __init__(self, name: str, line: _Line, max_time: float | None) -> None:
        self._name, self._line = name, line
        self._activity, self._left = Activity(), TimeLeft(max_time)
        self._began = self._shown = monotonic()
        self._lock = threading.Lock()

    def event(self, event: ProgressEvent) -> None:
        """Take an event into account, and show it."""
        with self._lock:
            self._activity.update(event)
            self._left.update(event)
            self._show()

    def step(self, step: Step) -> None:
        """Show that a step was taken, unless the line has just changed."""
        with self._lock:
            if monotonic() - self._shown > SECONDS_BETWEEN:
                self._show(f"stage {step.stage + 1}, step {step.step}")

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            self._line.clear()

    def _show(self, doing: str = "") -> None:
        self._shown = monotonic()
        seconds = self._shown - self._began
        left, share = self._left.at(seconds), self._left.share(seconds)
        parts = [f"{self._name}:"]
        if left < math.inf:
            done = round(BAR_WIDTH * share)
            parts += [
                f"[{'#' * done}{'-' * (BAR_WIDTH - done)}] {round(100 * share)} %,",
                describe_left(left),
            ]
        else:
            parts.append(f"{seconds:.0f} s")
        parts.append(f"({self._activity})" if self._activity.text else f"({doing})" * bool(doing))
        self._line.show(" ".join(parts))
