"""How many trials each method has run, and in how many its settings were searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from hirank._text import plural
from reproduction.config import Experiment
from reproduction.summary import Row, get_place


class Span(NamedTuple):
    """The lowest and the highest number over the cells of a figure."""

    low: int
    high: int

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


class Trials(NamedTuple):
    """The trials of a method: how many, and in how many all of its settings were run."""

    ran: Span
    searched: Span | None  # None: the method has one setting


def count_trials(experiment: Experiment, rows: Sequence[Row]) -> dict[str, Trials]:
    """Return the trials of each method: the lowest and the highest number over its cells."""
    settings: dict[Any, set[str]] = defaultdict(set)
    counted: dict[Any, set[int]] = defaultdict(set)
    for row in rows:
        method, place, seed = row["method"], get_place(row), row["seed"]
        settings[method, place, seed].add(row["settings"])
        if row["selected"] or row["failure"]:
            counted[method, place].add(seed)
    places = {get_place(row) for row in rows}
    trials = {}
    for entry in experiment.methods:
        name, ran, searched, one_setting = entry.method.name, [], [], True
        for place in places:
            if entry.data and place[0] not in entry.data:
                continue
            seeds, n_variants = counted[name, place], len(entry.variants(place[0]))
            ran.append(len(seeds))
            searched.append(sum(len(settings[name, place, seed]) >= n_variants for seed in seeds))
            one_setting = one_setting and n_variants == 1
        if ran:
            span = None if one_setting else Span(min(searched), max(searched))
            trials[name] = Trials(Span(min(ran), max(ran)), span)
    return trials


def describe_trials(experiment: Experiment, rows: Sequence[Row]) -> str:
    """Return the numbers of trials as text, methods with the same numbers together."""
    names: dict[Trials, list[str]] = defaultdict(list)
    for method, trials in count_trials(experiment, rows).items():
        names[trials].append(method)
    spans = {trials.ran for trials in names}
    if len(spans) == 1:
        searched = _describe_search([trials for trials in names if trials.searched])
        return _describe(spans.pop()) + searched
    return "; ".join(
        f"{', '.join(methods)}: {_describe(trials.ran)}{_describe_search([trials])}"
        for trials, methods in names.items()
    )


def _describe(span: Span) -> str:
    return f"{span} trials" if span.low < span.high else plural(span.low, "trial")


def _describe_search(found: Sequence[Trials]) -> str:
    """Return in how many trials settings were searched, where that is not all."""
    spans = [trials.searched for trials in found if trials.searched]
    if not spans:
        return ""
    low, high = min(span.low for span in spans), max(span.high for span in spans)
    everywhere = all(trials.searched == trials.ran for trials in found if trials.searched)
    return " (settings searched in " + ("each)" if everywhere else f"{Span(low, high)})")
