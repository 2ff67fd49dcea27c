"""The automatic choice: candidates are tried on hidden entries, weighed, and put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import clip_missing
from hirank.core.init import soft_impute
from hirank.core.masking import make_folds
from hirank.core.threads import Workers
from hirank.models.em import EMConfig, fit_mixture, independent_gaussian
from hirank.models.stacking import Blend, weigh
from hirank.optim.trace import Monitor, Phase, PhaseStarted
from hirank.selection.candidates import (
    FAILURES,
    Bench,
    Tried,
    failed,
    try_factors,
    try_means,
    try_mixtures,
)
from hirank.selection.dictionary_path import Walker, Walks, tried
from hirank.selection.dictionary_search import PERFECT, Kernelized
from hirank.selection.refit import Choice, fit, gain, spreading
from hirank.selection.refit_dictionary import unlearned
from hirank.selection.results import Chosen, HeldOut, Plan
from hirank.warn import warn_user


def search(
    X: Array,
    observed: BoolArray,
    plan: Plan,
    workers: Workers,
    record: Monitor,
    rng: np.random.Generator,
    hidden: list[BoolArray] | None = None,
) -> Chosen:
    """Choose models for a table, n x v, by its own entries, and complete it.

    `hidden` are sets of entries to judge by, if not the usual ones.
    """
    X = np.where(observed, X, 0)
    bench = Bench(X, observed, hidden or make_folds(observed, rng), workers, record)
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
    walker = Walker(bench, plan.options, plan.bounds, rng)
    kernelized = Kernelized(walker, _starts(bench, plan, start))
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
    record.notify(PhaseStarted(Phase.REFIT, record.seconds))
    best = walks[-1] if walks else None
    choice = Choice(bench, plan, candidates, weights, kernelized.walker, best)
    filled, blend, member, mixture = fit(choice)
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
        gain=gain(choice),
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
    return [clip_missing(plan.bounds, fill, o) for fill, o in zip(fills, seen, strict=True)]


def _finalists(others: list[Tried]) -> list[Tried]:
    """The best of each kind."""
    names = dict.fromkeys(one.name for one in others)
    return [min((o for o in others if o.name == name), key=lambda o: o.error) for name in names]


def _held_out(bench: Bench, candidates: list[Tried], weights: Array) -> HeldOut:
    rows, columns = np.concatenate([np.argwhere(hidden) for hidden in bench.folds]).T
    fills = np.stack([bench.hidden(one.fills) for one in candidates], axis=1)
    straight = [one for one in candidates if one.name in ("linear", "low rank")]
    linear = min(straight, key=lambda one: one.error, default=None)
    gaussian = spreading(candidates)
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
    mixture, noise = independent_gaussian(bench.X, bench.observed), EMConfig().noise_levels[0]
    if not failures:
        mixture = fit_mixture(
            mixture,
            noise,
            bench.X,
            bench.observed,
            workers=bench.workers,
            monitor=bench.record,
        ).mixture
    name, settings = "linear", {"n_components": 1, "noise": noise}
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
