"""The cells of an experiment: which are run, and which settings are chosen by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from hirank.study.cells import Cell, Method, Outcome
from hirank.study.config import Experiment

Outcomes = Mapping[str, Outcome]
"""What came of cells so far, by their keys."""


@dataclass(frozen=True)
class Group:
    """Cells that differ in settings and seed only."""

    data: str
    pattern: str
    rate: float
    size: int | None
    variants: tuple[Method, ...]


def groups(experiment: Experiment) -> Iterator[Group]:
    """All groups, in the order of the table."""
    sizes = experiment.sizes or (None,)
    for data, pattern, rate, size in product(
        experiment.data, experiment.patterns, experiment.rates, sizes
    ):
        for entry in experiment.methods:
            if not entry.data or data in entry.data:
                yield Group(data, pattern, rate, size, tuple(entry.variants(data)))


def cell(experiment: Experiment, group: Group, method: Method, seed: int) -> Cell:
    """One run of a group."""
    options = dict(experiment.options)
    if group.size is not None:
        options["n"] = group.size
    return Cell(experiment.task, group.data, group.pattern, group.rate, seed, method, options)


def chosen(experiment: Experiment, group: Group, done: Outcomes) -> Method | None:
    """The settings with the lowest error on the first seed, told by the truth as the paper does.

    None if that is not known yet, or if all failed.
    """
    if len(group.variants) == 1:
        return group.variants[0]
    errors = []
    for method in group.variants:
        outcome = done.get(cell(experiment, group, method, 0).key)
        if outcome is None:
            return None
        errors.append(_last(outcome, experiment.tune_by))
    return group.variants[int(np.argmin(errors))] if min(errors) < np.inf else None


def waiting(experiment: Experiment, done: Outcomes) -> list[Cell]:
    """Cells that can be run now: first all settings on the first seed, then the chosen ones."""
    found = []
    for group in groups(experiment):
        found += [cell(experiment, group, method, 0) for method in group.variants]
        best = chosen(experiment, group, done)
        if best is not None:
            found += [cell(experiment, group, best, seed) for seed in range(1, experiment.seeds)]
    return [one for one in found if one.key not in done]


def left(experiment: Experiment, done: Outcomes) -> int:
    """Cells that are still to be run, among them those that are not known yet."""
    later = sum(
        experiment.seeds - 1
        for group in groups(experiment)
        if chosen(experiment, group, done) is None
        and any(cell(experiment, group, one, 0).key not in done for one in group.variants)
    )
    return len(waiting(experiment, done)) + later


def count(experiment: Experiment) -> int:
    """Cells in all."""
    return sum(len(group.variants) + experiment.seeds - 1 for group in groups(experiment))


def _last(outcome: Outcome, measure: str) -> float:
    """The last value of a measure along its curve; infinite if there is none."""
    found = [(m.at, m.value) for m in outcome.measurements if m.measure == measure]
    value = max(found)[1] if found else np.inf
    return value if np.isfinite(value) else np.inf
