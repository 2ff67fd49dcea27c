"""The automatic choice: candidates are tried on hidden entries, weighed, and put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from hirank.choice.blend import Blend, weigh
from hirank.choice.candidates import (
    FAILURES,
    Bench,
    Tried,
    failed,
    fit_factors,
    fit_means,
    fit_mixtures,
    try_factors,
    try_means,
    try_mixtures,
)
from hirank.choice.folds import folds
from hirank.choice.kernelized import (
    EXACT,
    MODERATE,
    PERFECT,
    Kernelized,
    Member,
    Recipe,
    Walks,
    tried,
    unlearned,
)
from hirank.kernels import Array
from hirank.model.bounds import Bounds, clipped
from hirank.model.start import soft_impute
from hirank.model.workers import Workers
from hirank.solvers.fitted import Dictionary, RowModel
from hirank.solvers.loop import Options
from hirank.solvers.mixture import Mixture
from hirank.solvers.mixture_fit import NOISE, Learner, independent
from hirank.solvers.record import Recorder
from hirank.warn import warn_user

FEW_POINTS = 120
"""Points up to which a further start costs little."""
UPPER = (0.8, 0.85, 0.9, 0.95)
"""Quantiles of absolute errors by which two sets of fills are compared."""
STARTS, STARTS_IF_LARGE = 4, 2
"""Dictionaries that are averaged, if that is not given."""


@dataclass(frozen=True)
class Plan:
    """What the search may try."""

    recipes: Sequence[Recipe]  # of the smallest size; the first is the usual one
    most_components: int  # to which dictionaries may grow
    mix: bool  # whether other models than dictionaries take part
    n_starts: int | None  # models of a kind to average; None: as many as is worth it
    options: Options
    bounds: Bounds | None = None


@dataclass(frozen=True)
class HeldOut:
    """What the chosen blend filled in for hidden entries, h of them, and what they really were."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    truth: Array
    fill: Array
    fills: Array  # h x c; of the candidates with weight
    linear: Array  # of the best linear candidate; NaN without one
    spread: Array  # standard deviations that the mixture gives them; 0 without one

    def first(self, h: int) -> HeldOut:
        """Only the first entries."""
        return HeldOut(**{f.name: getattr(self, f.name)[:h] for f in fields(self)})


@dataclass(frozen=True)
class Chosen:
    """The models that a table is completed by, and how they came to be chosen."""

    X: Array  # n x v, completed
    blend: Blend
    dictionary: Dictionary
    mixture: Mixture | None
    objective: float  # of the dictionary
    results: list[tuple[Tried, float]]  # all candidates with their weights
    held_out: HeldOut | None
    first_fold: tuple[NDArray[np.bool_], Array] = field(repr=False)
    """The entries hidden in the first fold, and the table as completed without them, n x v."""
    gain: float = 1.0
    """Times the errors at hidden entries: what to expect of models fitted to everything."""


def search(
    X: Array,
    observed: NDArray[np.bool_],
    plan: Plan,
    workers: Workers,
    record: Recorder,
    rng: np.random.Generator,
    hidden: list[NDArray[np.bool_]] | None = None,
) -> Chosen:
    """Choose models for a table, n x v, by its own entries, and complete it.

    `hidden` are sets of entries to judge by, if not the usual ones.
    """
    X = np.where(observed, X, 0)
    bench = Bench(X, observed, hidden or folds(observed, rng), workers, record)
    if not bench.folds:
        if not observed.all():
            warn_user(
                f"Only {int(observed.sum())} entries are observed, too few to choose a model by: a "
                "cautious linear one was taken. Treat its fills as guesses."
            )
        return _unjudged(bench, plan)
    others = _others(bench, plan)
    working = [one for one in others if np.isfinite(one.error)]
    start = min(working, key=lambda one: one.error, default=None)
    rival = np.inf if start is None else start.error
    kernelized = Kernelized(bench, _starts(bench, plan, start), plan.options, plan.bounds, rng)
    walks: list[Walks] = []
    try:
        if start is None or not (record.late or start.error < PERFECT):
            walks = kernelized.search(plan.recipes, plan.most_components, rival)
    except FAILURES as error:
        others.append(failed("kernelized", error))
    if not walks and all(one.name == "column means" for one in working):
        reasons = "; ".join(f"{one.name}: {one.failure}" for one in others)
        warn_user(
            f"No model could be fitted ({reasons}), so column means were filled in. Check the "
            "table for extreme values, or use scale='robust'."
        )
        return _unjudged(bench, plan, others)
    candidates = [*_finalists(working), *(tried(one, bench) for one in walks[-1:])]
    weights = weigh(np.stack([bench.hidden(one.fills) for one in candidates], axis=1), bench.truth)
    record.say("fitting the best to all entries")
    filled, blend, member, mixture = _fit(bench, plan, kernelized, walks, candidates, weights)
    rejected = [one for one in others if not any(one is c for c in candidates)]
    rejected += [tried(one, bench) for one in walks[:-1]]
    first = np.tensordot(weights, np.stack([one.fills[0] for one in candidates]), axes=1)
    return Chosen(
        X=filled,
        blend=blend,
        dictionary=member.rows,
        mixture=mixture,
        objective=member.objective,
        results=[
            *((one.told(), 0.0) for one in rejected),
            *(
                (one.told(), weight)
                for one, weight in zip(candidates, weights.tolist(), strict=True)
            ),
        ],
        held_out=_held_out(bench, candidates, weights),
        first_fold=(bench.folds[0], first),
        gain=_gain(bench, plan, kernelized, walks, candidates, weights),
    )


def _others(bench: Bench, plan: Plan) -> list[Tried]:
    """Candidates that are no dictionaries."""
    kinds: list[tuple[str, Callable[[Bench], list[Tried]]]] = [
        ("column means", try_means),
        ("linear", try_mixtures),
        ("low rank", try_factors),
    ]
    found: list[Tried] = []
    for name, attempt in kinds if plan.mix else []:
        if len(found) > 1 and bench.record.late:
            break
        try:
            found += attempt(bench)
        except FAILURES as error:
            found.append(failed(name, error))
    return found


def _starts(bench: Bench, plan: Plan, best: Tried | None) -> list[Array]:
    """Where dictionaries start, one table per fold."""
    seen = bench.seen()
    fills = [soft_impute(bench.X, o) for o in seen] if best is None else best.fills
    return [clipped(plan.bounds, fill, o) for fill, o in zip(fills, seen, strict=True)]


def _finalists(others: list[Tried]) -> list[Tried]:
    """The best of each kind."""
    names = dict.fromkeys(one.name for one in others)
    return [min((o for o in others if o.name == name), key=lambda o: o.error) for name in names]


def _spreading(candidates: list[Tried]) -> Tried | None:
    """The candidate whose spreads are taken: the better of the Gaussian ones."""
    gaussian = [one for one in candidates if one.name in ("linear", "locally linear")]
    return min(gaussian, key=lambda one: one.error, default=None)


def _fit(
    bench: Bench,
    plan: Plan,
    kernelized: Kernelized,
    walks: list[Walks],
    candidates: list[Tried],
    weights: NDArray[np.float64],
) -> tuple[Array, Blend, Member, Mixture | None]:
    """Fit what has weight to everything, and put it together."""
    fitted: list[tuple[str, float, Array, RowModel]] = []
    mixture: Mixture | None = None
    member: Member | None = None
    for one, weight in zip(candidates, weights.tolist(), strict=True):
        same: list[tuple[Array, RowModel]] = []
        if one.name == "kernelized":
            wanted = _wanted(plan, walks[-1])
            members = _members(bench, wanted, kernelized, walks[-1], weight)
            member = members[0]
            same = [(other.X, other.rows) for other in members]
        elif weight or one is _spreading(candidates):
            try:
                same = _refit(bench, one, plan.n_starts or STARTS if weight else 1)
            except FAILURES as error:
                bench.record.say(f"{one} could not be fitted to all entries: {error}")
                continue
            if one is _spreading(candidates):
                assert isinstance(same[0][1], Mixture)
                mixture = same[0][1]
        if weight:
            fitted += [(one.name, weight / len(same), *pair) for pair in same]
    fitted = fitted or [("column means", 1.0, *fit_means(bench))]
    kinds, shares, fills, parts = zip(*fitted, strict=True)
    blend = Blend(parts, np.array(shares) / sum(shares), kinds, plan.bounds)
    within = [clipped(plan.bounds, fill, bench.observed) for fill in fills]
    filled = blend.mean(within, bench.X, bench.observed)
    return filled, blend, member or unlearned(plan.recipes[0], filled, plan.bounds), mixture


def _gain(
    bench: Bench,
    plan: Plan,
    kernelized: Kernelized,
    walks: list[Walks],
    candidates: list[Tried],
    weights: NDArray[np.float64],
) -> float:
    """How much less errors are, if several dictionaries are averaged that saw what was hidden.

    Found by doing so with half of the first fold and judging by the other half; two dictionaries
    tell what more would bring. On noisy tables
    there is next to nothing to gain, so it is not looked for. Half of what is found (in logarithms)
    is believed: it comes from few entries, and too short intervals are worse than too long ones.
    """
    share = float(weights[-1]) if walks else 0.0
    if not share or bench.record.late or not PERFECT < walks[-1].error < EXACT:
        return 1.0
    if walks[-1].recipe.n_components > MODERATE:
        return 1.0
    rows, columns = np.nonzero(bench.folds[0])
    judged = np.zeros_like(bench.observed)
    judged[rows[::2], columns[::2]] = True
    half = replace(bench, observed=bench.observed & ~judged, folds=bench.folds[:1])
    wanted = _wanted(plan, walks[-1])
    members = _members(half, min(wanted, 2), kernelized.on(half), walks[-1], share)

    def size(fill: Array) -> float:
        fills = [*(one.fills[0] for one in candidates[:-1]), fill]
        return _upper((np.tensordot(weights, fills, axes=1) - bench.X)[judged])

    before = size(candidates[-1].fills[0])
    single = float(np.mean([size(one.X) ** 2 for one in members]))
    both = size(np.mean([one.X for one in members], axis=0)) ** 2
    # What k members share stays, the rest falls with 1/k: two tell both parts.
    alike = max(2 * both - single, 0.0)
    after = np.sqrt(alike + (single - alike) / wanted) if len(members) > 1 else np.sqrt(both)
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


def _wanted(plan: Plan, walks: Walks) -> int:
    """How many dictionaries are averaged."""
    large = walks.recipe.n_components > FEW_POINTS
    return plan.n_starts or (STARTS_IF_LARGE if large else STARTS)


def _members(
    bench: Bench, wanted: int, kernelized: Kernelized, walks: Walks, weight: float
) -> list[Member]:
    """Dictionaries fitted to everything, as many as are wanted."""
    if not weight:
        # Nobody fills in by it, but it may still be asked for coordinates.
        return [kernelized.as_tried(walks, 0)]
    try:
        return kernelized.members(walks, wanted)
    except FAILURES as error:
        bench.record.say(f"a dictionary could not be fitted to all entries: {error}")
        return [kernelized.as_tried(walks, 0)]


def _held_out(bench: Bench, candidates: list[Tried], weights: NDArray[np.float64]) -> HeldOut:
    rows, columns = np.concatenate([np.argwhere(hidden) for hidden in bench.folds]).T
    fills = np.stack([bench.hidden(one.fills) for one in candidates], axis=1)
    straight = [one for one in candidates if one.name in ("linear", "low rank")]
    linear = min(straight, key=lambda one: one.error, default=None)
    gaussian = _spreading(candidates)
    spread = np.zeros(len(rows))
    if gaussian is not None:
        levels = zip(gaussian.state, bench.seen(), strict=True)
        spread = bench.hidden([one.mixture.conditional(bench.X, o)[1] for one, o in levels])
    return HeldOut(
        rows=rows,
        columns=columns,
        truth=bench.truth,
        fill=fills @ weights,
        fills=fills[:, weights > 0],
        linear=np.full(len(rows), np.nan) if linear is None else bench.hidden(linear.fills),
        spread=spread,
    )


def _unjudged(bench: Bench, plan: Plan, failures: Sequence[Tried] = ()) -> Chosen:
    """One Gaussian, taken without a trial: for tables too small, or too wild, for more.

    After failures its features have nothing to do with each other, so that it fills in means.
    """
    mixture = independent(bench.X, bench.observed)
    if not failures:
        learner = Learner(bench.X, bench.observed, bench.workers, bench.record)
        mixture = learner.settle(mixture, NOISE[0]).mixture
    name, settings = "linear", {"n_components": 1, "noise": NOISE[0]}
    if failures:
        name, settings = "column means", {"n_components": 0}
    blend = Blend((mixture,), np.ones(1), (name,), plan.bounds)
    filled = blend.complete(bench.X, bench.observed)
    member = unlearned(plan.recipes[0], filled, plan.bounds)
    nothing = np.zeros(bench.observed.shape, bool)
    taken = Tried(name, settings, [], np.nan, bench.record.seconds, None)
    return Chosen(
        X=filled,
        blend=blend,
        dictionary=member.rows,
        mixture=mixture,
        objective=member.objective,
        results=[*((one, 0.0) for one in failures), (taken, 1.0)],
        held_out=None,
        first_fold=(nothing, filled),
    )
