"""What was chosen, fitted to all entries and put together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import clip_missing
from hirank.models.mixture import Mixture
from hirank.models.row_models import RowModel
from hirank.models.stacking import Blend
from hirank.optim.trace import RefitFailed
from hirank.selection.candidates import (
    FAILURES,
    Bench,
    Tried,
    fit_factors,
    fit_means,
    fit_mixtures,
)
from hirank.selection.dictionary_path import Walker, Walks
from hirank.selection.dictionary_search import EXACT, MODERATE, PERFECT
from hirank.selection.refit_dictionary import Member, as_tried, members, unlearned
from hirank.selection.results import Plan

FEW_POINTS = 120
"""Points up to which a further start costs little."""
UPPER = (0.8, 0.85, 0.9, 0.95)
"""Quantiles of absolute errors by which two sets of fills are compared."""
STARTS, STARTS_IF_LARGE = 4, 2
"""Dictionaries that are averaged, if that is not given."""


@dataclass(frozen=True)
class Choice:
    """Candidates that were tried on a bench, and how much each counts."""

    bench: Bench
    plan: Plan
    candidates: list[Tried]
    weights: Array
    walker: Walker
    walks: Walks | None  # of the dictionary, which then is the last candidate


def fit(choice: Choice) -> tuple[Array, Blend, Member, Mixture | None]:
    """Fit what has weight to everything, and put it together."""
    bench, plan = choice.bench, choice.plan
    spreads = spreading(choice.candidates)
    fitted: list[tuple[str, float, Array, RowModel]] = []
    mixture: Mixture | None = None
    member: Member | None = None
    for one, weight in zip(choice.candidates, choice.weights.tolist(), strict=True):
        same: list[tuple[Array, RowModel]] = []
        if choice.walks is not None and one.name == "kernelized":
            wanted = _wanted(plan, choice.walks) if weight else 0
            dictionaries = _dictionaries(choice.walker, choice.walks, wanted)
            member = dictionaries[0]
            same = [(other.X, other.rows) for other in dictionaries]
        elif weight or one is spreads:
            try:
                same = _refit(bench, one, plan.n_starts or STARTS if weight else 1)
            except FAILURES as error:
                seconds = bench.record.seconds
                bench.record.notify(RefitFailed(one.name, str(one), str(error), seconds))
                continue
            if one is spreads:
                assert isinstance(same[0][1], Mixture)
                mixture = same[0][1]
        if weight:
            fitted += [(one.name, weight / len(same), *pair) for pair in same]
    fitted = fitted or [("column means", 1.0, *fit_means(bench))]
    kinds, shares, fills, parts = zip(*fitted, strict=True)
    blend = Blend(parts, np.array(shares) / sum(shares), kinds, plan.bounds)
    within = [clip_missing(plan.bounds, fill, bench.observed) for fill in fills]
    filled = blend.mean(within, bench.X, bench.observed)
    return filled, blend, member or unlearned(plan.recipes[0], filled, plan.bounds), mixture


def gain(choice: Choice) -> float:
    """How much less errors are, if several dictionaries are averaged that saw what was hidden.

    Found by doing so with half of the first fold and judging by the other half; two dictionaries
    tell what more would bring. On noisy tables there is next to nothing to gain, so it is not
    looked for. Half of what is found (in logarithms) is believed: it comes from few entries, and
    too short intervals are worse than too long ones.
    """
    bench, walks = choice.bench, choice.walks
    candidates, weights = choice.candidates, choice.weights
    if walks is None or not weights[-1] or bench.record.late:
        return 1.0
    if walks.recipe.n_components > MODERATE or not PERFECT < walks.error < EXACT:
        return 1.0
    rows, columns = np.nonzero(bench.folds[0])
    judged = np.zeros_like(bench.observed)
    judged[rows[::2], columns[::2]] = True
    half = replace(bench, observed=bench.observed & ~judged, folds=bench.folds[:1])
    wanted = _wanted(choice.plan, walks)
    found = _dictionaries(replace(choice.walker, bench=half), walks, min(wanted, 2))

    def size(fill: Array) -> float:
        fills = [*(one.fills[0] for one in candidates[:-1]), fill]
        return _upper((np.tensordot(weights, fills, axes=1) - bench.X)[judged])

    before = size(candidates[-1].fills[0])
    single = float(np.mean([size(one.X) ** 2 for one in found]))
    both = size(np.mean([one.X for one in found], axis=0)) ** 2
    # What k members share stays, the rest falls with 1/k: two tell both parts.
    alike = max(2 * both - single, 0.0)
    after = np.sqrt(alike + (single - alike) / wanted) if len(found) > 1 else np.sqrt(both)
    return float(np.sqrt(np.clip(after / before, 0.1, 1.0))) if before else 1.0


def _upper(residuals: Array) -> float:
    """The size of large errors: the geometric mean of quantiles."""
    sizes = np.quantile(np.abs(residuals), UPPER)
    return float(np.exp(np.log(sizes).mean())) if sizes.min() else 0.0


def _refit(bench: Bench, one: Tried, most: int) -> list[tuple[Array, RowModel]]:
    """A candidate that is no dictionary, fitted to everything, up to `most` times."""
    if one.name == "column means":
        return [fit_means(bench)]
    return (
        [fit_factors(bench, one)] if one.name == "low rank" else [*fit_mixtures(bench, one, most)]
    )


def _dictionaries(walker: Walker, walks: Walks, wanted: int) -> list[Member]:
    """Dictionaries fitted to everything, as many as are wanted.

    If nobody fills in by them, there is still one, which may be asked for coordinates.
    """
    try:
        return members(walker, walks, wanted) if wanted else [as_tried(walker, walks, 0)]
    except FAILURES as error:
        record = walker.bench.record
        event = RefitFailed("kernelized", "a dictionary", str(error), record.seconds)
        record.notify(event)
        return [as_tried(walker, walks, 0)]


def _wanted(plan: Plan, walks: Walks) -> int:
    """How many dictionaries are averaged."""
    large = walks.recipe.n_components > FEW_POINTS
    return plan.n_starts or (STARTS_IF_LARGE if large else STARTS)


def spreading(candidates: list[Tried]) -> Tried | None:
    """The candidate whose spreads are taken: the better of the Gaussian ones."""
    gaussian = [one for one in candidates if one.name in ("linear", "locally linear")]
    return min(gaussian, key=lambda one: one.error, default=None)
