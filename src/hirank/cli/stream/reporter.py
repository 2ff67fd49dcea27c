"""What ``hirank stream`` tells on standard error: sentences, or a JSON object a line."""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hirank.cli.stream.loop import Session

QUIET = ("X does not have valid feature names", r"\d+ (row|sample)\(s\) ")
"""Warnings that are counted, or of no concern: names are matched before."""
PROGRESS = 0.5
"""Seconds between two updates of the line that a terminal shows."""


class Teller:
    """Tells what happens.

    Parameters
    ----------
    as_json : bool
    quiet : bool
        Nothing but lines that can't be read, and what fails.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet, self.skipped = as_json, quiet, 0
        self._began = self._shown = time.monotonic()
        self._line = False
        self._said: set[str] = set()

    def say(self, sentence: str) -> None:
        """Something good to know."""
        if not self.quiet:
            self._tell("note", f"note: {sentence}", message=sentence)

    def note(self, sentence: str) -> None:
        """Something that went wrong."""
        self._tell("warning", f"hirank: {sentence}", message=sentence)

    def bad(self, number: int, reason: str, *, kept: bool) -> None:
        """A line is no row."""
        self.skipped += 1
        what = "passed on unchanged" if kept else "skipped"
        self._tell("bad line", f"hirank: line {number} {what}: {reason}", line=number, why=reason)

    def saved(self, session: Session) -> None:
        """The state is kept."""
        if self.as_json:
            self._tell("saved", "", **self._facts(session))

    def progress(self, session: Session) -> None:
        """For a person who watches."""
        now = time.monotonic()
        if self.as_json or self.quiet or now - self._shown < PROGRESS or not sys.stderr.isatty():
            return
        self._shown, self._line = now, True
        error = session.completer.recent_error
        told = "" if error is None else f", recent error {error:.3g}"
        sys.stderr.write(f"\r\x1b[K{session.taken} rows, {self.skipped} lines not read{told}")
        sys.stderr.flush()

    def end(self, session: Session) -> None:
        """What came of it."""
        if session.means and not self.as_json:
            self.say(
                f"{session.means} row(s) came before there was a model and got column means. Start "
                "with a model (hirank fit), or hold rows back with --hold."
            )
        if session.blank and not self.as_json:
            self.say(f"{session.blank} row(s) had no observed value and got column means.")
        facts = self._facts(session)
        error = facts["recent_error"]
        text = f"{session.taken} rows completed"
        text += f", {self.skipped} lines could not be read" if self.skipped else ""
        text += "" if error is None else f"; recent error {error:.3g} standard deviations"
        if not self.quiet or self.as_json:
            self._tell("end", f"{text}.", **facts, means=session.means, blank=session.blank)

    def hear(self) -> None:
        """Let warnings be sentences, each said once."""
        for message in QUIET:
            warnings.filterwarnings("ignore", message=message)

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            kind = re.sub(r"[\d.]+", "", str(message))
            if issubclass(category, UserWarning | RuntimeWarning) and kind not in self._said:
                self._said.add(kind)
                self.say(str(message))

        warnings.showwarning = show

    def _facts(self, session: Session) -> dict[str, Any]:
        return {
            "rows": session.taken,
            "total": session.total,
            "skipped": self.skipped,
            "saved": session.unsaved is None,
            "recent_error": session.completer.recent_error,
            "seconds": round(time.monotonic() - self._began, 3),
        }

    def _tell(self, event: str, text: str, **facts: Any) -> None:
        if self.as_json:
            text = json.dumps({"event": event, **facts})
        elif self._line:
            text = f"\r\x1b[K{text}"
            self._line = False
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
