"""Everything that a command prints: notes, progress, warnings, results and errors."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self

from hirank._text import abbreviated, plural
from hirank.cli import print_json_error
from hirank.cli.errors import ExitCode, explain_error
from hirank.exceptions import EmptyRowsWarning, NoModelWarning, SkippedRowsWarning, WarmupWarning

if TYPE_CHECKING:
    from hirank.estimators.progress import TimeLeft
    from hirank.io import Table
    from hirank.optim.trace import ProgressEvent

STATUS_SECONDS = 0.5
"""Seconds between two updates of a status line."""


class Result(Protocol):
    """The result of a command, printed as text or as JSON."""

    def to_dict(self) -> dict[str, Any]: ...
    def __str__(self) -> str: ...


class Reporter:
    """Prints what a command reports; a context manager that ends the program after an error.

    Results go to standard output, everything else to standard error.

    Parameters
    ----------
    as_json : bool
        Notes are part of the result, or with `events` printed as JSON objects, one per line.
    quiet : bool
        Print neither notes nor results.
    events : bool
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, events: bool = False) -> None:
        self.as_json, self.quiet, self.events = as_json, quiet, events
        self.notes: list[str] = []
        self.table: Table | None = None  # whose rows warnings are about
        self._empty_lines: set[int] = set()
        self._status_time = time.monotonic()
        self._has_status = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BrokenPipeError):
            # The reader of the output has ended. Python would fail again when it flushes.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise SystemExit(0)
        explained = None if error is None else explain_error(error)
        if explained is not None:
            message, code = explained
            self._print_error(message, code)
            raise SystemExit(int(code))
        if isinstance(error, Exception) and self.as_json:
            text = "".join(traceback.format_exception(error))
            self._print_error(f"{type(error).__name__}: {error}", ExitCode.DEFECT, traceback=text)
            raise SystemExit(int(ExitCode.DEFECT))

    def _print_error(self, message: str, code: ExitCode, **facts: str) -> None:
        if not self.as_json:
            self._print(f"hirank: {message}")
        elif self.events:
            self.event("error", "", message=message, exit_code=int(code), **facts)
        else:
            print_json_error(message, int(code), notes=self.notes, **facts)

    @property
    def is_live(self) -> bool:
        """Whether progress is shown."""
        return sys.stderr.isatty() and not (self.quiet or self.as_json)

    def note(self, sentence: str) -> None:
        """Print a sentence, unless it was printed before."""
        if sentence not in self.notes:
            self.notes.append(sentence)
            if not self.quiet:
                self.event("note", f"note: {sentence}", message=sentence)

    def event(self, kind: str, text: str, **facts: Any) -> None:
        """Print what happened: `text`, or a JSON object of `kind` and `facts`."""
        if self.as_json and self.events:
            self._print(json.dumps({"event": kind, **facts}))
        elif text and not self.as_json:
            self._print(text)

    def result(self, result: Result, *, to_error: bool = False) -> None:
        """Print the result; to standard error if a table was written to standard output."""
        out = sys.stderr if to_error else sys.stdout
        from hirank.io.errors import writing  # imports NumPy, which --help must not wait for

        if out is None:  # closed, with the result as unwanted as with --quiet
            return
        with writing("standard error" if to_error else "standard output"):
            if self.as_json:
                facts = to_plain({**result.to_dict(), "notes": self.notes})
                out.write(json.dumps(facts, allow_nan=False) + "\n")
            elif not self.quiet:
                out.write(f"{result}".rstrip("\n") + "\n")
            out.flush()

    def status(self, text: Callable[[], str]) -> None:
        """Replace the status line of a terminal, twice a second at most."""
        now = time.monotonic()
        if self.is_live and now - self._status_time > STATUS_SECONDS:
            self._status_time, self._has_status = now, True
            sys.stderr.write(f"\r\x1b[K{text()}")
            sys.stderr.flush()

    def _print(self, text: str) -> None:
        clear = "\r\x1b[K" if self._has_status else ""
        self._has_status = False
        sys.stderr.write(f"{clear}{text}\n")
        sys.stderr.flush()

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Print warnings in this block as notes.

        Rows without values are collected, by the lines of `table`, and reported at the end.
        """
        seen: set[type[Warning]] = set()

        def show(message: Warning | str, kind: type[Warning], *rest: Any) -> None:
            if isinstance(message, EmptyRowsWarning) and self.table is not None:
                self._empty_lines.update(map(self.table.line, message.rows))
            elif issubclass(kind, UserWarning | RuntimeWarning):
                # The rows of a stream are many; it counts those of the first three classes itself.
                counted = (EmptyRowsWarning, SkippedRowsWarning, WarmupWarning)
                if not self.events or not (issubclass(kind, counted) or kind in seen):
                    self.note(_describe_warning(message))
                seen.add(kind)

        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            yield
        if self._empty_lines:
            rows = plural(len(self._empty_lines), "row has", "rows have")
            lines = abbreviated(sorted(self._empty_lines))
            word = "line" if len(self._empty_lines) == 1 else "lines"
            verb = "was" if len(self._empty_lines) == 1 else "were"
            self.note(f"{rows} no values and {verb} imputed with column means ({word} {lines}).")

    @contextmanager
    def fitting(self, max_time: float | None) -> Iterator[None]:
        """Show what a fit is doing, its lowest error so far and the time left."""
        from hirank.estimators.callbacks import subscribed
        from hirank.estimators.progress import Activity, TimeLeft
        from hirank.optim.trace import RefitFailed

        activity, left = Activity("reading the table"), TimeLeft(max_time)
        with self._fit_bar(activity.text, left) as update:

            def report(event: ProgressEvent) -> None:
                if isinstance(event, RefitFailed):
                    self.note(f"{event}.")
                activity.update(event)
                left.update(event)
                update(description=str(activity))

            with subscribed(report):
                yield

    @contextmanager
    def rows(self, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a bar for rows; provide a function that advances it."""
        with self._bar("rows", total) as update:
            yield lambda rows: update(advance=rows)

    def _bar(self, text: str, total: int | None) -> AbstractContextManager[Callable[..., None]]:
        return _show_rows(text, total) if self.is_live else nullcontext(lambda **changes: None)

    def _fit_bar(self, text: str, left: TimeLeft) -> AbstractContextManager[Callable[..., None]]:
        return _show_fit(text, left) if self.is_live else nullcontext(lambda **changes: None)


def _describe_warning(warning: Warning | str) -> str:
    if isinstance(warning, NoModelWarning):  # its own text proposes a parameter of Python
        reasons = "; ".join(f"{family}: {reason}" for family, reason in warning.reasons)
        return f"No model could be fitted, so column means were imputed ({reasons})."
    return str(warning)


@contextmanager
def _show_rows(description: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show a bar of rows; provide the function that updates it."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield partial(progress.update, task)


@contextmanager
def _show_fit(description: str, left: TimeLeft) -> Iterator[Callable[..., None]]:
    """Show a bar of a fit, which moves with the clock; provide the function that updates it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    from hirank.estimators.progress import describe_left

    class Share(BarColumn):
        def render(self, task: Task) -> ProgressBar:
            return ProgressBar(1.0, left.share(task.elapsed or 0.0), width=self.bar_width)

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(describe_left(left.at(task.elapsed or 0.0)))

    text = TextColumn("{task.description}")
    with Progress(text, Share(), Left(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=None)
        yield partial(progress.update, task)


def to_plain(value: Any) -> Any:
    """Return a value as JSON has it: without NumPy types, None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
