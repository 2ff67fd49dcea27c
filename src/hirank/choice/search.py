"""The automatic choice: candidates are tried on hidden entries, weighed, and put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hirank.choice.blend import Blend, weigh
from hirank.choice.candidates import (
    Bench,
    Tried,
    fit_factors,
    fit_mixtures,
    try_factors,
    try_mixtures,
)
from hirank.choice.folds import folds
from hirank.choice.kernelized import Kernelized, Recipe, Walks, tried
from hirank.kernels import Array
from hirank.model.bounds import Bounds, clipped
from hirank.model.start import soft_impute
from hirank.model.workers import Workers
from hirank.solvers.fitted import Dictionary, RowModel
from hirank.solvers.loop import Options
from hirank.solvers.mixture import Mixture
from hirank.solvers.record import Recorder

FEW_POINTS = 120
"""Points up to which a further start costs little."""
STARTS, STARTS_IF_LARGE = 4, 2
"""Dictionaries that are averaged, if that is not given."""


@dataclass(frozen=True)
class Plan:
    """What the search may try."""

    recipes: Sequence[Recipe]  # of the smallest size; the first is the usual one
    most_components: int  # to which dictionaries may grow
    mix: bool  # whether other models than dictionaries take part
    n_starts: int | None  # dictionaries to average; None: as many as is worth it
    options: Options
    bounds: Bounds | None = None


@dataclass(frozen=True)
class HeldOut:
    """What the chosen blend filled in for hidden entries, h of them, and what they really were."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    truth: Array
    fill: Array
    fills: Array  # h x p; of the parts
    part_weights: NDArray[np.float64]  # p
    linear: Array  # of the best linear candidate
    spread: Array  # standard deviations that the mixture gives them; NaN without one
    known: NDArray[np.int_]  # entries that their samples had left


@dataclass(frozen=True)
class Chosen:
    """The models that a table is completed by, and how they came to be chosen."""

    X: Array  # n x v, completed
    blend: Blend
    dictionary: Dictionary
    mixture: Mixture | None
    results: list[tuple[Tried, float]]  # all candidates with their weights
    held_out: HeldOut | None
    first_fold: tuple[NDArray[np.bool_], Array] | None = field(repr=False)
    """The entries hidden in the first fold, and the table as completed without them, n x v."""


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
    sets = folds(observed, rng) if hidden is None else hidden
    bench = Bench(X, observed, sets, workers, record)
    others = _others(bench, plan)
    start = min(others, key=lambda one: one.error, default=None)
    starts = [soft_impute(X, seen) for seen in bench.seen()] if start is None else start.fills
    starts = [clipped(plan.bounds, F, o) for F, o in zip(starts, bench.seen(), strict=True)]
    kernelized = Kernelized(bench, starts, plan.options, plan.bounds, rng)
    rival = np.inf if start is None else start.error
    walks = kernelized.search(plan.recipes, plan.most_components, rival)
    candidates = [*_finalists(others), tried(walks[-1], bench)]
    fills = np.stack([bench.hidden(one.fills) for one in candidates], axis=1)
    weights = weigh(fills, bench.truth)
    X_filled, blend, dictionary, mixture = _fit(
        bench, plan, kernelized, walks[-1], candidates, weights
    )
    rejected = [one for one in others if not any(one is c for c in candidates)]
    rejected += [tried(one, bench) for one in walks[:-1]]
    results = [*((one, 0.0) for one in rejected), *zip(candidates, weights.tolist(), strict=True)]
    held_out = _held_out(bench, candidates, weights, others)
    first = np.tensordot(weights, np.stack([one.fills[0] for one in candidates]), axes=1)
    return Chosen(X_filled, blend, dictionary, mixture, results, held_out, (bench.folds[0], first))


def _others(bench: Bench, plan: Plan) -> list[Tried]:
    if not plan.mix:
        return []
    return [*try_mixtures(bench), *([] if bench.record.late else try_factors(bench))]


def _finalists(others: list[Tried]) -> list[Tried]:
    """The best of each kind."""
    names = dict.fromkeys(one.name for one in others)
    return [min((o for o in others if o.name == name), key=lambda o: o.error) for name in names]


def _fit(
    bench: Bench,
    plan: Plan,
    kernelized: Kernelized,
    walks: Walks,
    candidates: list[Tried],
    weights: NDArray[np.float64],
) -> tuple[Array, Blend, Dictionary, Mixture | None]:
    """Fit what has weight to everything, and put it together."""
    parts: list[RowModel] = []
    fills: list[Array] = []
    shares: list[float] = []
    kinds: list[str] = []
    mixture: Mixture | None = None
    X, observed = bench.X, bench.observed
    for one, weight in zip(candidates[:-1], weights, strict=False):
        if not weight and one is not _spreading(candidates):
            continue
        fitted: list[tuple[Array, RowModel]] = (
            [fit_factors(bench, one)]
            if one.name == "low rank"
            else [*fit_mixtures(bench, one, plan.n_starts or STARTS if weight else 1)]
        )
        if one is _spreading(candidates):
            assert isinstance(fitted[0][1], Mixture)
            mixture = fitted[0][1]
        if weight:
            kinds += [one.name] * len(fitted)
            fills += [clipped(plan.bounds, fill, observed) for fill, _ in fitted]
            parts += [rows for _, rows in fitted]
            shares += [float(weight) / len(fitted)] * len(fitted)
    members = _members(bench, plan, kernelized, walks, float(weights[-1]), fills, shares)
    if weights[-1]:
        fills += [fill for fill, _ in members]
        parts += [rows for _, rows in members]
        shares += [float(weights[-1]) / len(members)] * len(members)
        kinds += [candidates[-1].name] * len(members)
    blend = Blend(tuple(parts), np.array(shares), tuple(kinds), plan.bounds)
    return blend.mean(fills, X, observed), blend, members[0][1], mixture


def _spreading(candidates: list[Tried]) -> Tried | None:
    """The candidate whose spreads are taken: the better of the Gaussian ones."""
    gaussian = [one for one in candidates if one.name in ("linear", "locally linear")]
    return min(gaussian, key=lambda one: one.error, default=None)


def _members(
    bench: Bench,
    plan: Plan,
    kernelized: Kernelized,
    walks: Walks,
    weight: float,
    fills: list[Array],
    shares: list[float],
) -> list[tuple[Array, Dictionary]]:
    """Dictionaries fitted to everything, as many as are wanted."""
    if not weight:
        # Nobody fills in by it, but it may still be asked for coordinates.
        return [kernelized.as_tried(walks, 0)]
    large = walks.recipe.n_components > FEW_POINTS
    wanted = plan.n_starts or (STARTS_IF_LARGE if large else STARTS)
    members = [kernelized.fit(walks, fold) for fold in range(min(wanted, len(bench.folds)))]
    while len(members) < wanted and not bench.record.late:
        members.append(kernelized.another(walks, members[0][0]))
    return members


def _held_out(
    bench: Bench, candidates: list[Tried], weights: NDArray[np.float64], others: list[Tried]
) -> HeldOut:
    rows, columns = np.concatenate([np.argwhere(hidden) for hidden in bench.folds]).T
    known = np.concatenate(
        [
            seen.sum(axis=1)[np.nonzero(h)[0]]
            for seen, h in zip(bench.seen(), bench.folds, strict=True)
        ]
    )
    used = weights > 0
    fills = np.stack([bench.hidden(one.fills) for one in candidates], axis=1)
    linear = min(
        (one for one in others if one.name in ("linear", "low rank")),
        key=lambda one: one.error,
        default=None,
    )
    gaussian = _spreading(candidates)
    spread = np.full(len(rows), np.nan)
    if gaussian is not None:
        spreads = [
            level.mixture.conditional(bench.X, seen)[1]
            for level, seen in zip(gaussian.state, bench.seen(), strict=True)
        ]
        spread = bench.hidden(spreads)
    return HeldOut(
        rows,
        columns,
        bench.truth,
        fills @ weights,
        fills[:, used],
        weights[used],
        np.full(len(rows), np.nan) if linear is None else bench.hidden(linear.fills),
        spread,
        known,
    )

