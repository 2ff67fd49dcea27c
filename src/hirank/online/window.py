"""A stream that remembers its last rows, and learns from them batch by batch.

A row is completed on arrival with the model as it stands, and joins the window. After each batch
the dictionary takes a few steps. Three things call for more:

- the window has doubled, say: the path is walked again, from the fills and the dictionary at hand;
- fills of hidden entries are worse than usual, or features have left their scale: the same;
- those fills are as poor as feature means: the rows from before the change are of no use any more,
  and the model starts over with the rows since.

All records are frozen. A stream moves on by making a new record, so that one that was interrupted
is still whole. What it learns depends on the rows alone, not on how they were cut into calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import MaskingConfig, mask_row_entries
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.models.fit_dictionary import Task, complete_table, walk
from hirank.models.refine_dictionary import grown, refine, renewed
from hirank.models.row_models import Fitted
from hirank.online.buffer import Memory, Model, column_means, wider
from hirank.online.config import Plan
from hirank.online.prequential import Scores
from hirank.online.rescale import (
    came_alive,
    deviation,
    measured_again,
    scale_change,
    scaled,
    with_late_means,
)
from hirank.optim.path import PathSolution, rescale_ridges

GROWTH = 2.0
"""The path is walked again when the window has grown by this factor."""
YOUNG_GROWTH = 1.5
"""The same for a window with fewer rows than a stream starts with: it has just started over."""
ROUNDS = 10
"""Evaluations per stage for rows on arrival: fewer than for a table, and nearly as good."""
REST = 2
"""Batches between two walks that a change calls for; twice as many each time that the next change
follows at once, up to half a window. A stream that never settles would cost too much."""
FRESH = 100
"""Rows since a change that it takes to start over."""
FEWER_STEPS = 3
"""A walk from fills at hand takes this many times fewer steps than one from nothing."""
BROKEN = 5.0
"""Times the change of scale that calls for a walk: points of the dictionary are then so far off
that no step brings them back."""


@dataclass(frozen=True)
class WindowStream:
    """Where a stream stands."""

    width: int  # features
    seed: int
    pending: Array  # rows since the last batch, p x m
    memory: Memory
    model: Model | None = None
    scores: Scores = field(default_factory=Scores)
    samples: int = 0  # rows seen, also those without any value
    batches: int = 0  # learned
    walked: int = 0  # rows in the window when the path was last walked
    rested: int = 0  # batches since
    rest: int = REST  # batches that it takes before the next reaction
    suspect: int = 0  # rows since fills went poor
    walks: int = 0
    action: str = ""  # what the last batch led to

    @classmethod
    def empty(cls, width: int, seed: int) -> WindowStream:
        nothing = np.zeros((0, width))
        return cls(width, seed, nothing, Memory.of(nothing))

    def widened(self, count: int) -> WindowStream:
        """With so many features more, none of which had a value so far."""
        return replace(
            self,
            width=self.width + count,
            pending=wider(self.pending, count, np.nan),
            memory=self.memory.widened(count),
            model=None if self.model is None else self.model.widened(count),
        )

    def means(self) -> Array:
        """Of the features, m: those of the model, else of the rows that are held, else 0."""
        means = np.full(self.width, np.nan) if self.model is None else self.model.means
        held = np.concatenate([self.memory.rows, self.pending])
        return np.where(np.isnan(means), column_means(held), means)

    def needs(self, plan: Plan) -> int:
        """Rows still to come before something is learned."""
        whole = plan.batch_size if self.model is not None else plan.n_start
        return whole - len(self.pending)

    def take(
        self, rows: Array, plan: Plan, *, answer: bool = False
    ) -> tuple[WindowStream, Array | None]:
        """With rows, at most as many as it needs, each with an observed entry.

        If asked for an answer and there is a model: also the rows as completed before it learned
        from them.
        """
        filled = self.model.complete(rows) if answer and self.model is not None else None
        stream = replace(
            self,
            pending=np.concatenate([self.pending, rows]),
            samples=self.samples + len(rows),
        )
        return (stream if stream.needs(plan) > 0 else stream.learn(plan)), filled

    def learn(self, plan: Plan) -> WindowStream:
        """From the rows that are pending."""
        rng = np.random.default_rng([self.seed, self.batches])
        batch = Memory.of(self.pending)
        stream = replace(self, pending=self.pending[:0], batches=self.batches + 1)
        if self.model is None:
            return replace(stream, memory=batch.last(plan.window))._begin(plan, rng, "started")
        batch, errors = _arrive(batch, self.model, plan, rng)
        scores = self.scores.add(errors, self.samples)
        poor = plan.react and scores.poor and (scores.jumped or self.suspect > 0)
        memory = self.memory.joined(batch).last(plan.window)
        stream = replace(
            stream,
            memory=memory,
            model=with_late_means(self.model, memory),
            scores=scores,
            rested=self.rested + 1,
            suspect=self.suspect + len(batch) if poor else 0,
        )
        return stream._move_on(plan, rng)

    def _move_on(self, plan: Plan, rng: np.random.Generator) -> WindowStream:
        """Do what the state of the window calls for."""
        model, n = self.model, len(self.memory)
        assert model is not None
        if self.suspect >= min(FRESH, plan.n_start):
            fresh = replace(self, memory=self.memory.last(self.suspect), suspect=0)
            fresh = fresh._begin(plan, rng, "started over: fills had become as poor as means")
            return replace(fresh, scores=self.scores.forget())
        if self.rested >= REST and came_alive(self.memory, model):
            return self._begin(plan, rng, "started over: a feature has come alive")
        growth = GROWTH if self.walked >= plan.n_start else YOUNG_GROWTH
        full = n == plan.window and growth * self.walked > plan.window > self.walked
        if n >= growth * self.walked or full:
            return self._walk_again(plan, rng, "walked again: the window has grown")
        # Fills as poor as means: the next batch tells whether to start over. Until then, wait.
        if self.rested >= self.rest and not self.suspect:
            if plan.react and self.scores.jumped:
                return self._react(plan, rng, "walked again: fills had become worse")
            change = scale_change(self.memory, model, plan)
            if change > BROKEN:
                return self._begin(plan, rng, "started over: features had left their scale")
            if change > 1:
                return self._react(plan, rng, "walked again: features had left their scale")
        return self._refine()

    def _react(self, plan: Plan, rng: np.random.Generator, action: str) -> WindowStream:
        """Walk again because of a change."""
        longest = max(REST, plan.window // (2 * plan.batch_size))
        rest = min(2 * self.rest, longest) if self.rested < 2 * self.rest else REST
        return replace(self._walk_again(plan, rng, action), rest=rest)

    def _begin(self, plan: Plan, rng: np.random.Generator, action: str) -> WindowStream:
        """Learn from the window alone."""
        rows = self.memory.limited().rows
        observed = ~np.isnan(rows)
        nonempty = observed.sum(axis=0) > 0
        typical = self.memory.typical()[:, nonempty]
        scaling = Scaling.measure(typical, ~np.isnan(typical), scale=plan.scale and "standard")
        X, seen = scaled(rows, nonempty, scaling)
        usable = seen.any(axis=1)
        r = plan.components(int(usable.sum()))
        if scaling.varying.any():
            task = Task(X[usable], seen[usable], r, plan.kernel, plan.stages, plan.options)
            with Workers() as workers:
                result = complete_table(task, workers, rng)
        else:
            result = PathSolution.empty(X, r)
        means = np.full(self.width, np.nan) if self.model is None else self.model.means.copy()
        # What the model before took hidden entries for may be far off: nothing to start from.
        blank = replace(self.memory, guess=np.full(rows.shape, np.nan))
        stream = replace(self, memory=blank)
        return stream._with(result, nonempty, scaling, plan, means, action)

    def _walk_again(self, plan: Plan, rng: np.random.Generator, action: str) -> WindowStream:
        """Walk the path over the window, from the fills and the dictionary at hand."""
        assert self.model is not None
        fitted, memory = self.model.fitted, self.memory.limited()
        if not fitted.settings:
            return self._begin(plan, rng, action)
        scaling = measured_again(memory, self.model, plan)
        X, seen = scaled(memory.rows, fitted.nonempty, scaling)
        usable = seen.any(axis=1)
        if not usable.any():  # all features that vary are silent
            return self._refine()
        start = scaled(memory.filled, fitted.nonempty, scaling)[0][usable]
        guess, hidden = scaled(memory.guess, fitted.nonempty, scaling)
        X, seen, guess = X[usable], seen[usable], guess[usable]
        hidden = hidden[usable] & seen
        stages = plan.stages
        if hidden.sum() < MaskingConfig.min_masked:
            hidden[:] = False
            stages = stages[: self.model.end]
        D = scaling.forward(fitted.scaling.backward(fitted.D))
        size = max(len(D), plan.components(len(X)))
        if size > len(D):
            D = grown(D, start, seen, size, rng)
        else:
            D = renewed(D, start, fitted.settings[-1], plan.batch_size)
        options = replace(plan.options, max_iter=max(1, plan.options.max_iter // FEWER_STEPS))
        task = Task(X, seen, len(D), plan.kernel, stages, options)
        with Workers() as workers:
            start = np.where(hidden, guess, start)
            result = walk(task, start, D, hidden, workers, restart_after=())
        return self._with(result, fitted.nonempty, scaling, plan, self.model.means.copy(), action)

    def _refine(self) -> WindowStream:
        """A few steps of the dictionary."""
        assert self.model is not None
        fitted = self.model.fitted
        if not fitted.settings:
            return replace(self, action="nothing varies")
        filled = self.memory.filled
        wild = ((filled < self.model.low) | (filled > self.model.high)).sum(axis=1) > 0
        if wild.all():
            return replace(self, action="nothing but wild values")
        X, _ = scaled(filled[~wild], fitted.nonempty, fitted.scaling)
        with Workers() as workers:
            D = refine(X, fitted.D, fitted.settings[-1], workers)
        settings = rescale_ridges(fitted.settings, self.model.stages, D)
        model = replace(self.model, fitted=replace(fitted, D=D, settings=settings))
        return replace(self, model=model, action="refined")

    def _with(
        self,
        result: PathSolution,
        nonempty: BoolArray,
        scaling: Scaling,
        plan: Plan,
        means: Array,
        action: str,
    ) -> WindowStream:
        """The stream with a model that was just walked; `means` are those of earlier windows."""
        rows = self.memory.rows
        observed = ~np.isnan(rows)
        means[nonempty] = scaling.mean
        end = len(result.settings)
        settings = rescale_ridges(result.settings, plan.stages, result.D)
        # Every second stage, counted from the end, is nearly as good for new rows at half the cost.
        thin = slice((end + 1) % 2, None, 2)
        fitted = Fitted(nonempty, scaling, result.D, settings[thin], ROUNDS)
        unit = np.full(self.width, np.nan)
        kept = np.flatnonzero(nonempty)[scaling.varying]
        unit[kept] = (
            scaling.spread[scaling.varying]
            if plan.scale
            else deviation(self.memory.typical()[:, kept])
        )
        low, high = self.memory.limits()
        model = Model(fitted, plan.stages[:end][thin], end, unit, means, low, high)
        filled = np.where(observed, rows, np.nan_to_num(means))
        usable = observed[:, kept].any(axis=1)
        part = filled[:, nonempty]
        if len(kept):
            part[usable] = scaling.backward(result.X)
        else:
            part = scaling.backward(result.X)
        filled[:, nonempty] = np.where(observed[:, nonempty], rows[:, nonempty], part)
        return replace(
            self,
            memory=replace(self.memory, filled=filled),
            model=model,
            walked=len(rows),
            rested=0,
            walks=self.walks + 1,
            action=action,
        )


def _arrive(
    batch: Memory, model: Model, plan: Plan, rng: np.random.Generator
) -> tuple[Memory, Array]:
    """Complete a batch, and predict a few entries that are hidden meanwhile: their errors."""
    rows = batch.rows
    hidden = np.zeros(rows.shape, bool)
    if plan.scoring:
        columns = model.columns
        hidden[:, columns] = mask_row_entries(~np.isnan(rows[:, columns]), rng)
    filled = model.complete(np.where(hidden, np.nan, rows))
    guess = np.where(hidden, filled, np.nan)
    with np.errstate(over="ignore"):
        errors = (np.abs(filled - rows) / model.unit)[hidden]
    return Memory(rows, np.where(np.isnan(rows), filled, rows), guess), errors
