"""The refit of dictionaries to all observed entries: several, whose imputed values are averaged."""

from __future__ import annotations

from functools import partial

import numpy as np

from hirank._typing import Array, IntArray
from hirank.selection.config import DictionaryConfig
from hirank.selection.dictionary_path import PathFitter, PathTrial
from hirank.selection.row_sample import fit_last_stage, make_dictionary, sample_rows
from hirank.selection.trial import Refit, Trial


def default_n_models(path: PathTrial, config: DictionaryConfig) -> int:
    """Return how many dictionaries are averaged, unless the user has set it."""
    large = path.spec.n_components > config.max_points_many
    return config.n_models_large if large else config.n_models


def refit_all(fitter: PathFitter, path: PathTrial, count: int) -> list[Refit]:
    """Fit the dictionaries of the folds, then others from points of the table that is imputed."""
    data, r = fitter.data, path.spec.n_components
    folds = range(min(count, len(data.folds)))
    cost = len(folds) * data.step_cost(r)
    refits = [*data.workers.map(lambda fold: _refit_from_fold(fitter, path, fold), folds, cost)]
    if data.monitor.late:
        return refits
    X = refits[0].filled
    max_rows = data.config.dictionary.max_rows
    starts = [
        (fitter.sample_points(X, data.observed, r), sample_rows(len(X), max_rows, data.rng))
        for _ in range(count - len(refits))
    ]
    cost = len(starts) * data.step_cost(r)
    more = data.workers.map(lambda one: _refit_from_points(fitter, path, X, *one), starts, cost)
    return [*refits, *more]


def refit_from_start(fitter: PathFitter, path: PathTrial, start: Trial, count: int) -> list[Refit]:
    """Fit dictionaries from the table that the good start imputes, and from those of the folds."""
    data, r = fitter.data, path.spec.n_components
    if data.monitor.late:
        return [_refit_from_fold(fitter, path, 0)]
    X = (data.refits.get(id(start)) or start.candidate.refit(start, data, 1))[0].filled
    folds = range(min(count - 1, len(data.folds)))
    n_points = 1 if r == len(X) else count - len(folds)  # with all rows as points, all are the same
    points = [fitter.sample_points(X, data.observed, r) for _ in range(n_points)]
    # All of them together, so that no thread waits between points and folds.
    refits = [partial(_refit_from_points, fitter, path, X, D) for D in points]
    refits += [partial(_refit_from_fold, fitter, path, fold) for fold in folds]
    return [*data.workers.map(lambda fit: fit(), refits, len(refits) * data.step_cost(r))]


def _refit_from_fold(fitter: PathFitter, path: PathTrial, fold: int) -> Refit:
    """Fit the last stage to all observed entries, from where a fold has ended."""
    data, end = fitter.data, path.ends[path.best][fold]
    if data.monitor.stopped:
        return dictionary_from_fold(fitter, path, fold)
    X = np.where(data.observed, data.X, end.X)
    numbers = range(path.last_stage, path.last_stage + 1)
    last = fitter.fit_stages(data.observed, path.spec, X, end.D, numbers)[-1]
    ends = [stage[fold] for stage in path.ends[: path.best]]
    return Refit(last.X, make_dictionary(fitter, path.spec, [*ends, last], path.first))


def dictionary_from_fold(fitter: PathFitter, path: PathTrial, fold: int) -> Refit:
    """Return the dictionary that was fitted on one fold, without a refit to all entries.

    Used when the time limit is reached before the refit, or when the refit fails.
    """
    data, end = fitter.data, path.ends[path.best][fold]
    ends = [stage[fold] for stage in path.ends[: path.best + 1]]
    X = np.where(data.observed, data.X, end.X)
    return Refit(X, make_dictionary(fitter, path.spec, ends, path.first))


def _refit_from_points(
    fitter: PathFitter, path: PathTrial, start: Array, D: Array, rows: IntArray | None = None
) -> Refit:
    """Fit the end of the path to all entries, from other points and an imputed table.

    With `rows`, only the last stage is fitted to all rows of a large table.
    """
    data, spec = fitter.data, path.spec
    X, first = np.where(data.observed, data.X, start), spec.first
    if not fitter.restarts:  # on noisy tables
        first = max(first, path.last_stage - data.config.dictionary.member_stages)
    numbers = range(first, path.last_stage + 1)
    if rows is None or len(rows) == len(X) or len(numbers) == 1:
        ends = fitter.fit_stages(data.observed, spec, X, D, numbers)
    else:
        ends = fitter.fit_stages(data.observed[rows], spec, X[rows], D, numbers)
        ends[-1] = fit_last_stage(fitter, spec, ends, first, data.observed)
    return Refit(ends[-1].X, make_dictionary(fitter, spec, ends, first))
