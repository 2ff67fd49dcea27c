"""Results on disk: one line each, appended at once, so that a killed run loses nothing."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reproduction.cells import CellResult, Measurement

Facts = dict[str, Any]
"""Machine, code and date of a run."""


class Cache:
    """A file of results and the machines that they come from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, CellResult] = {}
        self.facts: dict[str, Facts] = {}  # by the keys of cells
        self._machine: Facts = {}
        if path.exists():
            self._read()

    def begin(self, machine: Facts) -> None:
        """Record the machine that the following results come from."""
        self._machine = machine
        self._write({"machine": machine})

    def add(self, result: CellResult) -> None:
        """Save a result; it is on disk when this returns."""
        self.results[result.key] = result
        self.facts[result.key] = self._machine
        self._write(asdict(result))

    def clear(self) -> None:
        """Delete all results."""
        self.path.unlink(missing_ok=True)
        self.results, self.facts = {}, {}

    def _write(self, line: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> None:
        end = 0
        with self.path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    break  # cut off when a run was killed
                end += len(raw)
                line = json.loads(raw)
                if "machine" in line:
                    self._machine = line["machine"]
                    continue
                line["measurements"] = tuple(Measurement(*one) for one in line["measurements"])
                result = CellResult(**line)
                self.results[result.key] = result
                self.facts[result.key] = self._machine
        if end < self.path.stat().st_size:
            with self.path.open("rb+") as file:
                file.truncate(end)
