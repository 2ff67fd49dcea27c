"""The cells of an experiment: which are run, and which settings are chosen by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from reproduction.cells import Cell, Outcome
from reproduction.config import Entry, Experiment

Outcomes = Mapping[str, Outcome]
"""What came of cells so far, by their keys."""


@dataclass(frozen=True)
class Group:
    """Cells that differ in settings and seed only: `cells[variant][seed]`."""

    cells: list[list[Cell]]
    tune_by: str

    def chosen(self, done: Outcomes) -> int | None:
        """The settings with the lowest error on the first seed, by the truth as in the paper.

        None if that is not known yet, or if all failed.
        """
        if len(self.cells) == 1:
            return 0
        if not self.tried(done):
            return None
        errors = [_last(done[seeds[0].key], self.tune_by) for seeds in self.cells]
        return int(np.argmin(errors)) if min(errors) < np.inf else None

    def tried(self, done: Outcomes) -> bool:
        """Whether all settings have been run on the first seed."""
        return all(seeds[0].key in done for seeds in self.cells)

    def waiting(self, done: Outcomes) -> list[Cell]:
        """What can be run now: all settings on the first seed, then the best on the others."""
        found = [seeds[0] for seeds in self.cells]
        best = self.chosen(done)
        if best is not None:
            found += self.cells[best][1:]
        return [cell for cell in found if cell.key not in done]

    def later(self, done: Outcomes) -> int:
        """Cells that will be run, but are not known yet."""
        return 0 if len(self.cells) == 1 or self.tried(done) else len(self.cells[0]) - 1


@dataclass(frozen=True)
class Plan:
    """All cells of an experiment, in the order of its table."""

    groups: list[Group]

    def waiting(self, done: Outcomes) -> list[Cell]:
        """Cells that can be run now."""
        return [cell for group in self.groups for cell in group.waiting(done)]

    def left(self, done: Outcomes) -> int:
        """Cells that are still to be run, among them those that are not known yet."""
        return len(self.waiting(done)) + sum(group.later(done) for group in self.groups)


def plan_of(experiment: Experiment) -> Plan:
    """The cells of an experiment."""
    places = product(
        experiment.data, experiment.patterns, experiment.rates, experiment.sizes or (None,)
    )
    return Plan(
        [
            _group(experiment, entry, *place)
            for place in places
            for entry in experiment.methods
            if entry.runs_on(place[0], place[3])
        ]
    )


def _group(
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


def _last(outcome: Outcome, measure: str) -> float:
    """The last value of a measure along its curve; infinite if there is none."""
    found = [(m.at, m.value) for m in outcome.measurements if m.measure == measure]
    value = max(found)[1] if found else np.inf
    return value if np.isfinite(value) else np.inf
