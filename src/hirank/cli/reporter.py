"""What a command tells: notes and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hirank.optim.trace import ProgressEvent

BLANK = "no observed entry to go by"
"""Part of the warning about rows without any value; its row numbers are none of a file."""
PROGRESS = {
    "column means": 0.02,
    "linear": 0.05,
    "locally linear": 0.15,
    "low rank": 0.2,
    "kernelized": 0.45,
    "REFIT": 0.75,
    "OUT_OF_SAMPLE": 0.9,
}
"""About how much of a fit is done when a trial of a family ends, or when a phase begins."""


class Told:
    """Notes go out at once unless quiet; with `as_json` they wait for the result."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.notes: list[str] = []
        self.blank = False  # whether a model had nothing to go by in some rows

    @property
    def live(self) -> bool:
        """Whether someone is watching."""
        return sys.stderr.isatty() and not (self.quiet or self.as_json)

    def note(self, sentence: str) -> None:
        """Something the user should know; each is said once."""
        if sentence in self.notes:
            return
        self.notes.append(sentence)
        if not (self.quiet or self.as_json):
            sys.stderr.write(f"note: {sentence}\n")

    def result(self, facts: dict[str, Any], text: str, *, to_error: bool = False) -> None:
        """The outcome: as JSON, or in words (on standard error if the table goes to output)."""
        out = sys.stderr if to_error else sys.stdout
        if self.as_json:
            out.write(json.dumps(plain({**facts, "notes": self.notes}), allow_nan=False) + "\n")
        elif not self.quiet:
            out.write(text.rstrip("\n") + "\n")
        out.flush()

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Warnings in this block become notes."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)

            def show(
                message: Warning | str, category: type[Warning], *rest: Any, **more: Any
            ) -> None:
                if BLANK in str(message):
                    self.blank = True  # said better by who knows the lines of the file
                elif issubclass(category, UserWarning):
                    self.note(_in_options(str(message)))

            warnings.showwarning = show
            yield

    @contextmanager
    def fitting(self, max_time: float | None) -> Iterator[None]:
        """A line that tells what a fit is at, its best error so far and the time left."""
        from hirank.estimators.callbacks import subscribed

        if not self.live:
            yield
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("looking at the table")
            best = float("inf")

            def hear(event: ProgressEvent) -> None:
                nonlocal best
                best = min(best, getattr(event, "error", best))
                bar.update(task, description=_status(event, best, max_time))

            with subscribed(hear):
                yield

    def rows(self, total: int | None) -> Any:
        """A bar for rows that are worked through; a context manager that gives `advance(rows)`."""
        if not self.live:
            return nullcontext(lambda rows: None)
        return _bar(total)


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("rows"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda rows: bar.advance(task, rows)


def _in_options(sentence: str) -> str:
    """A warning for Python users, for those of the command line."""
    sentence = sentence.replace("give order='time'", "give --time rows")
    return re.sub(r"^order=(['\"])(.*?)\1:", r"--time \2:", sentence)


def _status(event: ProgressEvent, best: float, max_time: float | None) -> str:
    from hirank.optim.trace import PhaseStarted

    if isinstance(event, PhaseStarted):
        key, label = event.phase.name, event.phase.value
    else:
        key, label = event.family, event.label
    part = PROGRESS.get(key, 0.1)
    left = event.seconds * (1 - part) / part
    if max_time is not None:
        left = min(left, max(max_time - event.seconds, 0))
    error = f", best error {best:.3f}" if best < float("inf") else ""
    return f"{label}{error}, about {left:.0f} s left"


def plain(value: Any) -> Any:
    """As JSON has it: no NumPy types, None for what is not a finite number."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
