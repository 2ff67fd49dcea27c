"""Results of cells: those of earlier runs, and a journal of those since the table was written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reproduction.cells import CellResult, Measurement

Facts = dict[str, Any]
"""Machine, versions of libraries and date of a run."""


class Cache:
    """Results of cells, and the machines that they come from.

    New results are appended to a journal at once, so that a killed run loses nothing.

    Parameters
    ----------
    path : Path
        The journal. Its results replace others of the same cells.
    saved : iterable of (CellResult, Facts)
        Results in tables.
    """

    def __init__(self, path: Path, saved: Iterable[tuple[CellResult, Facts]] = ()) -> None:
        self.path = path
        self.results: dict[str, CellResult] = {}
        self.facts: dict[str, Facts] = {}  # by the keys of cells
        self.outdated: set[str] = set()
        """Keys of results to measure again; they are kept until then."""
        self._machine: Facts = {}
        self._is_recorded = False
        for result, facts in saved:
            self._keep(result, facts)
        if path.exists():
            self._read()

    @property
    def valid(self) -> dict[str, CellResult]:
        """Return the results that are not outdated."""
        return {key: one for key, one in self.results.items() if key not in self.outdated}

    def begin(self, machine: Facts) -> None:
        """Set the machine that the following results come from."""
        self._machine, self._is_recorded = machine, False

    def add(self, result: CellResult) -> None:
        """Save a result; it is on disk when this returns."""
        self._keep(result, self._machine)
        if not self._is_recorded:
            self._write({"machine": self._machine})
            self._is_recorded = True
        self._write(asdict(result))

    def remove_journal(self) -> None:
        """Delete the journal; for when all results are in a table."""
        self.path.unlink(missing_ok=True)

    def _keep(self, result: CellResult, facts: Facts) -> None:
        self.results[result.key] = result
        self.facts[result.key] = facts
        self.outdated.discard(result.key)

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
                self._keep(CellResult(**line), self._machine)
        if end < self.path.stat().st_size:
            with self.path.open("rb+") as file:
                file.truncate(end)
