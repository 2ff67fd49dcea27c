"""The refit of selected models to all entries, and what averaging them gains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import clip_missing
from hirank.models.dictionary import RowModel
from hirank.models.factor_analysis import GaussianModel
from hirank.models.stacking import Stack
from hirank.optim.trace import Phase, PhaseStarted, RefitFailed
from hirank.selection.candidates import ColumnMeans, FactorAnalysis, GaussianMixtures
from hirank.selection.dictionary_search import Dictionaries
from hirank.selection.trial import FIT_FAILURES, Refit, SearchData, Trial

UPPER_QUANTILES = (0.8, 0.85, 0.9, 0.95)
"""Quantiles of absolute errors by which the sizes of large errors are compared."""


class Stacked(NamedTuple):
    """The stack of refitted models."""

    filled: Array  # n x v
    spread: Array  # n x v; how far the families are apart
    stack: Stack
    mixture: GaussianModel | None  # gives the conditional deviations of imputed values
    factor: float = 1.0  # errors of the stack over those of models that are not averaged


def gives_deviations(trials: Sequence[Trial]) -> Trial | None:
    """Return the Gaussian, mixture or factor analysis with the lowest loss.

    The conditional deviations of this model are used.
    """
    families = (GaussianMixtures, FactorAnalysis)
    gaussian = [one for one in trials if isinstance(one.candidate, families)]
    return min(gaussian, key=lambda one: one.loss, default=None)


def refit(trials: Sequence[Trial], weights: Array, data: SearchData) -> Stacked:
    """Fit the trials with a positive weight to all observed entries, and stack them."""
    data.monitor.notify(PhaseStarted(Phase.REFIT, data.monitor.seconds))
    with_deviations = gives_deviations(trials)
    parts: list[tuple[str, float, Array, RowModel]] = []
    factor = 1.0
    mixture: GaussianModel | None = None
    for trial, weight in zip(trials, weights.tolist(), strict=True):
        if not weight and trial is not with_deviations:
            continue
        try:
            refits = trial.candidate.refit(trial, data, data.n_init if weight else 1)
            data.refits[id(trial)] = refits
        except FIT_FAILURES as error:
            data.monitor.notify(
                RefitFailed(trial.family, trial.label, str(error), data.monitor.seconds)
            )
            continue
        if trial is with_deviations and isinstance(refits[0].model, GaussianModel):
            mixture = refits[0].model
        if weight:
            parts += [(trial.family, weight / len(refits), *one) for one in refits]
            factor *= _averaging_factor(trial, weight, refits, data)
    if not parts:
        parts = [("column means", 1.0, *one) for one in ColumnMeans().refit(None, data, 1)]
    families, shares, filled, models = zip(*parts, strict=True)
    stack = Stack(models, np.array(shares) / sum(shares), families, data.bounds)
    within = [clip_missing(data.bounds, X, data.observed) for X in filled]
    average = stack.average(within, data.X, data.observed)
    return Stacked(average, stack.spread(within), stack, mixture, factor)


def _averaging_factor(
    trial: Trial, weight: float, refits: Sequence[Refit], data: SearchData
) -> float:
    """Return the factor of a trial: 1 unless it is a dictionary on a nearly exact table.

    On noisy tables there is next to nothing to gain.
    """
    config = data.config.dictionary
    exact = config.perfect_error < trial.loss < config.exact_error
    if not isinstance(trial.candidate, Dictionaries) or not exact or data.observed.all():
        return 1.0
    residuals = data.at_held_out(trial.filled) - data.truth
    return averaging_factor([one.filled[~data.observed] for one in refits], residuals, weight)


def averaging_factor(imputed: Sequence[Array], residuals: Array, weight: float = 1.0) -> float:
    """Return the errors of averaged models over those of the single one that was scored.

    The part of the error that is a model's own falls with the number of models; how large it is,
    their disagreement shows. Only half of the gain (in logarithms) is taken: intervals that are too
    short are worse than those that are too long (docs/notes/intervals.md).

    Parameters
    ----------
    imputed : sequence of arrays, e
        What each model imputed for the missing entries.
    residuals : h
        Of the model that was scored, at the held-out entries.
    weight : float
        Of the models in the stack.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.selection.refit import averaging_factor
    >>> errors = np.random.default_rng(0).normal(size=(5, 1000))
    >>> averaging_factor(errors[:4], errors[4]) ** 2  # about 1/2, the root of 4 models
    0.4...
    """
    k, before = len(imputed), _upper_size(residuals)
    if k < 2 or not before:
        return 1.0
    deviations = np.stack(imputed) - np.mean(imputed, axis=0)
    own = weight * _upper_size(deviations.ravel()) * np.sqrt(k / (k - 1)) / before
    after = np.sqrt(max(1 - own**2 * (1 - 1 / k), 0.0))
    return float(np.sqrt(np.clip(after, 0.1, 1.0)))


def _upper_size(residuals: Array) -> float:
    """Return the size of large errors: the geometric mean of quantiles."""
    sizes = np.quantile(np.abs(residuals), UPPER_QUANTILES)
    return float(np.exp(np.log(sizes).mean())) if sizes.min() else 0.0
