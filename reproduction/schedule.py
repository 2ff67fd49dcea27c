"""The cells of an experiment: which can be run, and which settings are selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from reproduction.cells import Cell, CellResult
from reproduction.config import EVERY_TRIAL, Entry, Experiment

Results = Mapping[str, CellResult]
"""Results of cells so far, by their keys."""


@dataclass(frozen=True)
class Group:
    """Cells that differ in settings and trial only: `cells[variant][trial]`."""

    cells: list[list[Cell]]
    tune_by: str
    every_trial: bool = False  # whether settings are searched in every trial, or in the first one

    def select(self, results: Results, trial: int) -> int | None:
        """Return the variant with the lowest error in a trial, by the truth as in the paper.

        None if all failed, or if it is not known yet: where not all variants have been run, the
        one that is best in the first trial must be among them.
        """
        if len(self.cells) == 1:
            return 0
        ran = [v for v, trials in enumerate(self.cells) if trials[trial].key in results]
        if len(ran) < len(self.cells) and (trial == 0 or self.select(results, 0) not in ran):
            return None
        errors = [_last_value(results[self.cells[v][trial].key], self.tune_by) for v in ran]
        return ran[int(np.argmin(errors))] if min(errors) < np.inf else None

    def pending(self, results: Results) -> list[Cell]:
        """Return the cells to run now: all variants on trials with a search, else the best."""
        best = None if self.every_trial else self.select(results, 0)
        searched = range(len(self.cells[0]) if self.every_trial else 1)
        found = [trials[trial] for trial in searched for trials in self.cells]
        if best is not None:
            found += self.cells[best][1:]
        return [cell for cell in found if cell.key not in results]

    def n_later(self, results: Results) -> int:
        """Return the number of cells that depend on a selection that is not known yet."""
        if self.every_trial or len(self.cells) == 1:
            return 0
        tuned = all(trials[0].key in results for trials in self.cells)
        return 0 if tuned else len(self.cells[0]) - 1


@dataclass(frozen=True)
class Schedule:
    """All cells of an experiment, in the order of its table."""

    groups: list[Group]

    @property
    def cells(self) -> list[Cell]:
        """Return all cells, also those that are only run if their settings are selected."""
        return [cell for group in self.groups for trials in group.cells for cell in trials]

    def pending(self, results: Results) -> list[Cell]:
        """Return the cells that can be run now, trial by trial."""
        found = [cell for group in self.groups for cell in group.pending(results)]
        return sorted(found, key=lambda cell: cell.seed)

    def n_later(self, results: Results) -> int:
        """Return the number of cells that depend on a selection that is not known yet."""
        return sum(group.n_later(results) for group in self.groups)


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
    options = experiment.options | ({} if size is None else {experiment.along: size})
    cells = [
        [
            Cell(experiment.task, data, pattern, rate, seed, method, options)
            for seed in range(experiment.seeds)
        ]
        for method in entry.variants(data)
    ]
    return Group(cells, experiment.tune_by, experiment.search == EVERY_TRIAL)


def _last_value(result: CellResult, measure: str) -> float:
    """Return the last value of a measure along its curve; infinity if there is none."""
    found = [(m.at, m.value) for m in result.measurements if m.measure == measure]
    value = max(found)[1] if found else np.inf
    return value if np.isfinite(value) else np.inf
