"""The cells of an experiment: which can be run, and which settings are selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from reproduction.cells import Cell, CellResult
from reproduction.config import Entry, Experiment

Results = Mapping[str, CellResult]
"""Results of cells so far, by their keys."""


@dataclass(frozen=True)
class Group:
    """Cells that differ in settings and seed only: `cells[variant][seed]`."""

    cells: list[list[Cell]]
    tune_by: str

    def select(self, results: Results) -> int | None:
        """Return the variant with the lowest error on the first seed, by the truth as in the paper.

        None if it is not known yet, or if all variants failed.
        """
        if len(self.cells) == 1:
            return 0
        if not self.is_tuned(results):
            return None
        errors = [_last_value(results[seeds[0].key], self.tune_by) for seeds in self.cells]
        return int(np.argmin(errors)) if min(errors) < np.inf else None

    def is_tuned(self, results: Results) -> bool:
        """Return whether all variants have been run on the first seed."""
        return all(seeds[0].key in results for seeds in self.cells)

    def pending(self, results: Results) -> list[Cell]:
        """Return the cells to run now: all variants on the first seed, then the best on others."""
        found = [seeds[0] for seeds in self.cells]
        best = self.select(results)
        if best is not None:
            found += self.cells[best][1:]
        return [cell for cell in found if cell.key not in results]

    def n_later(self, results: Results) -> int:
        """Return the number of cells that depend on the selection, while that is not known."""
        return 0 if len(self.cells) == 1 or self.is_tuned(results) else len(self.cells[0]) - 1


@dataclass(frozen=True)
class Schedule:
    """All cells of an experiment, in the order of its table."""

    groups: list[Group]

    def pending(self, results: Results) -> list[Cell]:
        """Return the cells that can be run now."""
        return [cell for group in self.groups for cell in group.pending(results)]

    def n_left(self, results: Results) -> int:
        """Return the number of cells that are not done."""
        return len(self.pending(results)) + sum(group.n_later(results) for group in self.groups)


def make_schedule(experiment: Experiment) -> Schedule:
    """Return the cells of an experiment."""
    places = product(
        experiment.data, experiment.patterns, experiment.rates, experiment.sizes or (None,)
    )
    return Schedule(
        [
            _make_group(experiment, entry, *place)
            for place in places
            for entry in experiment.methods
            if entry.runs_on(place[0], place[3])
        ]
    )


def _make_group(
    experiment: Experiment, entry: Entry, data: str, pattern: str, rate: float, size: int | None
) -> Group:
    options = experiment.options | ({} if size is None else {"n": size})
    cells = [
        [
            Cell(experiment.task, data, pattern, rate, seed, method, options)
            for seed in range(experiment.seeds)
        ]
        for method in entry.variants(data)
    ]
    return Group(cells, experiment.tune_by)


def _last_value(result: CellResult, measure: str) -> float:
    """Return the last value of a measure along its curve; infinity if there is none."""
    found = [(m.at, m.value) for m in result.measurements if m.measure == measure]
    value = max(found)[1] if found else np.inf
    return value if np.isfinite(value) else np.inf
