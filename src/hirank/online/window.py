"""A stream that keeps its last rows and learns from them batch by batch.

A row is imputed on arrival with the model as it stands, and joins the window. After each batch the
dictionary takes a few steps. Three things call for more:

- the window has grown: the path is fitted again, from the imputed rows and dictionary at hand
  (or a low-rank kernel matrix, where that recovers held-out entries far better: `low_rank.py`);
- predictions of held-out entries became worse, or features left their scale: the same;
- these predictions are as poor as column means: the rows before the change are of no use any more,
  and the model is restarted with the rows since.

All records are frozen. A stream advances by making a new record, so that one that was interrupted
is still complete. What it learns depends on the rows alone, not on how they were split into calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.core.columns import Columns
from hirank.core.masking import mask_entries, mask_row_entries
from hirank.core.threads import Workers
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary, fit_path
from hirank.models.refine_dictionary import grow_dictionary, refine_dictionary, renew_dictionary
from hirank.online.arrival import Arrivals
from hirank.online.buffer import Buffer, WindowModel, column_means, pad_features
from hirank.online.clock import TimeCounts
from hirank.online.config import WindowConfig
from hirank.online.fitted_window import FittedWindow, refit_low_rank, select_model
from hirank.online.low_rank import Landmarks
from hirank.online.ordered import Expected
from hirank.online.prequential import MAX_ERROR, PrequentialScores
from hirank.online.rescale import (
    deviation,
    has_new_feature,
    measure_again,
    scale_change,
    update_means,
)
from hirank.optim.path import PathSolution, rescale_ridges


class Update(Enum):
    """What the last batch led to."""

    NONE = "none"  # nothing could be learned from it, or nothing is before the next refit
    STARTED = "started"  # the first fit
    REFINED = "refined"  # a few steps of the dictionary
    REFITTED = "refitted"  # the path again, from the model at hand
    RESTARTED = "restarted"  # the path again, from the rows alone


class Cause(Enum):
    """Why a model was refitted or restarted."""

    WINDOW = "the window has grown"
    ERRORS = "errors have increased"
    POOR = "errors are as large as those of column means"
    SCALE = "features have left their scale"
    FEATURE = "a new feature varies"


@dataclass(frozen=True)
class StreamState:
    """The state of a stream with a window."""

    width: int  # features
    seed: int
    pending: Annotated[Array, Shape("p m", finite=False)]  # rows since the last batch
    buffer: Buffer
    arrivals: Arrivals
    model: WindowModel | None = None
    scores: PrequentialScores = field(default_factory=PrequentialScores)
    model_scores: PrequentialScores | None = None  # without filters; None: they are the same
    samples: int = 0  # rows seen, also those without any value
    batches: int = 0  # learned from
    fitted_rows: int = 0  # rows in the window when the path was last fitted
    rested: int = 0  # batches since
    rest: int = 2  # batches that have to pass before the next refit because of a drift
    suspect: int = 0  # rows since predictions became poor
    update: Update = Update.NONE
    cause: Cause | None = None

    @classmethod
    def empty(cls, width: int, seed: int) -> StreamState:
        """Return a stream that has seen no rows."""
        rows = np.zeros((0, width))
        return cls(width, seed, rows, Buffer.from_rows(rows), Arrivals.start(width))

    def add_features(self, count: int, config: WindowConfig) -> StreamState:
        """Return the stream with so many features more, which had no values so far."""
        return replace(
            self,
            width=self.width + count,
            pending=pad_features(self.pending, count, np.nan),
            buffer=self.buffer.add_features(count),
            arrivals=self.arrivals.add_features(count, config.arrival),
            model=None if self.model is None else self.model.add_features(count),
        )

    @property
    def can_impute(self) -> bool:
        """Whether there is a model or a filter that imputes rows."""
        return self.model is not None or self.arrivals.ordered is not None

    def means(self) -> Array:
        """Return the column means, m: those of the model, otherwise of the rows at hand, or NaN."""
        means = np.full(self.width, np.nan) if self.model is None else self.model.means
        if not np.isnan(means).any():
            return means
        rows = np.concatenate([self.buffer.rows, self.pending])
        return np.where(np.isnan(means), column_means(rows), means)

    def unit(self) -> Array:
        """Return the standard deviations in which errors are measured, m; NaN if constant."""
        if self.model is not None:
            return self.model.unit
        if self.arrivals.ordered is None:
            return np.full(self.width, np.nan)
        moments = self.arrivals.ordered.moments
        return np.where(moments.square > 0, moments.deviation, np.nan)

    @property
    def drift_scores(self) -> PrequentialScores:
        """The errors of the model, which show that the distribution has changed."""
        return self.scores if self.model_scores is None else self.model_scores

    @property
    def time_counts(self) -> TimeCounts:
        """How many rows had times that could not be used as they are."""
        ordered = self.arrivals.ordered
        return TimeCounts() if ordered is None else ordered.clock.counts

    def needs(self, config: WindowConfig) -> int:
        """Return how many rows are missing until something is learned."""
        size = config.batch_size if self.model is not None else config.n_warmup
        return size - len(self.pending)

    def complete(
        self,
        rows: Array,
        config: WindowConfig,
        times: Array | None = None,
        coverage: float | None = None,
    ) -> Array:
        """Return rows, n x m, imputed, each as if it were the next; NaN where nothing is known.

        With `coverage`, 3 x n x m: imputed rows, and lower and upper ends of intervals.
        """
        expected = self.arrivals.complete(rows, times, config.arrival)
        return self._impute(rows, expected, config, coverage)

    def append(
        self,
        rows: Array,
        config: WindowConfig,
        *,
        times: Array | None = None,
        impute: bool = False,
        coverage: float | None = None,
    ) -> tuple[StreamState, Array | None]:
        """Return the stream after rows, of which at most as many as it needs have a value.

        Without `times`, n, rows in order follow each other at the usual step. With `impute`, also
        return the rows as imputed before anything is learned from them, NaN where nothing is
        known; None if there is neither a model nor a filter. `coverage` as in `complete`.
        """
        n = len(self.pending)
        arrivals, expected = self.arrivals.append(rows, times, n, config.arrival)
        known = self.model is not None or expected is not None
        filled = None
        if impute and known:
            filled = self._impute(rows, expected, config, coverage)
        some: BoolArray = ~np.asarray(np.isnan(rows).all(axis=1))
        state = replace(
            self,
            pending=np.concatenate([self.pending, rows[some]]),
            arrivals=arrivals,
            samples=self.samples + len(rows),
        )
        return (state if state.needs(config) > 0 else state.learn(config)), filled

    def _impute(
        self, rows: Array, expected: Expected | None, config: WindowConfig, coverage: float | None
    ) -> Array:
        filled, sizes = self.arrivals.impute(rows, self.model, expected, config.arrival)
        if coverage is None:
            return filled
        half = self.arrivals.half_widths(sizes, expected, coverage)
        return np.array([filled, filled - half, filled + half])

    def learn(self, config: WindowConfig) -> StreamState:
        """Return the stream after it has learned from the pending rows."""
        rng = np.random.default_rng([self.seed, self.batches])
        state, batch = _score(self, config, rng)
        state = replace(state, pending=self.pending[:0], batches=self.batches + 1)
        if self.model is None:
            state = replace(state, buffer=batch.last(config.window), rest=config.min_rest)
            return _start(state, config, rng, Update.STARTED)._forget_expected()
        state = state._forget_expected()
        scores = state.drift_scores
        poor = config.refit_on_drift and scores.poor and (scores.jumped or self.suspect > 0)
        buffer = self.buffer.extend(batch).last(config.window)
        state = replace(
            state,
            buffer=buffer,
            model=update_means(self.model, buffer),
            rested=self.rested + 1,
            suspect=self.suspect + len(batch) if poor else 0,
        )
        return _update(state, config, rng)

    def _forget_expected(self) -> StreamState:
        """Return the stream without what the filters expected of rows that are not pending."""
        return replace(self, arrivals=replace(self.arrivals, expected=None))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        m = self.width
        if m < 1 or self.pending.shape[1] != m or self.buffer.rows.shape[1] != m:
            raise ValueError(f"pending rows and buffer must have {m} features")
        if np.isinf(self.pending).any() or self.seed >= 2**32 or not self.rest:
            raise ValueError("pending must not be infinite, seed below 2**32 and rest positive")
        if self.samples < max(len(self.pending), self.fitted_rows):
            raise ValueError("samples must count all rows")
        self.arrivals.check_sizes(m, len(self.pending))
        if self.model is not None and (len(self.model.unit) != m or not len(self.buffer)):
            raise ValueError(f"the model must have {m} features, and rows that it was fitted to")


def next_update(state: StreamState, config: WindowConfig) -> tuple[Update, Cause | None]:
    """Return what the state of the window calls for."""
    model, n = state.model, len(state.buffer)
    assert model is not None
    if state.suspect >= min(config.n_restart, config.n_warmup):
        return Update.RESTARTED, Cause.POOR
    if state.rested >= config.min_rest and has_new_feature(state.buffer, model):
        return Update.RESTARTED, Cause.FEATURE
    young = state.fitted_rows < config.n_warmup
    growth = config.young_growth if young else config.growth
    full = n == config.window and growth * state.fitted_rows > config.window > state.fitted_rows
    if n >= growth * state.fitted_rows or full:
        return Update.REFITTED, Cause.WINDOW
    # Predictions as poor as means: the next batch decides whether to restart. Until then, wait.
    if state.rested >= state.rest and not state.suspect:
        if config.refit_on_drift and state.drift_scores.jumped:
            return Update.REFITTED, Cause.ERRORS
        change = scale_change(state.buffer, model, config)
        if change > config.broken_scale:
            return Update.RESTARTED, Cause.SCALE
        if change > 1:
            return Update.REFITTED, Cause.SCALE
    return Update.REFINED, None


def _update(state: StreamState, config: WindowConfig, rng: np.random.Generator) -> StreamState:
    """Return the stream after the update that its window calls for."""
    update, cause = next_update(state, config)
    if update is Update.REFINED:
        return _refine(state)
    if cause is Cause.POOR:
        recent = replace(state, buffer=state.buffer.last(state.suspect), suspect=0)
        restarted = _start(recent, config, rng, update, cause)
        by_model = None if state.model_scores is None else state.model_scores.forget()
        return replace(restarted, scores=state.scores.forget(), model_scores=by_model)
    if update is Update.RESTARTED:
        return _start(state, config, rng, update, cause)
    refitted = _refit(state, config, rng, cause)
    if cause is Cause.WINDOW:
        return refitted
    longest = max(config.min_rest, config.window // (2 * config.batch_size))
    follows = state.rested < 2 * state.rest
    return replace(refitted, rest=min(2 * state.rest, longest) if follows else config.min_rest)


def _start(
    state: StreamState,
    config: WindowConfig,
    rng: np.random.Generator,
    update: Update,
    cause: Cause | None = None,
) -> StreamState:
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
    state = replace(state, buffer=forgotten, update=update, cause=cause)
    started = _with_model(state, fitted, columns, config, means)
    if update is not Update.STARTED or fitted.fold is None:
        return started
    # What was held out of the fit shows how good it is, before any row has arrived since.
    predicted = np.full(rows.shape, np.nan)
    part = np.full(X.shape, np.nan)
    part[usable] = np.where(held_out, fitted.fold, np.nan)
    predicted[:, columns.varying] = columns.scaling.backward(part)[:, columns.scaling.varying]
    arrivals = started.arrivals.start_mix(rows, predicted, started.unit(), config.arrival)
    return replace(started, arrivals=arrivals)


def _refit(
    state: StreamState, config: WindowConfig, rng: np.random.Generator, cause: Cause | None
) -> StreamState:
    """Fit the path to the window, from the imputed rows and the dictionary at hand."""
    model, buffer = state.model, state.buffer.clip_outliers()
    assert model is not None
    dictionary = model.dictionary
    low_rank = isinstance(dictionary, Landmarks)
    # What has changed may be better described by a dictionary, for which there is no start.
    if not dictionary.settings or (low_rank and cause is not Cause.WINDOW):
        return _start(state, config, rng, Update.REFITTED, cause)
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
    state = replace(state, update=Update.REFITTED, cause=cause)
    return _with_model(state, fitted, columns, config, model.means.copy())


def _refine(state: StreamState) -> StreamState:
    """Take a few steps of the dictionary."""
    model = state.model
    assert model is not None
    if not model.dictionary.settings or isinstance(model.dictionary, Landmarks):
        return replace(state, update=Update.NONE, cause=None)
    filled = state.buffer.filled
    outlying = ((filled < model.low) | (filled > model.high)).sum(axis=1) > 0
    if outlying.all():
        return replace(state, update=Update.NONE, cause=None)
    rows = filled[~outlying]
    X = model.columns.scale(rows, ~np.isnan(rows)).X
    dictionary = model.dictionary
    with Workers() as workers:
        D = refine_dictionary(X, dictionary.D, dictionary.settings[-1], workers)
    settings = rescale_ridges(dictionary.settings, model.stages, D)
    refined = replace(model, dictionary=replace(dictionary, D=D, settings=settings))
    return replace(state, model=refined, update=Update.REFINED, cause=None)


def _with_model(
    state: StreamState,
    fitted: FittedWindow,
    columns: Columns,
    config: WindowConfig,
    means: Array,
) -> StreamState:
    """Return the stream with a model that was just fitted; `means` are those of earlier windows."""
    rows, has_values, scaling = state.buffer.rows, columns.has_values, columns.scaling
    observed = ~np.isnan(rows)
    means[has_values] = scaling.mean
    unit = np.full(state.width, np.nan)
    features = np.flatnonzero(columns.varying)
    unit[features] = (
        scaling.spread[scaling.varying]
        if config.scale
        else deviation(state.buffer.inliers()[:, features])
    )
    low, high = state.buffer.limits()
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
    return replace(
        state,
        buffer=replace(state.buffer, filled=filled),
        model=model,
        arrivals=state.arrivals.discount(config.old_errors),  # of another model
        fitted_rows=len(rows),
        rested=0,
    )


def _score(
    state: StreamState, config: WindowConfig, rng: np.random.Generator
) -> tuple[StreamState, Buffer]:
    """Return the stream with the errors at held-out entries of the pending rows.

    Also return these rows as the model imputes them, with what it predicted for held-out entries.
    """
    rows, model, arrivals = state.pending, state.model, state.arrivals
    batch, by_model = Buffer.from_rows(rows), np.full(rows.shape, np.nan)
    if model is not None:
        held_out = np.zeros(rows.shape, bool)
        if config.monitor:
            known = ~np.isnan(rows[:, model.features])
            held_out[:, model.features] = mask_row_entries(known, rng)
        filled = model.complete(np.where(held_out, np.nan, rows))
        by_model = np.where(held_out, filled, np.nan)
        batch = Buffer(rows, np.where(np.isnan(rows), filled, rows), by_model)
    mixed, unit, ordered = by_model, state.unit(), arrivals.expected is not None
    if ordered and config.arrival is not None:
        others = np.random.default_rng([state.seed, state.batches, 1])
        arrivals, mixed = arrivals.score(rows, by_model, model, unit, config.arrival, others)
    if not config.monitor:
        return replace(state, arrivals=arrivals), batch
    with np.errstate(over="ignore"):
        errors, model_errors = (np.abs(one - rows) / unit for one in (mixed, by_model))
    model_scores = state.drift_scores if ordered else state.model_scores
    if model_scores is not None:
        model_scores = model_scores.add(model_errors[~np.isnan(model_errors)], state.samples)
    return replace(
        state,
        arrivals=arrivals.add_errors(np.minimum(errors, MAX_ERROR), config.arrival),
        scores=state.scores.add(errors[~np.isnan(errors)], state.samples),
        model_scores=model_scores,
    ), batch
