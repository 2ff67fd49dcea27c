"""Outcomes on disk: one line each, added as they come, so that a killed run loses nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from reproduction.cells import Measurement, Outcome

Facts = dict[str, Any]
"""Where and when something was run."""


class Cache:
    """A file of outcomes and the machines they come from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, Outcome] = {}
        self.facts: dict[str, Facts] = {}  # by the keys of cells
        self._machine: Facts = {}
        if path.exists():
            self._read()

    def begin(self, machine: Facts) -> None:
        """From now on, outcomes come from this machine."""
        self._machine = machine
        self._write({"machine": machine})

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome; it is on disk when this returns."""
        self.outcomes[outcome.key] = outcome
        self.facts[outcome.key] = self._machine
        self._write(
            {
                "key": outcome.key,
                "measurements": outcome.measurements,
                "seconds": outcome.seconds,
                "cpu_seconds": outcome.cpu_seconds,
                "failure": outcome.failure,
            }
        )

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)
        self.outcomes, self.facts = {}, {}

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> None:
        whole = 0
        with self.path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    break  # cut off by the end of a run
                whole += len(raw)
                line = json.loads(raw)
                if "machine" in line:
                    self._machine = line["machine"]
                    continue
                line["measurements"] = tuple(Measurement(*one) for one in line["measurements"])
                outcome = Outcome(**line)
                self.outcomes[outcome.key] = outcome
                self.facts[outcome.key] = self._machine
        if whole < self.path.stat().st_size:
            with self.path.open("rb+") as file:
                file.truncate(whole)
