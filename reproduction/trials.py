"""How many trials each method has run, and in how many its settings were searched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from hirank._text import plural
from reproduction.config import Entry, Experiment
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
    """Return the trials of each method with any."""
    settings: dict[str, dict[Any, dict[int, set[str]]]] = defaultdict(dict)
    counted: dict[str, dict[Any, set[int]]] = defaultdict(dict)
    for row in rows:
        method, place, seed = row["method"], get_place(row), row["seed"]
        settings[method].setdefault(place, defaultdict(set))[seed].add(row["settings"])
        if row["selected"] or row["failure"]:
            counted[method].setdefault(place, set()).add(seed)
    return {
        entry.method.name: _count(entry, counted[name], settings[name])
        for entry in experiment.methods
        if (name := entry.method.name) in counted
    }


def _count(
    entry: Entry, counted: dict[Any, set[int]], settings: dict[Any, dict[int, set[str]]]
) -> Trials:
    n_variants = {place: len(entry.variants(place[0])) for place in counted}
    searched = [
        sum(len(settings[place][seed]) >= n_variants[place] for seed in seeds)
        for place, seeds in counted.items()
    ]
    ran = [len(seeds) for seeds in counted.values()]
    one_setting = max(n_variants.values()) == 1
    span = None if one_setting else Span(min(searched), max(searched))
    return Trials(Span(min(ran), max(ran)), span)


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
