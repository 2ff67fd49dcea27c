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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array, Kernel
from hirank.model.scaling import Scaling
from hirank.model.workers import Workers
from hirank.solvers import held_out
from hirank.solvers.fitted import Fitted
from hirank.solvers.loop import Result, nothing_to_learn
from hirank.solvers.path import Stage, resettle
from hirank.solvers.table import Task, complete_table, walk
from hirank.solvers.update import grown, refine, renewed
from hirank.streams.plan import Plan
from hirank.streams.scores import Scores, hide_few

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
"""Times these: points of the dictionary are so far off that no step brings them back."""
WORST = 1e9
"""Largest error that is kept, in standard deviations."""
FAR = 20.0
"""Interquartile ranges beyond the quartiles where values are wild."""
SHIFT = 1.0
"""Standard deviations by which a mean may move before the features are scaled again."""
STRETCH = 2.0
"""Factor by which a standard deviation may change before that."""


@dataclass(frozen=True)
class Memory:
    """The last rows, in the units of the data, w x m."""

    rows: NDArray[np.float64]  # NaN where missing
    filled: NDArray[np.float64]  # completed
    guess: NDArray[np.float64]  # what hidden entries were taken for on arrival, else NaN

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> Memory:
        """Rows that nothing has been done with yet."""
        return cls(rows, rows, np.full(rows.shape, np.nan))

    def __len__(self) -> int:
        return len(self.rows)

    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How low and how high the values of each feature may reasonably be, m and m."""
        low, high = np.full(self.rows.shape[1], -np.inf), np.full(self.rows.shape[1], np.inf)
        alive = (~np.isnan(self.rows)).sum(axis=0) > 0
        first, third = np.nanquantile(self.rows[:, alive], (0.25, 0.75), axis=0)
        with np.errstate(over="ignore"):
            reach = FAR * (third - first)
            # A feature that is nearly always the same may be far from it now and then.
            low[alive] = np.where(reach > 0, first - reach, -np.inf)
            high[alive] = np.where(reach > 0, third + reach, np.inf)
        return low, high

    def limited(self) -> Memory:
        """With wild values brought to their limits: one of them would spoil the scale of all."""
        low, high = self.limits()
        return Memory(*(np.clip(a, low, high) for a in (self.rows, self.filled, self.guess)))

    def last(self, n: int) -> Memory:
        return Memory(self.rows[-n:], self.filled[-n:], self.guess[-n:])

    def joined(self, other: Memory) -> Memory:
        return Memory(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.filled, other.filled]),
            np.concatenate([self.guess, other.guess]),
        )

    def widened(self, count: int) -> Memory:
        return Memory(
            _wider(self.rows, count, np.nan),
            _wider(self.filled, count, 0.0),
            _wider(self.guess, count, np.nan),
        )


@dataclass(frozen=True)
class Model:
    """What was learned, and what learning on needs."""

    fitted: Fitted
    stages: tuple[Stage, ...]  # those of fitted.settings
    end: int  # stages of the path that were walked
    unit: NDArray[np.float64]  # m: standard deviations; NaN for features that do not vary
    means: NDArray[np.float64]  # m: for features without a value in the window; NaN if never any
    low: NDArray[np.float64]  # m: values beyond low and high are wild
    high: NDArray[np.float64]

    @property
    def columns(self) -> NDArray[np.intp]:
        """The features that the dictionary is about."""
        return np.flatnonzero(self.fitted.nonempty)[self.fitted.scaling.varying]

    @property
    def kernel(self) -> Kernel | None:
        """That of the last stage; None if no feature varies."""
        settings = self.fitted.settings
        return settings[-1].kernel if settings else None

    def dictionary(self) -> NDArray[np.float64]:
        """In the units of the data, r x m."""
        D = np.zeros((len(self.fitted.D), len(self.means))) + np.nan_to_num(self.means)
        D[:, self.fitted.nonempty] = self.fitted.dictionary()
        return D

    def widened(self, count: int) -> Model:
        fitted = replace(self.fitted, nonempty=_wider(self.fitted.nonempty, count, False))
        unit, means = (_wider(a, count, np.nan) for a in (self.unit, self.means))
        low, high = _wider(self.low, count, -np.inf), _wider(self.high, count, np.inf)
        return replace(self, fitted=fitted, unit=unit, means=means, low=low, high=high)

    def complete(self, rows: Array) -> NDArray[np.float64]:
        """Fill rows, n x m, NaN = missing; 0 where a feature was never seen."""
        observed = ~np.isnan(rows)
        filled = np.where(observed, rows, np.nan_to_num(self.means)).astype(np.float64)
        tame = np.clip(rows, self.low, self.high)
        kept = self.fitted.nonempty
        done = self.fitted.complete(tame, observed)
        filled[:, kept] = np.where(observed[:, kept], filled[:, kept], done)
        return filled


@dataclass(frozen=True)
class WindowStream:
    """Where a stream stands."""

    width: int  # features
    seed: int
    pending: NDArray[np.float64]  # rows since the last batch, p x m
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
            pending=_wider(self.pending, count, np.nan),
            memory=self.memory.widened(count),
            model=None if self.model is None else self.model.widened(count),
        )

    def needs(self, plan: Plan) -> int:
        """Rows still to come before something is learned."""
        whole = plan.batch_size if self.model is not None else plan.n_start
        return whole - len(self.pending)

    def take(
        self, rows: NDArray[np.float64], plan: Plan, *, answer: bool = False
    ) -> tuple[WindowStream, NDArray[np.float64] | None]:
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
            model=_with_late_means(self.model, memory),
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
        if self.rested >= REST and _came_alive(self.memory, model):
            return self._begin(plan, rng, "started over: a feature has come alive")
        growth = GROWTH if self.walked >= plan.n_start else YOUNG_GROWTH
        full = n == plan.window and growth * self.walked > plan.window > self.walked
        if n >= growth * self.walked or full:
            return self._walk_again(plan, rng, "walked again: the window has grown")
        # Fills as poor as means: the next batch tells whether to start over. Until then, wait.
        if self.rested >= self.rest and not self.suspect:
            if plan.react and self.scores.jumped:
                return self._react(plan, rng, "walked again: fills had become worse")
            change = _scale_change(self.memory, model, plan)
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
        scaling = Scaling.measure(rows[:, nonempty], observed[:, nonempty], scale=plan.scale)
        X, seen = _scaled(rows, nonempty, scaling)
        usable = seen.any(axis=1)
        r = plan.components(int(usable.sum()))
        if scaling.varying.any():
            task = Task(X[usable], seen[usable], r, plan.kernel, plan.stages, plan.options)
            with Workers() as workers:
                result = complete_table(task, workers, rng)
        else:
            result = nothing_to_learn(X, r)
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
        scaling = _measured_again(memory, self.model, plan)
        X, seen = _scaled(memory.rows, fitted.nonempty, scaling)
        usable = seen.any(axis=1)
        if not usable.any():  # all features that vary are silent
            return self._refine()
        start = _scaled(memory.filled, fitted.nonempty, scaling)[0][usable]
        guess, hidden = _scaled(memory.guess, fitted.nonempty, scaling)
        X, seen, guess = X[usable], seen[usable], guess[usable]
        hidden = hidden[usable] & seen
        stages = plan.stages
        if hidden.sum() < held_out.FEWEST:
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
            result = walk(task, start, D, hidden, workers, look_after=())
        return self._with(result, fitted.nonempty, scaling, plan, self.model.means.copy(), action)

    def _refine(self) -> WindowStream:
        """A few steps of the dictionary."""
        assert self.model is not None
        fitted = self.model.fitted
        if not fitted.settings:
            return replace(self, action="nothing varies")
        tame = np.clip(self.memory.filled, self.model.low, self.model.high)
        X, _ = _scaled(tame, fitted.nonempty, fitted.scaling)
        with Workers() as workers:
            D = refine(X, fitted.D, fitted.settings[-1], workers)
        settings = resettle(fitted.settings, self.model.stages, D)
        model = replace(self.model, fitted=replace(fitted, D=D, settings=settings))
        return replace(self, model=model, action="refined")

    def _with(
        self,
        result: Result,
        nonempty: NDArray[np.bool_],
        scaling: Scaling,
        plan: Plan,
        means: NDArray[np.float64],
        action: str,
    ) -> WindowStream:
        """The stream with a model that was just walked; `means` are those of earlier windows."""
        rows = self.memory.rows
        observed = ~np.isnan(rows)
        means[nonempty] = scaling.mean
        end = len(result.settings)
        settings = resettle(result.settings, plan.stages, result.D)
        # Every second stage, counted from the end, is nearly as good for new rows at half the cost.
        thin = slice((end + 1) % 2, None, 2)
        fitted = Fitted(nonempty, scaling, result.D, settings[thin], ROUNDS)
        unit = np.full(self.width, np.nan)
        kept = np.flatnonzero(nonempty)[scaling.varying]
        unit[kept] = (
            scaling.spread[scaling.varying]
            if plan.scale
            else _deviation(self.memory.limited().rows[:, kept])
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
) -> tuple[Memory, NDArray[np.float64]]:
    """Complete a batch, and predict a few entries that are hidden meanwhile: their errors."""
    rows = batch.rows
    hidden = np.zeros(rows.shape, bool)
    if plan.scoring:
        columns = model.columns
        hidden[:, columns] = hide_few(~np.isnan(rows[:, columns]), rng)
    filled = model.complete(np.where(hidden, np.nan, rows))
    guess = np.where(hidden, filled, np.nan)
    with np.errstate(over="ignore"):
        errors = np.minimum(np.abs(filled - rows) / model.unit, WORST)[hidden]
    return Memory(rows, np.where(np.isnan(rows), filled, rows), guess), errors


def _scaled(
    rows: NDArray[np.float64], nonempty: NDArray[np.bool_], scaling: Scaling
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Rows, n x m, as the solvers want them, n x v, and which entries are known."""
    known = ~np.isnan(rows)
    X = scaling.forward(np.where(known, rows, 0)[:, nonempty])
    return X, known[:, nonempty][:, scaling.varying]


def _wider(array: NDArray[Any], count: int, value: float) -> NDArray[Any]:
    """With so many columns more, or entries if there is one dimension, all of one value."""
    more = np.full((*array.shape[:-1], count), value, array.dtype)
    return np.concatenate([array, more], axis=-1)


def _deviation(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return Scaling.measure(rows, ~np.isnan(rows), scale=True).spread


def _varies_now(memory: Memory) -> NDArray[np.bool_]:
    """Which features have two different values in the window, m."""
    low = np.where(np.isnan(memory.rows), np.inf, memory.rows).min(axis=0)
    high = np.where(np.isnan(memory.rows), -np.inf, memory.rows).max(axis=0)
    varies: NDArray[np.bool_] = low < high
    return varies


def _came_alive(memory: Memory, model: Model) -> bool:
    """Whether a feature varies now that did not when the model was started."""
    known = np.zeros(len(model.means), bool)
    known[model.columns] = True
    new = _varies_now(memory) & ~known
    if not new.any():
        return False
    return bool((_deviation(memory.rows[:, new]) > 0).any())


def _with_late_means(model: Model, memory: Memory) -> Model:
    """With the means of features that had no value when the model was started."""
    late = ~model.fitted.nonempty & ~np.isnan(memory.rows).all(axis=0)
    if not late.any():
        return model
    means = model.means.copy()
    means[late] = np.nanmean(memory.rows[:, late], axis=0)
    return replace(model, means=means)


def _measured_again(memory: Memory, model: Model, plan: Plan) -> Scaling:
    """Scaling of the model's features on the window; as before for those that have gone quiet."""
    fitted = model.fitted
    rows, old = memory.limited().rows[:, fitted.nonempty], fitted.scaling
    center, spread, mean = old.center.copy(), old.spread.copy(), old.mean.copy()
    alive = (~np.isnan(rows)).sum(axis=0) > 0
    new = Scaling.measure(rows[:, alive], ~np.isnan(rows[:, alive]), scale=plan.scale)
    mean[alive] = new.mean
    take = old.varying & alive
    take[alive] &= new.varying
    center[take], spread[take] = new.center[take[alive]], new.spread[take[alive]]
    constant = alive & ~old.varying
    center[constant] = new.mean[constant[alive]]
    return Scaling(center, spread, mean)


def _scale_change(memory: Memory, model: Model, plan: Plan) -> float:
    """How far means and standard deviations of features are from those in use; below 1 is fine."""
    old, new = model.fitted.scaling, _measured_again(memory, model, plan)
    v = old.varying
    if not plan.scale or not v.any():
        return 0.0
    shift = np.abs(new.center - old.center)[v] / (SHIFT * old.spread[v])
    ratio = new.spread[v] / old.spread[v]
    return float(np.max([shift, ratio / STRETCH, 1 / (STRETCH * ratio)]))
