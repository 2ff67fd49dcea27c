"""A stream that keeps its last rows and learns from them batch by batch.

A row is imputed on arrival with the model as it stands, and joins the window. After each batch the
dictionary takes a few steps. Three things call for more:

- the window has grown: the path is fitted again, from the imputed rows and dictionary at hand
  (or a low-rank kernel matrix, where that recovers held-out entries far better: `low_rank.py`);
- predictions of held-out entries became worse, or features left their scale: the same;
- these predictions are as poor as column means: the rows before the change are of no use any more,
  and the model is restarted with the rows since.

An update that takes long is cut into slices, of which each row computes one after it was imputed;
until it is complete, the model stays as it was and arriving rows wait to be learned from.

All records are frozen. A stream advances by making a new record, so that one that was interrupted
is still complete. What it learns depends on the rows alone, not on how they were split into calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.core.masking import mask_row_entries
from hirank.online.arrival import Arrivals
from hirank.online.buffer import Buffer, WindowModel, column_means, pad_features
from hirank.online.clock import TimeCounts
from hirank.online.config import WindowConfig
from hirank.online.ordered import Expected
from hirank.online.prequential import MAX_ERROR, PrequentialScores
from hirank.online.rescale import update_means
from hirank.online.updates import Cause, Learning, Update, next_update
from hirank.online.window_fits import WindowFit, fit_window


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
    learning: Learning | None = None  # the update that goes on

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
            learning=None if self.learning is None else replace(self.learning, slices=0),
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
        if self.learning is not None:
            return 1
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
        return self._with_first_model(config)._impute(rows, expected, config, coverage)

    def complete_early(
        self, rows: Array, config: WindowConfig, coverage: float | None = None, *, slices: int
    ) -> Array | None:
        """Return rows that came before the first model, imputed by it alone; None if not by it.

        It imputes rows that are in no order, if its fit ends with so many slices: a caller that
        passed many rows at once can wait longer.
        """
        if config.arrival is None or not config.arrival.guarded:
            return None
        if self.arrivals.ordered is None or self.arrivals.in_order(config.arrival):
            return None
        if self.model is None and self.learning is not None:
            fit = self.learning.computation(self._fit(config), config.slice_work)
            while not fit.done and fit.taken < slices:
                fit.advance()
            if not fit.done:
                return None
        stream = self._with_first_model(config)
        return None if stream.model is None else stream._impute(rows, None, config, coverage)

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
        if state.learning is not None and some.any():
            state = state.go_on(config)
        if state.learning is None and state.needs(config) <= 0:
            state = state.learn(config)
        return state, filled

    def _impute(
        self, rows: Array, expected: Expected | None, config: WindowConfig, coverage: float | None
    ) -> Array:
        filled, sizes = self.arrivals.impute(rows, self.model, expected, config.arrival)
        if coverage is None:
            return filled
        half = self.arrivals.half_widths(sizes, expected, coverage)
        return np.array([filled, filled - half, filled + half])

    def learn(self, config: WindowConfig) -> StreamState:
        """Return the stream after it has learned from pending rows, or has begun to.

        After a long fit, more rows than a batch are pending: they are learned from batch by batch.
        """
        rng = np.random.default_rng([self.seed, self.batches])
        count = len(self.pending)
        if self.model is not None:
            count = min(count, max(config.batch_size, count - config.window))
        state, batch = _score(self._first(count), config, rng)
        state = replace(state, arrivals=state.arrivals.with_expected(self.arrivals.expected))
        state = replace(state, pending=self.pending, batches=self.batches + 1)
        if self.model is None:
            state = replace(state, rest=config.min_rest)
            return state._begin(Learning(Update.STARTED, rows=count), config)
        state = replace(state._forget(count), rested=self.rested + 1)
        scores = state.drift_scores
        poor = config.refit_on_drift and scores.poor and (scores.jumped or self.suspect > 0)
        buffer = self.buffer.extend(batch).last(config.window)
        state = replace(
            state,
            buffer=buffer,
            model=update_means(self.model, buffer),
            suspect=self.suspect + len(batch) if poor else 0,
        )
        update, cause = next_update(state, config)
        if cause is Cause.POOR:
            by_model = None if state.model_scores is None else state.model_scores.forget()
            recent = state.buffer.last(state.suspect)
            scores = state.scores.forget()
            state = replace(state, buffer=recent, suspect=0, scores=scores, model_scores=by_model)
        return state._begin(Learning(update, cause), config)

    def _begin(self, learning: Learning, config: WindowConfig) -> StreamState:
        """Return the stream after the first slice of an update."""
        if not self.can_impute:  # rows wait for the first fit anyway
            config = replace(config, slice_work=np.inf)
        return replace(self, learning=learning).go_on(config)

    def go_on(self, config: WindowConfig) -> StreamState:
        """Return the stream after another slice of its update."""
        assert self.learning is not None
        fit = self._fit(config)
        if np.isinf(config.slice_work):
            return _finish(replace(self, learning=None), self.learning, fit(), config)
        learning, done = self.learning.advance(fit, config.slice_work)
        if done is None:
            return replace(self, learning=learning)
        return _finish(replace(self, learning=None), learning, done.result(), config)

    def _fit(self, config: WindowConfig) -> Callable[[], WindowFit]:
        """Return the fit of the update that goes on."""
        assert self.learning is not None
        # Without the update itself: what is computed must not keep itself from being forgotten.
        state, learning = replace(self, learning=None), self.learning
        if self.model is None:
            rows = self.pending[: learning.rows]
            state = replace(state, buffer=Buffer.from_rows(rows).last(config.window))
        return partial(fit_window, state, learning.update, learning.cause, config)

    def _with_first_model(self, config: WindowConfig) -> StreamState:
        """Return the stream with its first model, also if its fit goes on.

        Not where rows follow each other, in which filters impute them well enough until then.
        """
        learning = self.learning
        if self.model is not None or learning is None or self.arrivals.in_order(config.arrival):
            return self
        fit = learning.computation(self._fit(config), config.slice_work).result()
        return _finish(replace(self, learning=None), learning, fit, config)

    def _first(self, count: int) -> StreamState:
        """Return the stream with its first pending rows only."""
        expected = self.arrivals.expected
        expected = None if expected is None else expected.at(slice(count))
        return replace(
            self, pending=self.pending[:count], arrivals=self.arrivals.with_expected(expected)
        )

    def _forget(self, count: int) -> StreamState:
        """Return the stream without the first pending rows, and what was expected of them."""
        expected = self.arrivals.expected
        expected = None if expected is None else expected.at(slice(count, None))
        return replace(
            self, pending=self.pending[count:], arrivals=self.arrivals.with_expected(expected)
        )

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


def _finish(
    state: StreamState, learning: Learning, fit: WindowFit, config: WindowConfig
) -> StreamState:
    """Return the stream with what was fitted."""
    rested, rest = state.rested, state.rest
    state = replace(state, model=fit.model, buffer=fit.buffer, update=fit.update, cause=None)
    if fit.update not in (Update.NONE, Update.REFINED):
        arrivals = state.arrivals.discount(config.old_errors)  # of another model
        state = replace(
            state,
            cause=learning.cause,
            arrivals=arrivals,
            fitted_rows=len(fit.buffer),
            rested=0,
        )
    if fit.predicted is not None:
        arrivals = state.arrivals.start_mix(
            fit.buffer.rows, fit.predicted, learning.rows, state.unit(), config.arrival
        )
        state = replace(state, arrivals=arrivals)
    state = state._forget(learning.rows)
    if learning.update is not Update.REFITTED or learning.cause is Cause.WINDOW:
        return state
    longest = max(config.min_rest, config.window // (2 * config.batch_size))
    return replace(state, rest=min(2 * rest, longest) if rested < 2 * rest else config.min_rest)


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
