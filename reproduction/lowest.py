"""In how many cells of a figure hirank has the lowest error, tuned rivals included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reproduction.claim_kinds import Claim, describe_place
from reproduction.config import Experiment
from reproduction.summary import Group, Row, last_points, pair_trials, select, summarize


class ComparedCell(NamedTuple):
    """Errors in one cell of a figure: medians over the trials that all methods have run."""

    place: str
    ours: float
    rival: str  # the one with the lowest error
    theirs: float
    trials: int

    @property
    def is_lowest(self) -> bool:
        """Return whether our error is below that of every rival."""
        return self.ours < self.theirs


def find_claim(experiment: Experiment) -> Claim | None:
    """Return the claim of an experiment whose cells are counted, if it has one."""
    return next((claim for claim in experiment.claims if claim.get("count_cells")), None)


def compare_cells(experiment: Experiment, rows: Sequence[Row]) -> list[ComparedCell]:
    """Compare errors in each cell (data x pattern x rate) that the counted claim is about.

    A cell in which our method or all rivals have no number is left out.
    """
    claim = find_claim(experiment)
    if claim is None:
        return []
    (own,), rivals = claim["methods"], claim["than"]
    summary = summarize(pair_trials(rows, [own, *rivals]))
    places: dict[tuple[str, str, float], dict[str, Group]] = {}
    found = last_points(select(summary, measure=claim["measure"]))
    for group in found:
        places.setdefault(group[:3], {})[group.method] = group
    cells = []
    for groups in places.values():
        errors = {name: found[group].median for name, group in groups.items() if name != own}
        if own in groups and errors:
            best = min(errors, key=lambda name: errors[name])
            ours = found[groups[own]]
            place = describe_place(groups[own])
            cells.append(ComparedCell(place, ours.median, best, errors[best], ours.seeds))
    return cells
