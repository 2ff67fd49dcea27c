"""The record that `advise` returns, and its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hirank.theory.evidence import HeldOut

SHOWN = 8
"""Samples or features that are named before "and so on"."""

CLOSE = 0.15
"""Error, relative to feature means, below which it would be wrong to say that a method fails."""
NOISY = 0.2
"""Error above which the latent dimension is a lower bound (oil flow and air quality: 1)."""
POOR = 0.7
"""Error, relative to feature means, above which fills are better than nothing and no more."""

HEADLINES = {
    "linear": "Linear completion should do.",
    "kfmc": "Linear completion is not enough; KFMC can fill this table.",
    "neither": "Neither linear completion nor KFMC would do much better than feature means.",
    "untested": "No verdict: too few known entries to test anything on.",
}


@dataclass(frozen=True)
class Advice:
    """What to expect of completing a table. ``print`` it to read it in words.

    Attributes
    ----------
    n_samples, n_features : int
    observed_rate : float
        Part of the entries that are known.
    verdict : {"linear", "kfmc", "neither", "untested"}
        ``"linear"``: linear completion should do. ``"kfmc"``: it is not enough, but KFMC can.
        ``"neither"``: unrelated features, too much noise, or too few observations.
        ``"untested"``: too small a table to say.
    kfmc_can : bool
        Whether KFMC does clearly better than feature means, be it better than linear or not.
    latent_dimension, linear_rank, feature_rank : int or None
        Estimates, as far as the noise lets see: latent variables, rank of the table (without its
        mean), and rank in the feature space of a polynomial kernel of degree 2. None if there is
        no structure that could be measured.
    low_rank_rate, kfmc_rate : float or None
        Part of the entries that should be known for these ranks by the paper's rules of thumb.
    held_out : HeldOut or None
        How well known entries came out when hidden.
    reachable : float or None
        Part of the missing entries in samples and features with enough known ones. None if nothing
        is missing.
    sample_needs, feature_needs : int
        Known entries that a sample and a feature need at least.
    thin_samples, thin_features : dict
        Those that have fewer: position or name, and how many they have.
    empty_samples, empty_features, constant_features : tuple
        Samples and features without any known entry (of a feature that varies), and features with
        one value only.
    unrelated_features : tuple
        Features that could not be filled better than with their mean, though others could.
    separate_groups : tuple of tuples
        Groups of features of which no sample knows two together, if there is more than one group.
    ignored_columns : tuple of str
        Columns of a data frame that are not numeric.

    Examples
    --------
    No sample knows two features, so nothing can relate them:

    >>> import numpy as np
    >>> from hirank.theory import advise
    >>> advice = advise([[1.0, np.nan], [np.nan, 2.0], [3.0, np.nan], [np.nan, 5.0]])
    >>> advice.verdict, advice.reachable, advice.separate_groups
    ('neither', 0.0, ((0,), (1,)))
    >>> advice.to_dict()["separate_groups"]
    [[0], [1]]
    """

    n_samples: int
    n_features: int
    observed_rate: float
    verdict: str
    kfmc_can: bool
    latent_dimension: int | None
    linear_rank: int | None
    feature_rank: int | None
    low_rank_rate: float | None
    kfmc_rate: float | None
    held_out: HeldOut | None
    reachable: float | None
    sample_needs: int
    feature_needs: int
    thin_samples: Mapping[int, int]
    thin_features: Mapping[int | str, int]
    empty_samples: tuple[int, ...]
    empty_features: tuple[int | str, ...]
    constant_features: tuple[int | str, ...]
    unrelated_features: tuple[int | str, ...]
    separate_groups: tuple[tuple[int | str, ...], ...]
    ignored_columns: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dictionaries."""
        return {key: _plain(value) for key, value in asdict(self).items()}

    def __str__(self) -> str:
        return "\n".join(_sentences(self))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _sentences(a: Advice) -> Iterator[str]:
    known = "none missing" if a.observed_rate == 1 else f"{_percent(a.observed_rate)} known"
    yield f"{a.n_samples} samples x {a.n_features} features, {known}."
    yield _headline(a)
    if a.held_out is not None:
        yield from _evidence(a, a.held_out)
    if a.latent_dimension is not None:
        yield _structure(a)
    yield from _out_of_reach(a)
    yield from _set_aside(a)


def _headline(a: Advice) -> str:
    line = _finding(a)
    if a.observed_rate == 1:
        return f"Nothing is missing. If entries were: {line}"
    if a.verdict in ("linear", "kfmc") and a.reachable is not None and a.reachable < 0.5:
        part = _percent(a.reachable)
        line += f" But only {part} of what is missing has enough known entries to go by: see below."
    return line


def _finding(a: Advice) -> str:
    line, h = HEADLINES[a.verdict], a.held_out
    if a.n_features - len(a.empty_features) - len(a.constant_features) < 2:
        return f"{line} Fewer than two features vary: nothing to fill one from the other."
    if a.verdict == "neither":
        if h is None or not h.fair or (a.reachable or 0) < 0.5:
            return f"{line} There are too few observations: see below."
        return f"{line} Features are unrelated or noisy, or too few entries are known."
    if h is None:
        return line
    if h.fair and _best(h) > POOR:
        first, second = ("KFMC", "linear completion")
        if a.verdict == "linear":
            first, second = "Linear completion", "KFMC"
        relation = "better than" if a.verdict == "kfmc" else "as well as"
        return f"{first} does {relation} {second}, but little better than feature means."
    if a.verdict == "kfmc" and h.linear_error < CLOSE:
        return "Linear completion comes close, but KFMC does better."
    if a.verdict == "linear":
        as_good = h.kfmc_error <= 1.1 * max(h.linear_error, 0.05)
        line += " KFMC does as well." if as_good else " KFMC is no better."
    return line


def _evidence(a: Advice, h: HeldOut) -> Iterator[str]:
    on = "" if h.n_samples == a.n_samples else f" (in {h.n_samples} of the samples)"
    yield (
        f"Tested by hiding {h.n_entries} known entries{on}; error if filled with feature means = "
        f"100 %: linear {_percent(h.linear_error)}, KFMC {_percent(h.kfmc_error)}."
    )
    if h.fair and a.verdict in ("linear", "kfmc"):
        yield f"Fills will be {_quality(_best(h))}."
    if not h.fair:
        line = (
            "This test is too hard: samples that lose an entry to it have fewer left than those "
            "to be filled."
        )
        if a.verdict == "kfmc":
            line += " But pairs of features lie on curves, which KFMC can follow."
        yield line


def _best(h: HeldOut) -> float:
    return min(h.linear_error, h.kfmc_error)


def _quality(error: float) -> str:
    if error < 0.1:
        return "close to the true values"
    if error < 0.35:
        return "good"
    if error < POOR:
        return "rough: on the right side of the mean, not exact"
    return "poor: little better than the mean"


def _structure(a: Advice) -> str:
    assert a.low_rank_rate is not None
    assert a.kfmc_rate is not None
    # Directions smaller than the error of the fills don't show.
    noisy = a.held_out is not None and _best(a.held_out) > NOISY
    certainty = "At least" if noisy else "About"
    linear = "more than all" if a.low_rank_rate >= 1 else f"over {_percent(a.low_rank_rate)}"
    curved = "more than all" if a.kfmc_rate >= 1 else f"about {_percent(a.kfmc_rate)}"
    return (
        f"{certainty} {a.latent_dimension} latent dimension(s); rank about {a.linear_rank}, in "
        f"feature space {a.feature_rank}. Rules of thumb ask for {linear} of the entries for "
        f"linear completion, {curved} for KFMC; {_percent(a.observed_rate)} are known."
    )


def _out_of_reach(a: Advice) -> Iterator[str]:
    if a.thin_samples:
        yield (
            f"{len(a.thin_samples)} sample(s) have fewer known entries than the {a.sample_needs} "
            f"needed and can't be relied on: {_named(a.thin_samples)}."
        )
    if a.thin_features:
        yield (
            f"{len(a.thin_features)} feature(s) have fewer known entries than the "
            f"{a.feature_needs} needed and can't be relied on: {_named(a.thin_features)}."
        )
    if a.separate_groups:
        groups = _listed(f"[{_listed(group)}]" for group in a.separate_groups)
        yield f"No sample connects these groups of features, so nothing relates them: {groups}."


def _set_aside(a: Advice) -> Iterator[str]:
    if a.unrelated_features:
        yield f"Filled no better than with their mean: {_listed(a.unrelated_features)}."
    if a.empty_samples:
        yield f"Samples without any known entry to go by: {_listed(a.empty_samples)}."
    if a.empty_features:
        yield f"Features without any known entry: {_listed(a.empty_features)}."
    if a.constant_features:
        yield f"Features with one value only, which tell nothing: {_listed(a.constant_features)}."
    if a.ignored_columns:
        yield f"Columns that are not numeric, left aside: {_listed(a.ignored_columns)}."


def _named(counts: Mapping[Any, int]) -> str:
    return _listed(f"{name} (has {number})" for name, number in counts.items())


def _listed(items: Iterable[Any]) -> str:
    texts = [str(item) for item in items]
    rest = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if part < 0.02 or 0.995 <= part < 1 else f"{100 * part:.0f} %"
