"""Verdicts on claims of the paper, and the bands that our numbers are expected in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hirank._text import number
from reproduction.claim_kinds import CURVE_KINDS, KINDS, Case, Claim, describe_place
from reproduction.config import Experiment
from reproduction.summary import (
    Row,
    Summary,
    last_points,
    pair_trials,
    select,
    summarize,
)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds."""

    statement: str
    holds: str  # "yes", "partly", "no" or "not run"
    numbers: str  # a sentence with ours
    n_held: int = 0
    n_cases: int = 0
    explanation: str = ""
    ours: bool = False  # about hirank, not in the paper


def judge(experiment: Experiment, rows: Sequence[Row]) -> list[Verdict]:
    """Judge each claim of an experiment, on medians over seeds.

    A claim holds if it does in all places that it is about (mostly data x pattern x rate), partly
    if in half of them at least. Places without numbers do not count; methods without any are named.
    Methods are compared on the trials that all of them have run.
    Claims that cannot be judged (an unknown kind or method, a missing key) raise ValueError, also
    without any rows.

    Parameters
    ----------
    experiment : Experiment
        Its ``claims`` each have ``statement``, ``kind`` (a key of `KINDS`), ``measure``, and the
        keys of that kind; ``data``, ``patterns`` and ``rates`` restrict where it is judged, ``at``
        where along curves (by default at their end); ``explanation`` is ours, ``ours`` marks
        claims about hirank that are not in the paper, and ``count_cells`` those whose cells are
        counted by `reproduction.lowest`.
    rows : list of dict
        The tidy table.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from reproduction.claims import judge
    >>> claim = dict(statement="Its rank is 19.", kind="equals", measure="rank", value=19)
    >>> row = dict(data="a", pattern="none", rate=0.0, seed=0, method="truth", selected=True)
    >>> row |= dict(measure="rank", at=0.0, item=0, value=19.0, failure="")
    >>> experiment = SimpleNamespace(name="ranks", claims=[claim], methods=[], quick=False)
    >>> [verdict] = judge(experiment, [row])
    >>> verdict.holds, verdict.numbers
    ('yes', 'The rank is 19.')
    """
    summary = summarize(rows)
    return [
        _judge(experiment, claim, _pair(claim, rows) if "than" in claim else summary)
        for claim in experiment.claims
    ]


def check_expected(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each median outside of the band that the experiment expects.

    A band is about all places that fit its ``method``, ``data``, ``pattern``, ``rate`` and ``at``
    (by default the end of a curve), as far as it names them. Bands of what the experiment does not
    run are ignored, and all bands in a quick run.
    """
    if experiment.quick:
        return []
    summary = summarize(rows)
    return [
        sentence for band in experiment.expected for sentence in _missed(experiment, band, summary)
    ]


def _missed(experiment: Experiment, band: Claim, summary: Summary) -> Iterator[str]:
    known: dict[str, list[Any]] = {
        "method": [each.method.name for each in experiment.methods],
        "data": list(experiment.data),
        "pattern": list(experiment.patterns),
        "rate": list(experiment.rates),
    }
    named = [name for name in known if name in band]
    if any(band[name] not in known[name] for name in named):
        return
    found = _select(summary, band, tuple(known))
    low, high = band.get("from", -math.inf), band.get("to", math.inf)
    if not found:
        place = ", ".join(_describe(name, band[name]) for name in named)
        yield f"{place}: there is no {band['measure']}, expected {_describe_band(low, high)}."
    for group, spread in found.items():
        if not low <= spread.median <= high:
            yield (
                f"{group.method}, {describe_place(group)}: {group.measure} is "
                f"{number(spread.median)}, expected {_describe_band(low, high)}."
            )


def _pair(claim: Claim, rows: Sequence[Row]) -> Summary:
    """Return medians over the trials that all methods of a comparison have in common."""
    return summarize(pair_trials(rows, [*claim.get("methods", []), *claim["than"]]))


def _judge(experiment: Experiment, claim: Claim, summary: Summary) -> Verdict:
    wanted = _check_claim(experiment, claim)
    find_cases, _, describe = KINDS[claim["kind"]]
    on_curves = claim["kind"] in CURVE_KINDS
    found = _select(summary, claim, ("data", "patterns", "rates"), curves=on_curves)
    found = select(found, method=wanted or None)
    cases = list(find_cases(found, claim))
    known = [each.method.name for each in experiment.methods]
    absent = [method for method in wanted if method in known and not select(found, method=method)]
    n_held = sum(case.holds for case in cases)
    numbers = describe(cases, claim) if cases else "There are no numbers for this."
    if len(cases) > 1:
        numbers += f" It holds in {n_held} of {len(cases)} cases{_exceptions(cases)}."
    if absent:
        numbers += f" No numbers of {', '.join(absent)}."
    holds = "not run"
    if cases:
        holds = ("no", "partly", "yes")[(2 * n_held >= len(cases)) + (n_held == len(cases))]
    explanation, ours = claim.get("explanation", ""), claim.get("ours", False)
    return Verdict(claim["statement"], holds, numbers, n_held, len(cases), explanation, ours)


def _check_claim(experiment: Experiment, claim: Claim) -> list[str]:
    """Return the methods that a claim is about; raise if it cannot be judged."""
    kind = claim.get("kind")
    if kind not in KINDS:
        raise ValueError(
            f"{experiment.name}: kind of a claim must be one of {', '.join(KINDS)}; got {kind!r}."
        )
    for key in ("statement", "measure", *KINDS[kind][1]):
        if key not in claim:
            raise ValueError(f"{experiment.name}: a claim of kind {kind!r} requires {key!r}.")
    wanted = [*claim.get("methods", []), *claim.get("than", [])]
    known = [each.method.name for each in experiment.methods]
    unknown = [method for method in wanted if method not in known]
    if unknown and not experiment.quick:
        raise ValueError(f"{experiment.name}: a claim names unknown methods: {', '.join(unknown)}.")
    return wanted


def _select(
    summary: Summary, wanted: Claim, names: Sequence[str], *, curves: bool = False
) -> Summary:
    """Select what a claim or band is about: whole curves, or one point of each."""
    fields = {name.removesuffix("s"): wanted.get(name) for name in names}
    found = select(summary, measure=wanted["measure"], at=wanted.get("at"), **fields)
    return found if curves or "at" in wanted else last_points(found)


def _exceptions(cases: Sequence[Case]) -> str:
    """Return the places in which a claim fails, if they are few."""
    failing = [case.place for case in cases if not case.holds]
    if not failing or len(failing) == len(cases) or len(failing) > 3:
        return ""
    return f" (not: {'; '.join(failing)})"


def _describe(name: str, value: Any) -> str:
    return f"{100 * value:.3g} % missing" if name == "rate" else str(value)


def _describe_band(low: float, high: float) -> str:
    if low == -math.inf:
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high == math.inf else f"{number(low)} to {number(high)}"
