"""Kinds of claims: how each is judged in each place, and told in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hirank._text import number, percent
from reproduction.summary import Group, Summary, late_exponent

Claim = Mapping[str, Any]
Place = tuple[str, str, float]
"""Data, pattern, rate."""


class Case(NamedTuple):
    """A claim in one place: whether it holds there, and a number that says by how much."""

    where: str
    holds: bool
    value: float
    share: float = math.nan  # of the steps along a curve, or of neighbors: those that go as claimed


NOUNS = {
    "fit seconds": "time of the fit (s)",
    "seconds per sample": "time per sample (s)",
    "seconds per new sample": "time per new sample (s)",
    "peak MB": "peak of memory (MB)",
    "iterations to converge": "number of iterations to converge",
    "diverged": "divergence (1 or 0)",
    "recovered": "recovery (1 or 0)",
    "rank, theory": "rank in theory",
    "observed, KFMC in theory": "share that KFMC must observe in theory",
    "observed, low rank in theory": "share that low-rank methods must observe in theory",
}
"""Measures in words, where they are not yet."""


def noun(measure: str) -> str:
    """A measure as sentences call it."""
    return NOUNS.get(measure, measure)


def _what(claim: Claim) -> str:
    """The same without its unit."""
    return noun(claim["measure"]).partition(" (")[0]


def _lower(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, ours, others in _pairs(found, claim):
        value = others / ours if ours else math.inf
        below = ours <= others if claim.get("or_equal", False) else ours < others
        yield Case(_place(place), below, value)


def _ratio(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, ours, others in _pairs(found, claim):
        value = others / ours if ours else math.inf
        yield Case(_place(place), value >= claim["at_least"], value)


def _pairs(found: Summary, claim: Claim) -> Iterator[tuple[Place, float, float]]:
    """In each place the best of `methods` and the best of `than`."""
    for place, medians in _places(found).items():
        ours = [medians[name] for name in claim["methods"] if name in medians]
        others = [medians[name] for name in claim["than"] if name in medians]
        if ours and others:
            yield place, min(ours), min(others)


def _falls(found: Summary, claim: Claim) -> Iterator[Case]:
    for label, curve in _curves(found).items():
        values = np.array([value for _, value in curve])
        if len(values) > 1:
            share = float(np.mean(np.diff(values) < 0))
            holds = values[-1] < values[0] and share >= claim.get("share", 0)
            ratio = float(values[-1] / values[0]) if values[0] else math.nan
            yield Case(label, bool(holds), ratio, share)


def _ordered(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, medians in _places(found).items():
        values = np.array([medians[name] for name in claim["methods"] if name in medians])
        if len(values) > 1:
            steps = np.diff(values)
            rises = bool(np.all(steps >= 0) and values[-1] > values[0])
            yield Case(_place(place), rises, values[-1] - values[0], float(np.mean(steps >= 0)))


def _equals(found: Summary, claim: Claim) -> Iterator[Case]:
    for group, label, value in _medians(found):
        wanted = _wanted(claim, group)
        if wanted is not None:
            yield Case(label, abs(value - wanted) <= claim.get("tolerance", 0.0), value)


def _at_most(found: Summary, claim: Claim) -> Iterator[Case]:
    for group, label, value in _medians(found):
        wanted = _wanted(claim, group)
        if wanted is not None:
            yield Case(label, value <= wanted, value)


def _at_least(found: Summary, claim: Claim) -> Iterator[Case]:
    for group, label, value in _medians(found):
        wanted = _wanted(claim, group)
        if wanted is not None:
            yield Case(label, value >= wanted, value)


def _exponent(found: Summary, claim: Claim) -> Iterator[Case]:
    for label, curve in _curves(found).items():
        points = [(at, value) for at, value in curve if at > 0 and value > 0]
        if len(points) > 1:
            slope = late_exponent(*zip(*points, strict=True))
            holds = claim.get("from", -math.inf) <= slope <= claim.get("to", math.inf)
            yield Case(label, holds, slope)


def _places(found: Summary) -> dict[Place, dict[str, float]]:
    """In each place the medians of methods."""
    places: dict[Place, dict[str, float]] = {}
    for group, spread in found.items():
        place = group.data, group.pattern, group.rate
        places.setdefault(place, {})[group.method] = spread.median
    return places


def _curves(found: Summary) -> dict[str, list[tuple[float, float]]]:
    """Medians along `at`, of each method in each place."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for group, spread in sorted(found.items(), key=lambda each: each[0].at):
        curves.setdefault(f"{group.method}, {where(group)}", []).append((group.at, spread.median))
    return curves


def _medians(found: Summary) -> Iterator[tuple[Group, str, float]]:
    """Each group, what to call it, and its median."""
    several = len({group.method for group in found}) > 1
    for group, spread in found.items():
        label = f"{group.method}, {where(group)}" if several else where(group)
        yield group, label, spread.median


def _wanted(claim: Claim, group: Group) -> float | None:
    """The value of a claim; it may differ by data."""
    value = claim["value"]
    wanted = value.get(group.data) if isinstance(value, Mapping) else value
    return None if wanted is None else float(wanted)


def _span(cases: Sequence[Case]) -> str:
    values = [case.value for case in cases]
    middle, low, high = (number(f(values)) for f in (np.median, np.min, np.max))
    return middle if low == high else f"{middle} (from {low} to {high})"


def _share(cases: Sequence[Case]) -> str:
    return percent(float(np.mean([case.share for case in cases])))


def _tell_times(cases: Sequence[Case], claim: Claim) -> str:
    return (
        f"The {_what(claim)} of {_best(claim['than'])} is {_span(cases)} times "
        f"that of {_best(claim['methods'])}."
    )


def _tell_falls(cases: Sequence[Case], claim: Claim) -> str:
    return (
        f"At the end, the {_what(claim)} is {_span(cases)} times what it was at first; "
        f"{_share(cases)} of the steps fall."
    )


def _tell_ordered(cases: Sequence[Case], claim: Claim) -> str:
    order = ", ".join(claim["methods"])
    return f"Of neighbors in the order {order}, {_share(cases)} have the {_what(claim)} so."


def _tell_value(cases: Sequence[Case], claim: Claim) -> str:
    if len({case.value for case in cases}) == 1 or len(cases) > 6:
        return f"The {_what(claim)} is {_span(cases)}."
    each = ", ".join(f"{number(case.value)} ({case.where})" for case in cases)
    return f"The {_what(claim)} is {each}."


def _tell_exponent(cases: Sequence[Case], claim: Claim) -> str:
    return f"The {_what(claim)} grows with the power {_span(cases)} of the size."


Judged = Callable[[Summary, Claim], Iterator[Case]]
Told = Callable[[Sequence[Case], Claim], str]

KINDS: dict[str, tuple[Judged, tuple[str, ...], Told]] = {
    "lower": (_lower, ("methods", "than"), _tell_times),
    "ratio": (_ratio, ("methods", "than", "at_least"), _tell_times),
    "falls": (_falls, (), _tell_falls),
    "ordered": (_ordered, ("methods",), _tell_ordered),
    "equals": (_equals, ("value",), _tell_value),
    "at_most": (_at_most, ("value",), _tell_value),
    "at_least": (_at_least, ("value",), _tell_value),
    "exponent": (_exponent, (), _tell_exponent),
}
"""Kinds of claims: how they are judged, what they must name, and how they are told.

- lower: the best of `methods` is below the best of `than` (`or_equal`: or as low)
- ratio: the best of `than` is at least `at_least` times the best of `methods`
- falls: along `at` the last value is below the first, and a `share` of steps falls
- ordered: `methods` are named from the lowest to the highest; equal neighbors are in order
- equals, at_most, at_least: `value`, one number or one by data; `tolerance`
- exponent: the slope of log measure over log `at` is in `from` to `to`; of the larger half of `at`
"""
WHOLE = {"falls", "exponent"}
"""Kinds that are about whole curves."""


def where(group: Group) -> str:
    """Data, holes and pattern in words."""
    return _place((group.data, group.pattern, group.rate))


def _place(place: Place) -> str:
    data, pattern, rate = place
    if pattern == "none":
        return data
    holes = f"{100 * rate:.3g} % missing"
    return f"{data}, {holes}" if pattern == "random" else f"{data}, {holes} ({pattern})"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _best(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"the best of {_names(names)}"
