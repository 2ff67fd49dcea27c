"""Claims of the paper, judged by our numbers; and the bands that our numbers must stay in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hirank._text import number
from reproduction.judges import KINDS, WHOLE, Case, Claim, where
from reproduction.summary import Row, Summary, at_last, pick, summarize


@dataclass(frozen=True)
class Verdict:
    """What became of a claim."""

    says: str
    holds: str  # "yes", "partly", "no" or "not run"
    numbers: str  # a sentence with ours
    cells_held: int = 0
    cells: int = 0
    because: str = ""
    ours: bool = False  # about hirank, not in the paper


def judge(experiment: Any, rows: Sequence[Row]) -> list[Verdict]:
    """Judge each claim of an experiment, on medians over seeds.

    A claim holds if it does in all places it is about (mostly data x pattern x rate), partly if in
    half of them at least. Places without numbers do not count; methods without any are told. Claims
    that can't be judged (an unknown kind or method, something missing) raise ValueError, also
    without any rows.

    Parameters
    ----------
    experiment : Experiment
        Its ``claims`` each have ``says``, ``kind`` (a key of `KINDS`), ``measure``, and what that
        kind asks for; ``data``, ``patterns`` and ``rates`` restrict where it is judged, ``at``
        where along curves (by default at their end); ``because`` is our explanation, and ``ours``
        says that the claim is about hirank, not in the paper.
    rows : list of dict
        The tidy table.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from reproduction.claims import judge
    >>> claim = dict(says="Its rank is 19.", kind="equals", measure="rank", value=19)
    >>> row = dict(data="a", pattern="none", rate=0.0, seed=0, method="truth", chosen=True)
    >>> row |= dict(measure="rank", at=0.0, item=0, value=19.0, failure="")
    >>> [verdict] = judge(SimpleNamespace(name="ranks", claims=[claim], methods=[]), [row])
    >>> verdict.holds, verdict.numbers
    ('yes', 'The rank is 19.')
    """
    summary = summarize(rows)
    return [_verdict(experiment, claim, summary) for claim in experiment.claims]


def check_expected(experiment: Any, rows: Sequence[Row]) -> list[str]:
    """Sentences about medians outside of the bands that the experiment expects; none is good.

    A band is about all places that fit what it names of ``method``, ``data``, ``pattern``, ``rate``
    and ``at`` (by default the end of a curve). What the experiment does not run is not asked for,
    and nothing of a quick run.
    """
    if getattr(experiment, "quick", False):
        return []
    summary = summarize(rows)
    return [
        sentence for band in experiment.expected for sentence in _missed(experiment, band, summary)
    ]


def _missed(experiment: Any, band: Claim, summary: Summary) -> Iterator[str]:
    runs = {
        "method": [each.method.name for each in experiment.methods],
        "data": list(experiment.data),
        "pattern": list(experiment.patterns),
        "rate": list(experiment.rates),
    }
    if any(name in band and band[name] not in known for name, known in runs.items()):
        return
    found = _found(summary, band, ("method", "data", "pattern", "rate"))
    named = [name for name in runs if name in band]
    what = ", ".join(_said(name, band[name]) for name in named)
    low, high = band.get("from", -math.inf), band.get("to", math.inf)
    if not found:
        yield f"{what}: there is no {band['measure']}, expected {_band(low, high)}."
    for group, spread in found.items():
        if not low <= spread.median <= high:
            yield (
                f"{group.method}, {where(group)}: {group.measure} is {number(spread.median)}, "
                f"expected {_band(low, high)}."
            )


def _verdict(experiment: Any, claim: Claim, summary: Summary) -> Verdict:
    name = experiment.name
    kind = claim.get("kind")
    if kind not in KINDS:
        raise ValueError(
            f"{name}: there is no kind of claim {kind!r}; there are: {', '.join(KINDS)}."
        )
    judged, needs, sentence = KINDS[kind]
    for key in ("says", "measure", *needs):
        if key not in claim:
            raise ValueError(f"{name}: a claim of kind {kind!r} needs {key!r}.")
    asked = [*claim.get("methods", []), *claim.get("than", [])]
    known = [each.method.name for each in experiment.methods]
    if not getattr(experiment, "quick", False) and set(asked) - set(known):
        unknown = ", ".join(method for method in asked if method not in known)
        raise ValueError(f"{name}: a claim is about methods that are not in it: {unknown}.")
    found = _found(summary, claim, ("data", "patterns", "rates"), curves=kind in WHOLE)
    found = pick(found, method=asked or None)
    cases = list(judged(found, claim))
    absent = [method for method in asked if method in known and not pick(found, method=method)]
    held = sum(case.holds for case in cases)
    numbers = sentence(cases, claim) if cases else "There are no numbers for this."
    if cases and len(cases) > 1:
        numbers += f" It holds in {held} of {len(cases)} cases{_exceptions(cases)}."
    if absent:
        numbers += f" No numbers of {', '.join(absent)}."
    holds = "not run"
    if cases:
        holds = ("no", "partly", "yes")[(2 * held >= len(cases)) + (held == len(cases))]
    because, ours = claim.get("because", ""), claim.get("ours", False)
    return Verdict(claim["says"], holds, numbers, held, len(cases), because, ours)


def _found(
    summary: Summary, wanted: Claim, names: Sequence[str], *, curves: bool = False
) -> Summary:
    """What a claim or band is about; whole curves, or one point of each."""
    fields = {name.removesuffix("s"): wanted.get(name) for name in names}
    found = pick(summary, measure=wanted["measure"], at=wanted.get("at"), **fields)
    return found if curves or "at" in wanted else at_last(found)


def _exceptions(cases: Sequence[Case]) -> str:
    """Where a claim fails, if that is rare enough to say."""
    failing = [case.where for case in cases if not case.holds]
    if not failing or len(failing) == len(cases) or len(failing) > 3:
        return ""
    return f" (not: {'; '.join(failing)})"


def _said(name: str, value: Any) -> str:
    return f"{100 * value:.3g} % missing" if name == "rate" else str(value)


def _band(low: float, high: float) -> str:
    if low == -math.inf:
        return f"at most {number(high)}"
    return f"at least {number(low)}" if high == math.inf else f"{number(low)} to {number(high)}"
