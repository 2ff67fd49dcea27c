"""The search: families are compared on held-out entries, stacked, and refitted to all entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.core.masking import MaskingConfig, make_folds
from hirank.core.missingness import (
    Folds,
    make_pattern_folds,
    missing_in_blocks,
    missing_in_runs,
    share_unlike,
)
from hirank.core.threads import Workers
from hirank.exceptions import FewEntriesWarning, NoModelWarning, warn
from hirank.models.em import IncompleteTable, fit_mixture, independent_gaussian
from hirank.models.in_time import complete_in_time
from hirank.models.stacking import Stack, stacking_weights
from hirank.models.timeline import Timeline
from hirank.optim.path import SolverConfig
from hirank.optim.trace import Monitor, Phase, PhaseStarted
from hirank.selection.candidates import ColumnMeans, FactorAnalysis, GaussianMixtures, LowRank
from hirank.selection.config import SearchConfig
from hirank.selection.dictionary_search import Dictionaries
from hirank.selection.low_rank_kernels import LowRankKernels
from hirank.selection.narrow_tables import find_exact
from hirank.selection.noise_level import is_far_from_linear, only_noise_left
from hirank.selection.refit import gives_deviations, refit
from hirank.selection.routed import Routed
from hirank.selection.significance import beats_constants
from hirank.selection.temporal import make_gap_folds, with_smoother
from hirank.selection.trial import (
    FIT_FAILURES,
    Candidate,
    HeldOut,
    SearchData,
    SearchResult,
    Selected,
    Trial,
    TrialResult,
)

CANDIDATES: tuple[Candidate, ...] = (
    ColumnMeans(),
    GaussianMixtures(),
    FactorAnalysis(),
    LowRank(),
    LowRankKernels(),
    Routed(),
    Dictionaries(),
)
"""The families, cheapest first. A new family is one class and one entry here."""
LINEAR = (FactorAnalysis, LowRank)
"""Families that are not tried where a mixture is far better than one Gaussian."""
CURVED = (LowRankKernels, Routed, Dictionaries)
"""Families that are not tried where a linear model leaves only noise: the last of all."""


def search(
    X: Array,
    observed: BoolArray,
    *,
    config: SearchConfig,
    solver: SolverConfig,
    monitor: Monitor,
    rng: np.random.Generator,
    n_init: int | None = None,
    bounds: Bounds | None = None,
    means: Array | None = None,
    spread: Array | None = None,
    timeline: Timeline | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
) -> Selected:
    """Select models for a scaled table on its own entries, and impute the table.

    Parameters
    ----------
    X : n x v
        Values at missing entries are not used.
    observed : bool array, n x v
    config : SearchConfig
    solver : SolverConfig
        Of dictionaries.
    monitor : Monitor
    rng : Generator
    n_init : int, optional
        Models of a family whose imputed values are averaged.
    bounds : Bounds, optional
        Of imputed values, in scaled units.
    means : v, optional
        Column means in scaled units, to which errors are relative; 0 by default.
    spread : v, optional
        Spread of each feature in units of the data; 1 by default. Features may share a unit.
    timeline : Timeline, optional
        The rows follow each other in time. Imputed values are those of the stack; the smoother that
        is returned combines them with neighbors in time.
    candidates : sequence of Candidate
        The families to compare, cheapest first.
    """
    rows = _sample_rows(len(X), timeline, config.max_rows, rng)
    x, seen = np.where(observed, X, 0)[rows], observed[rows]
    timeline = None if timeline is None else timeline.take(rows)
    with Workers() as workers:
        folds = _hold_out(seen, timeline, rng, config.masking)
        data = SearchData(
            X=x,
            observed=seen,
            folds=folds.masks,
            judged=folds.judged,
            unlike=0.0 if timeline is not None else share_unlike(seen, config.masking),
            means=np.zeros(x.shape[1]) if means is None else means,
            spread=np.ones(x.shape[1]) if spread is None else spread,
            config=config,
            solver=solver,
            n_init=n_init,
            bounds=bounds,
            workers=workers,
            monitor=monitor,
            rng=rng,
        )
        selected, first_fold = _select(data, candidates)
    if timeline is not None:
        selected = with_smoother(timeline, data, selected, first_fold)
    return _impute_all_rows(X, observed, rows, selected, monitor)


def _sample_rows(
    n: int, timeline: Timeline | None, max_rows: int, rng: np.random.Generator
) -> IntArray:
    """Return the rows to fit on: all, or some at random, or stretches of time from the middle."""
    if timeline is not None:
        return timeline.middle(max_rows)
    return np.arange(n) if n <= max_rows else np.sort(rng.choice(n, max_rows, replace=False))


def _hold_out(
    observed: BoolArray,
    timeline: Timeline | None,
    rng: np.random.Generator,
    config: MaskingConfig,
) -> Folds:
    """Return the entries to hold out, n x v: they are missing as the table's own values are."""
    if timeline is None and missing_in_runs(observed, config):
        # Rows next to each other miss the same features; held-out entries must be like that.
        timeline = Timeline(np.arange(len(observed), dtype=np.float64))
    if timeline is None and missing_in_blocks(observed, config):
        return make_pattern_folds(observed, rng, config=config)
    masks = [] if timeline is None else make_gap_folds(timeline, observed, rng, config)
    masks = masks or make_folds(observed, rng, config=config)
    return Folds(masks, sum(masks, np.zeros(observed.shape, bool)))


def _select(data: SearchData, candidates: Sequence[Candidate]) -> tuple[Selected, Array]:
    """Compare, stack and refit; also return the table of the first fold as it was imputed."""
    if not data.folds:
        if not data.observed.all():
            warn(FewEntriesWarning(int(data.observed.sum())))
        return _without_selection(data)
    trials = _run_trials(data, candidates)
    working = [trial for trial in trials if np.isfinite(trial.loss)]
    if all(isinstance(trial.candidate, ColumnMeans) for trial in working):
        warn(NoModelWarning(tuple((one.family, one.failure) for one in trials)))
        return _without_selection(data, trials)
    exact = find_exact([trial for trial in working if not trial.rejected], data)
    finalists = _best_of_each_family(working, exact)
    if exact is None:
        weights = _weigh(finalists, data)
    else:
        weights = np.array([float(one is exact) for one in finalists])
    filled, spread, stack, mixture, factor = refit(finalists, weights, data)
    others = [trial for trial in trials if not any(trial is one for one in finalists)]
    results = [
        *(trial.result(0.0) for trial in others),
        *(trial.result(w) for trial, w in zip(finalists, weights.tolist(), strict=True)),
    ]
    result = SearchResult(tuple(results), _held_out(finalists, weights, data), data.unlike)
    first_fold = np.tensordot(weights, np.stack([one.filled[0] for one in finalists]), axes=1)
    return Selected(filled, spread, stack, mixture, None, result, factor), first_fold


def _run_trials(data: SearchData, candidates: Sequence[Candidate]) -> list[Trial]:
    """Return the trials of all families, as far as the time limit allows."""
    trials: list[Trial] = []
    for candidate in candidates:
        if len(trials) > 1 and data.monitor.late:
            break
        working = [trial for trial in trials if np.isfinite(trial.loss) and not trial.rejected]
        best = min(working, key=lambda one: one.loss, default=None)
        if isinstance(candidate, CURVED) and only_noise_left(working, data):
            break
        if isinstance(candidate, LINEAR) and is_far_from_linear(working, data.config.mixture_gain):
            continue
        try:
            trials.extend(candidate.trials(data, best))  # keeps those before a failure
        except FIT_FAILURES as error:
            trials.append(Trial.failed(candidate, error))
    return trials


def _best_of_each_family(trials: Sequence[Trial], exact: Trial | None = None) -> list[Trial]:
    """Return the trial with the lowest loss of each family; an exact one represents its own."""
    preferred = [trial for trial in trials if not trial.rejected]
    families = dict.fromkeys(trial.family for trial in preferred)
    return [
        exact
        if exact is not None and exact.family == family
        else min((trial for trial in preferred if trial.family == family), key=lambda one: one.loss)
        for family in families
    ]


def _weigh(trials: Sequence[Trial], data: SearchData) -> Array:
    """Return the stacking weights of trials; column means have all if nothing is better."""
    imputed = np.stack([data.at_held_out(one.filled) for one in trials], axis=1)
    weights = stacking_weights(imputed, data.truth)
    is_means = np.array([isinstance(one.candidate, ColumnMeans) for one in trials])
    if not is_means.any():
        return weights
    rows, columns = np.concatenate([np.argwhere(held_out) for held_out in data.folds]).T
    medians = np.nanmedian(np.where(data.observed, data.X, np.nan), axis=0)[columns]
    means = imputed[:, np.argmax(is_means)]
    is_better = beats_constants(imputed @ weights, data.truth, means, medians, rows)
    return weights if is_better else is_means.astype(np.float64)


def _held_out(trials: Sequence[Trial], weights: Array, data: SearchData) -> HeldOut:
    """Return the held-out entries by which errors are judged, as all trials imputed them."""
    rows, columns = np.concatenate([np.argwhere(held_out) for held_out in data.folds]).T
    judged = data.judged[rows, columns]
    imputed = np.stack([data.at_held_out(one.filled) for one in trials], axis=1)
    linear = min((one for one in trials if one.linear), key=lambda one: one.loss, default=None)
    gaussian = gives_deviations(trials)
    deviation = np.zeros(len(rows))
    if gaussian is not None:
        fits = zip(gaussian.state, data.training, strict=True)
        deviation = data.at_held_out([fit.model.conditional(data.X, o)[1] for fit, o in fits])
    return HeldOut(
        rows=rows,
        columns=columns,
        truth=data.truth,
        imputed=imputed @ weights,
        by_family=imputed[:, weights > 0],
        linear=np.full(len(rows), np.nan) if linear is None else data.at_held_out(linear.filled),
        deviation=deviation,
    ).take(judged)


def _without_selection(data: SearchData, failed: Sequence[Trial] = ()) -> tuple[Selected, Array]:
    """Fit one strongly regularized Gaussian.

    Column means take its place if all families have failed, or if no feature varies.
    """
    config = data.config.mixture
    noise = config.noise_levels[0]
    mixture = independent_gaussian(data.X, data.observed)
    params: dict[str, str | int | float] = {"n_components": 0}
    family = label = ColumnMeans.family
    if not failed and data.X.shape[1]:
        family, label = GaussianMixtures.family, "one Gaussian"
        params = {"n_components": 1, "noise": noise}
        mixture = fit_mixture(
            mixture,
            noise,
            IncompleteTable(data.X, data.observed),
            workers=data.workers,
            monitor=data.monitor,
            config=config,
        ).model
    stack = Stack((mixture,), np.ones(1), (family,), data.bounds)
    filled = stack.complete(data.X, data.observed)
    taken = TrialResult(family, label, params, np.nan, np.nan, data.monitor.seconds, 1.0)
    result = SearchResult((*(trial.result(0.0) for trial in failed), taken), None)
    return Selected(filled, np.zeros(filled.shape), stack, mixture, None, result, 1.0), filled


def _impute_all_rows(
    X: Array, observed: BoolArray, rows: IntArray, selected: Selected, monitor: Monitor
) -> Selected:
    """Return the selection with the table of all rows, those that were left out included."""
    filled, spread = np.where(observed, X, 0), np.zeros(X.shape)
    filled[rows], spread[rows] = selected.filled, selected.spread
    rest = np.any(~observed, axis=1)
    rest[rows] = False
    if rest.any():
        monitor.notify(PhaseStarted(Phase.OUT_OF_SAMPLE, monitor.seconds, int(rest.sum())))
        filled[rest], spread[rest] = complete_in_time(
            selected.stack, filled[rest], observed[rest], monitor
        )
    result = selected.result.at_rows(rows)
    return selected._replace(filled=filled, spread=spread, result=result)
