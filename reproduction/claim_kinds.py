"""Kinds of claims: how each is judged in each place, and how its numbers are described."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import ge, le
from typing import Any, NamedTuple

import numpy as np

from hirank._text import number, percent
from reproduction.summary import Group, Summary, late_exponent

Claim = Mapping[str, Any]
Place = tuple[str, str, float]
"""Data, pattern, rate."""


class Case(NamedTuple):
    """A claim in one place: whether it holds there, and by which margin."""

    place: str
    holds: bool
    value: float
    share: float = math.nan  # of the steps along a curve, or of neighbors, that are as claimed


NOUNS = {
    "fit seconds": "time of the fit (s)",
    "seconds per sample": "time per sample (s)",
    "seconds per new sample": "time per new sample (s)",
    "seconds per iteration": "time per iteration (s)",
    "peak MB": "peak of memory (MB)",
    "iterations to converge": "number of iterations to converge",
    "diverged": "divergence (1 or 0)",
    "recovered": "recovery (1 or 0)",
    "rank, theory": "rank in theory",
    "observed, KFMC in theory": "share that KFMC must observe in theory",
    "observed, low rank in theory": "share that low-rank methods must observe in theory",
}
"""Measures as nouns, where the measure itself is not one."""


def noun(measure: str) -> str:
    """Return a measure as a noun, for sentences."""
    return NOUNS.get(measure, measure)


def _noun(claim: Claim) -> str:
    """Return the measure of a claim, without its unit."""
    return noun(claim["measure"]).partition(" (")[0]


def _find_lower(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, ours, others in _pairs(found, claim):
        below = ours <= others if claim.get("or_equal", False) else ours < others
        yield Case(_describe_place(place), below, others / ours if ours else math.inf)


def _find_ratio(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, ours, others in _pairs(found, claim):
        value = others / ours if ours else math.inf
        yield Case(_describe_place(place), value >= claim["at_least"], value)


def _pairs(found: Summary, claim: Claim) -> Iterator[tuple[Place, float, float]]:
    """Yield each place with the best of `methods` and the best of `than`."""
    for place, medians in _places(found).items():
        ours = [medians[name] for name in claim["methods"] if name in medians]
        others = [medians[name] for name in claim["than"] if name in medians]
        if ours and others:
            yield place, min(ours), min(others)


def _find_falls(found: Summary, claim: Claim) -> Iterator[Case]:
    for label, curve in _curves(found).items():
        values = np.array([value for _, value in curve])
        if len(values) > 1:
            share = float(np.mean(np.diff(values) < 0))
            holds = values[-1] < values[0] and share >= claim.get("share", 0)
            ratio = float(values[-1] / values[0]) if values[0] else math.nan
            yield Case(label, bool(holds), ratio, share)


def _find_ordered(found: Summary, claim: Claim) -> Iterator[Case]:
    for place, medians in _places(found).items():
        values = np.array([medians[name] for name in claim["methods"] if name in medians])
        if len(values) > 1:
            steps = np.diff(values)
            rises = bool(np.all(steps >= 0) and values[-1] > values[0])
            share = float(np.mean(steps >= 0))
            yield Case(_describe_place(place), rises, values[-1] - values[0], share)


def _find_values(
    found: Summary, claim: Claim, compare: Callable[[float, float], bool]
) -> Iterator[Case]:
    """Compare each median with the value of the claim, which may differ by data."""
    several = len({group.method for group in found}) > 1
    for group, spread in found.items():
        value = claim["value"]
        wanted = value.get(group.data) if isinstance(value, Mapping) else value
        if wanted is not None:
            place = describe_place(group)
            label = f"{group.method}, {place}" if several else place
            yield Case(label, compare(spread.median, float(wanted)), spread.median)


def _find_equal(found: Summary, claim: Claim) -> Iterator[Case]:
    tolerance = claim.get("tolerance", 0.0)
    return _find_values(found, claim, lambda value, wanted: abs(value - wanted) <= tolerance)


def _find_at_most(found: Summary, claim: Claim) -> Iterator[Case]:
    return _find_values(found, claim, le)


def _find_at_least(found: Summary, claim: Claim) -> Iterator[Case]:
    return _find_values(found, claim, ge)


def _find_exponents(found: Summary, claim: Claim) -> Iterator[Case]:
    for label, curve in _curves(found).items():
        points = [(at, value) for at, value in curve if at > 0 and value > 0]
        if len(points) > 1:
            slope = late_exponent(*zip(*points, strict=True))
            holds = claim.get("from", -math.inf) <= slope <= claim.get("to", math.inf)
            yield Case(label, holds, slope)


def _places(found: Summary) -> dict[Place, dict[str, float]]:
    """Return the medians of methods, by place."""
    places: dict[Place, dict[str, float]] = {}
    for group, spread in found.items():
        place = group.data, group.pattern, group.rate
        places.setdefault(place, {})[group.method] = spread.median
    return places


def _curves(found: Summary) -> dict[str, list[tuple[float, float]]]:
    """Return the medians along `at`, by method and place."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for group, spread in sorted(found.items(), key=lambda each: each[0].at):
        label = f"{group.method}, {describe_place(group)}"
        curves.setdefault(label, []).append((group.at, spread.median))
    return curves


def _span(cases: Sequence[Case]) -> str:
    values = [case.value for case in cases]
    middle, low, high = (number(f(values)) for f in (np.median, np.min, np.max))
    return middle if low == high else f"{middle} (from {low} to {high})"


def _share(cases: Sequence[Case]) -> str:
    return percent(float(np.mean([case.share for case in cases])))


def _describe_ratio(cases: Sequence[Case], claim: Claim) -> str:
    return (
        f"The {_noun(claim)} of {_best(claim['than'])} is {_span(cases)} times "
        f"that of {_best(claim['methods'])}."
    )


def _describe_falls(cases: Sequence[Case], claim: Claim) -> str:
    return (
        f"At the end, the {_noun(claim)} is {_span(cases)} times what it was at first; "
        f"{_share(cases)} of the steps fall."
    )


def _describe_order(cases: Sequence[Case], claim: Claim) -> str:
    order = ", ".join(claim["methods"])
    return f"Of neighbors in the order {order}, {_share(cases)} have the {_noun(claim)} so."


def _describe_value(cases: Sequence[Case], claim: Claim) -> str:
    if len({case.value for case in cases}) == 1 or len(cases) > 6:
        return f"The {_noun(claim)} is {_span(cases)}."
    each = ", ".join(f"{number(case.value)} ({case.place})" for case in cases)
    return f"The {_noun(claim)} is {each}."


def _describe_exponent(cases: Sequence[Case], claim: Claim) -> str:
    return f"The {_noun(claim)} grows with the power {_span(cases)} of the size."


FindCases = Callable[[Summary, Claim], Iterator[Case]]
Describe = Callable[[Sequence[Case], Claim], str]

KINDS: dict[str, tuple[FindCases, tuple[str, ...], Describe]] = {
    "lower": (_find_lower, ("methods", "than"), _describe_ratio),
    "ratio": (_find_ratio, ("methods", "than", "at_least"), _describe_ratio),
    "falls": (_find_falls, (), _describe_falls),
    "ordered": (_find_ordered, ("methods",), _describe_order),
    "equals": (_find_equal, ("value",), _describe_value),
    "at_most": (_find_at_most, ("value",), _describe_value),
    "at_least": (_find_at_least, ("value",), _describe_value),
    "exponent": (_find_exponents, (), _describe_exponent),
}
"""Kinds of claims: how their cases are found, which keys they require, how they are described.

- lower: the best of `methods` is below the best of `than` (`or_equal`: or equal to it)
- ratio: the best of `than` is at least `at_least` times the best of `methods`
- falls: along `at` the last value is below the first, and a `share` of the steps falls
- ordered: `methods` are given from the lowest to the highest; equal neighbors are in order
- equals, at_most, at_least: `value`, one number or one by data; `tolerance`
- exponent: the slope of log measure over log `at`, for the larger half of `at`, is between `from`
  and `to`
"""
CURVE_KINDS = {"falls", "exponent"}
"""Kinds that are about whole curves."""


def describe_place(group: Group) -> str:
    """Return data, missing rate and pattern as text."""
    return _describe_place((group.data, group.pattern, group.rate))


def _describe_place(place: Place) -> str:
    data, pattern, rate = place
    if pattern == "none":
        return data
    missing = f"{100 * rate:.3g} % missing"
    return f"{data}, {missing}" if pattern == "random" else f"{data}, {missing} ({pattern})"


def _best(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"the best of {', '.join(names[:-1])} and {names[-1]}"
