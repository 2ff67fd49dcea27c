"""Output of the program: notes and progress on standard error, the result on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from reproduction.runner import Progress


class Console:
    """Prints notes and results; with `as_json`, notes are part of the result."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        """Print a sentence that the user should know."""
        self.notes.append(sentence)
        if not (self.quiet or self.as_json):
            sys.stderr.write(f"note: {sentence}\n")

    def result(self, facts: dict[str, Any], text: str) -> None:
        """Print the result, as JSON or as text."""
        if self.as_json:
            print(json.dumps({**facts, "notes": self.notes}))
        elif not self.quiet:
            print(text)

    def progress(self, name: str, interval: float = 60.0) -> Callable[[Progress], None]:
        """Return a callback that prints how many runs of an experiment are done.

        On a terminal one line is rewritten, elsewhere a line is printed every `interval` seconds.
        """
        if self.quiet or self.as_json:
            return lambda progress: None
        terminal, last = sys.stderr.isatty(), time.monotonic()

        def show(progress: Progress) -> None:
            nonlocal last
            if terminal:
                end = "\n" if progress.done == progress.total else ""
                sys.stderr.write(f"\r\x1b[2K{_describe(name, progress)}{end}")
                sys.stderr.flush()
            elif time.monotonic() - last >= interval:
                last = time.monotonic()
                sys.stderr.write(f"{_describe(name, progress)}\n")

        return show


def _describe(name: str, progress: Progress) -> str:
    minutes = progress.seconds_left / 60
    left = f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"
    return f"{name}: {progress.done} of {progress.total} runs, {left}"
