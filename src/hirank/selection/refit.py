"""The refit of selected models to all entries, and what averaging them gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import clip_missing
from hirank.models.dictionary import RowModel
from hirank.models.mixture import Mixture
from hirank.models.stacking import Stack
from hirank.optim.trace import Phase, PhaseStarted, RefitFailed
from hirank.selection.candidates import ColumnMeans, GaussianMixtures
from hirank.selection.dictionary_search import Dictionaries, default_n_models
from hirank.selection.trial import FIT_FAILURES, Refit, SearchData, Trial

UPPER_QUANTILES = (0.8, 0.85, 0.9, 0.95)
"""Quantiles of absolute errors by which the sizes of large errors are compared."""


class Stacked(NamedTuple):
    """The stack of refitted models."""

    filled: Array  # n x v
    stack: Stack
    mixture: Mixture | None  # gives the conditional deviations of imputed values


def gives_deviations(trials: Sequence[Trial]) -> Trial | None:
    """Return the Gaussian or mixture with the lowest loss: its deviations are used."""
    gaussian = [one for one in trials if isinstance(one.candidate, GaussianMixtures)]
    return min(gaussian, key=lambda one: one.loss, default=None)


def refit(trials: Sequence[Trial], weights: Array, data: SearchData) -> Stacked:
    """Fit the trials with a positive weight to all observed entries, and stack them."""
    data.monitor.notify(PhaseStarted(Phase.REFIT, data.monitor.seconds))
    with_deviations = gives_deviations(trials)
    parts: list[tuple[str, float, Array, RowModel]] = []
    mixture: Mixture | None = None
    for trial, weight in zip(trials, weights.tolist(), strict=True):
        if not weight and trial is not with_deviations:
            continue
        try:
            refits = trial.candidate.refit(trial, data, data.n_init if weight else 1)
        except FIT_FAILURES as error:
            data.monitor.notify(
                RefitFailed(trial.family, trial.label, str(error), data.monitor.seconds)
            )
            continue
        if trial is with_deviations and isinstance(refits[0].model, Mixture):
            mixture = refits[0].model
        if weight:
            parts += [(trial.family, weight / len(refits), *one) for one in refits]
    if not parts:
        parts = [("column means", 1.0, *one) for one in ColumnMeans().refit(None, data, 1)]
    families, shares, filled, models = zip(*parts, strict=True)
    stack = Stack(models, np.array(shares) / sum(shares), families, data.bounds)
    within = [clip_missing(data.bounds, X, data.observed) for X in filled]
    return Stacked(stack.average(within, data.X, data.observed), stack, mixture)


def averaging_factor(trials: Sequence[Trial], weights: Array, data: SearchData) -> float:
    """Return the errors of averaged dictionaries over those of the one that was scored.

    It is measured by refits that see half of the first fold and are scored on the other half; two
    dictionaries suffice to extrapolate to more. On noisy tables there is next to nothing to gain,
    so nothing is measured. Only half of the gain (in logarithms) is taken: it comes from few
    entries, and intervals that are too short are worse than those that are too long
    (docs/notes/intervals.md).
    """
    trial, config = trials[-1], data.config.dictionary
    if not isinstance(trial.candidate, Dictionaries) or not weights[-1] or data.monitor.late:
        return 1.0
    path = trial.state.path
    exact = config.perfect_error < path.loss < config.exact_error
    if path.spec.n_components > config.max_restart_points or not exact:
        return 1.0
    rows, columns = np.nonzero(data.folds[0])
    scored = np.zeros_like(data.observed)
    scored[rows[::2], columns[::2]] = True
    half = replace(data, observed=data.observed & ~scored, folds=data.folds[:1])
    n_models = data.n_init or default_n_models(path, config)
    refits: list[Refit] = trial.candidate.refit(trial, half, min(n_models, 2))

    def size(imputed: Array) -> float:
        tables = [*(one.filled[0] for one in trials[:-1]), imputed]
        return _upper_size((np.tensordot(weights, tables, axes=1) - data.X)[scored])

    before = size(trial.filled[0])
    single = float(np.mean([size(one.filled) ** 2 for one in refits]))
    both = size(np.mean([one.filled for one in refits], axis=0)) ** 2
    # The part of the error that k dictionaries share stays; the rest falls with 1/k.
    shared = max(2 * both - single, 0.0)
    after = np.sqrt(shared + (single - shared) / n_models) if len(refits) > 1 else np.sqrt(both)
    return float(np.sqrt(np.clip(after / before, 0.1, 1.0))) if before else 1.0


def _upper_size(residuals: Array) -> float:
    """Return the size of large errors: the geometric mean of quantiles."""
    sizes = np.quantile(np.abs(residuals), UPPER_QUANTILES)
    return float(np.exp(np.log(sizes).mean())) if sizes.min() else 0.0
