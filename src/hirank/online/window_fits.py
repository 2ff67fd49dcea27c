"""What is fitted to the window of a stream: the whole path, or a few steps of the dictionary.

A fit depends on the window, the model and the number of batches only, which do not change while it
goes on; rows that arrive meanwhile are imputed with the model before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.core.columns import Columns
from hirank.core.masking import mask_entries
from hirank.core.threads import Workers
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary, fit_path
from hirank.models.refine_dictionary import grow_dictionary, refine_dictionary, renew_dictionary
from hirank.online.buffer import Buffer, WindowModel
from hirank.online.config import WindowConfig
from hirank.online.fitted_window import FittedWindow, refit_low_rank, select_model
from hirank.online.low_rank import Landmarks
from hirank.online.rescale import deviation, measure_again
from hirank.online.updates import Cause, Update
from hirank.optim.path import PathSolution, rescale_ridges

if TYPE_CHECKING:
    from hirank.online.window import StreamState


class WindowFit(NamedTuple):
    """What was fitted to a window."""

    update: Update
    model: WindowModel | None  # None: there is none yet
    buffer: Buffer  # the window, as imputed by the model
    predicted: Array | None = None  # w x m: entries that a first fit held out, NaN elsewhere


def fit_window(
    state: StreamState, update: Update, cause: Cause | None, config: WindowConfig
) -> WindowFit:
    """Return what the update of a stream is: it may turn out to be a smaller one."""
    batch = state.batches - 1  # the last one
    rng = np.random.default_rng([state.seed, batch, *([] if state.model is None else [2])])
    if update is Update.REFINED:
        return _refine(state)
    if update is Update.REFITTED:
        return _refit(state, config, rng, cause)
    return _start(state, config, rng, update)


def _start(
    state: StreamState,
    config: WindowConfig,
    rng: np.random.Generator,
    update: Update,
) -> WindowFit:
    """Fit a model to the window alone."""
    rows = state.buffer.clip_outliers().rows
    observed = ~np.isnan(rows)
    inliers = state.buffer.inliers()
    has_values = observed.sum(axis=0) > 0
    columns = Columns.measure(
        inliers[:, has_values],
        ~np.isnan(inliers[:, has_values]),
        scale=config.scale and "standard",
    )
    columns = replace(columns, has_values=has_values)
    X, known = columns.scale(rows, observed)
    usable = known.any(axis=1)
    r = config.n_components(int(usable.sum()))
    if columns.scaling.varying.any():
        problem = DictionaryProblem(
            X[usable], known[usable], r, config.kernel, config.stages, config.solver
        )
        held_out = mask_entries(problem.observed, rng)
        with Workers() as workers:
            solution = fit_dictionary(problem, workers, rng, held_out=held_out)
            fitted = select_model(solution, problem, held_out, config, workers)
    else:
        fitted = FittedWindow.from_path(PathSolution.empty(X, r), config)
    means = np.full(state.width, np.nan) if state.model is None else state.model.means.copy()
    # Predictions of the model before may be far off: nothing to start from.
    forgotten = replace(state.buffer, predicted=np.full(rows.shape, np.nan))
    started = _with_model(forgotten, update, fitted, columns, config, means)
    if update is not Update.STARTED or fitted.fold is None:
        return started
    # What was held out of the fit shows how good it is, before any row has arrived since.
    predicted = np.full(rows.shape, np.nan)
    part = np.full(X.shape, np.nan)
    part[usable] = np.where(held_out, fitted.fold, np.nan)
    predicted[:, columns.varying] = columns.scaling.backward(part)[:, columns.scaling.varying]
    return started._replace(predicted=predicted)


def _refit(
    state: StreamState, config: WindowConfig, rng: np.random.Generator, cause: Cause | None
) -> WindowFit:
    """Fit the path to the window, from the imputed rows and the dictionary at hand."""
    model, buffer = state.model, state.buffer.clip_outliers()
    assert model is not None
    dictionary = model.dictionary
    low_rank = isinstance(dictionary, Landmarks)
    # What has changed may be better described by a dictionary, for which there is no start.
    if not dictionary.settings or (low_rank and cause is not Cause.WINDOW):
        return _start(state, config, rng, Update.REFITTED)
    columns = replace(model.columns, scaling=measure_again(buffer, model, config))
    X, known = columns.scale(buffer.rows, ~np.isnan(buffer.rows))
    usable = known.any(axis=1)
    if not usable.any():  # no feature that varies has values in the window
        return _refine(state)
    filled = columns.scale(buffer.filled, ~np.isnan(buffer.filled)).X[usable]
    predicted, held_out = columns.scale(buffer.predicted, ~np.isnan(buffer.predicted))
    X, known, predicted = X[usable], known[usable], predicted[usable]
    held_out = held_out[usable] & known
    enough = bool(held_out.sum() >= config.min_held_out)
    held_out &= enough
    start = np.where(held_out, predicted, filled)
    max_iter = max(1, config.solver.max_iter // config.refit_share)
    solver = replace(config.solver, max_iter=max_iter)
    stages = config.stages if enough or low_rank else config.stages[: model.n_stages]
    problem = DictionaryProblem(
        X, known, max(len(dictionary.D), config.n_components(len(X))), config.kernel, stages, solver
    )
    with Workers() as workers:
        if low_rank:
            fitted = refit_low_rank(problem, held_out, start, model.n_stages, config, workers)
        else:
            D = columns.scaling.forward(model.columns.scaling.backward(dictionary.D))
            if problem.n_components > len(D):
                D = grow_dictionary(D, filled, known, problem.n_components, rng)
            else:
                D = renew_dictionary(D, filled, dictionary.settings[-1], config.batch_size)
            solution = fit_path(problem, start, D, held_out, workers, restart_after=())
            if cause is Cause.WINDOW:
                fitted = select_model(solution, problem, held_out, config, workers, start)
            else:  # landmarks would not follow a change that goes on
                fitted = FittedWindow.from_path(solution, config)
    means = model.means.copy()
    return _with_model(state.buffer, Update.REFITTED, fitted, columns, config, means)


def _refine(state: StreamState) -> WindowFit:
    """Take a few steps of the dictionary."""
    model = state.model
    assert model is not None
    same = WindowFit(Update.NONE, model, state.buffer)
    if not model.dictionary.settings or isinstance(model.dictionary, Landmarks):
        return same
    filled = state.buffer.filled
    outlying = ((filled < model.low) | (filled > model.high)).sum(axis=1) > 0
    if outlying.all():
        return same
    rows = filled[~outlying]
    X = model.columns.scale(rows, ~np.isnan(rows)).X
    dictionary = model.dictionary
    with Workers() as workers:
        D = refine_dictionary(X, dictionary.D, dictionary.settings[-1], workers)
    settings = rescale_ridges(dictionary.settings, model.stages, D)
    refined = replace(model, dictionary=replace(dictionary, D=D, settings=settings))
    return WindowFit(Update.REFINED, refined, state.buffer)


def _with_model(
    buffer: Buffer,
    update: Update,
    fitted: FittedWindow,
    columns: Columns,
    config: WindowConfig,
    means: Array,
) -> WindowFit:
    """Return a window with a model that was just fitted; `means` are those of earlier windows."""
    rows, has_values, scaling = buffer.rows, columns.has_values, columns.scaling
    observed = ~np.isnan(rows)
    means[has_values] = scaling.mean
    unit = np.full(rows.shape[1], np.nan)
    features = np.flatnonzero(columns.varying)
    unit[features] = (
        scaling.spread[scaling.varying]
        if config.scale
        else deviation(buffer.inliers()[:, features])
    )
    low, high = buffer.limits()
    model = WindowModel(
        columns, fitted.model, fitted.stages, fitted.n_stages, unit, means, low, high
    )
    filled = np.where(observed, rows, np.nan_to_num(means))
    usable = observed[:, features].any(axis=1)
    part = filled[:, has_values]
    if len(features):
        part[usable] = scaling.backward(fitted.X)
    else:
        part = scaling.backward(fitted.X)
    filled[:, has_values] = np.where(observed[:, has_values], rows[:, has_values], part)
    return WindowFit(update, model, replace(buffer, filled=filled))
