"""A stream as in the paper: each row, or mini-batch, improves the dictionary and is forgotten.

Scaling and bandwidth are determined on the first rows and stay; all else is Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.core.columns import Columns
from hirank.core.masking import mask_row_entries
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.exceptions import SkippedRowsWarning, warn
from hirank.kernels import Kernel
from hirank.models.dictionary import check_points, points_work
from hirank.models.out_of_sample import complete_by_algorithm3
from hirank.online.buffer import column_means
from hirank.online.config import Algorithm2Config
from hirank.online.cost import EmpiricalCost
from hirank.online.prequential import PrequentialScores
from hirank.online.updates import Update
from hirank.optim.algorithm2 import Algorithm2State, Pass, falling_betas, paper_pass
from hirank.optim.algorithm3 import Algorithm3Config
from hirank.optim.path import Setting

BLOCK = 50
"""Rows whose held-out entries are predicted together."""


@dataclass(frozen=True)
class Algorithm2Model:
    """A dictionary that Algorithm 2 improves row by row."""

    columns: Columns
    setting: Setting
    state: Algorithm2State  # dictionary and momentum, in scaled units, r x v
    unit: Annotated[Array, Shape("v")]  # standard deviations, in scaled units
    steps: Algorithm3Config  # of the missing entries of each row

    @property
    def D(self) -> Array:
        return self.state.D

    @property
    def kernel(self) -> Kernel:
        return self.setting.kernel

    @property
    def work(self) -> float:
        """The multiplications of a block of rows: see `points_work`."""
        return points_work(self.D, self.steps.max_iter)

    def points(self) -> Array:
        """Return the dictionary in the units of the data, r x m."""
        return self.unscale(self.D, np.full((len(self.D), len(self.columns.has_values)), np.nan))

    def has_observed(self, rows: Array) -> BoolArray:
        """Return which rows, n x m, have a value that the model can use."""
        known = self.scale(rows)[1]
        return (known.sum(axis=1) > 0) | (known.shape[1] == 0)

    def scale(self, rows: Array) -> tuple[Array, BoolArray]:
        """Return rows, n x m, NaN = missing, in units of the model, n x v, 0 where missing."""
        X, known = self.columns.scale(rows, ~np.isnan(rows))
        return np.where(known, X, 0), known

    def unscale(self, X: Array, rows: Array) -> Array:
        """Return scaled rows, n x v, in the units of the data, n x m; known entries stay."""
        filled = np.zeros(rows.shape)
        filled[:, self.columns.has_values] = self.columns.scaling.backward(X)
        return np.where(np.isnan(rows), filled, rows)

    def complete(self, rows: Array) -> Array:
        """Impute rows, n x m, NaN = missing, by Algorithm 3."""
        X, known = self.scale(rows)
        return self.unscale(self.complete_scaled(X, known) if X.shape[1] else X, rows)

    def complete_scaled(self, X: Array, known: BoolArray) -> Array:
        """Impute scaled rows, n x v; means where that fails, and for rows without a value."""
        with Workers() as workers:
            basis = self.setting.basis(self.D)
            done = complete_by_algorithm3(X, known, basis, self.steps, workers)
        fine = np.isfinite(done.sum(axis=1)) & known.any(axis=1)
        return np.where(fine[:, None], done, np.where(known, X, self.columns.scaled_means))

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        v = int(self.columns.scaling.varying.sum())
        if self.D.shape[1] != v or len(self.unit) != v or not len(self.D):
            raise ValueError(f"dictionary and unit must describe the {v} features that vary")
        if not (self.unit > 0).all():
            raise ValueError("unit must be positive")
        check_points(self.D, (self.setting,), None)


@dataclass(frozen=True)
class Algorithm2Stream:
    """The state of a stream with Algorithm 2."""

    width: int
    seed: int
    pending: Annotated[Array, Shape("p m", finite=False)]  # rows that do not fill a batch yet
    model: Algorithm2Model | None = None
    scores: PrequentialScores = field(default_factory=PrequentialScores)
    cost: EmpiricalCost = field(default_factory=EmpiricalCost)
    samples: int = 0
    batches: int = 0
    update: Update = Update.NONE

    @classmethod
    def empty(cls, width: int, seed: int) -> Algorithm2Stream:
        """Return a stream that has seen no rows."""
        return cls(width, seed, np.zeros((0, width)))

    def means(self) -> Array:
        """Return the column means, m: those of the model, otherwise of the rows at hand, or NaN."""
        if self.model is None:
            return column_means(self.pending)
        columns = self.model.columns
        return np.where(columns.has_values, columns.means, np.nan)

    def needs(self, config: Algorithm2Config) -> int:
        """Return how many rows are best given together."""
        if self.model is None:
            return config.n_warmup - len(self.pending)
        return _block_size(config) - len(self.pending)

    def append(
        self, rows: Array, config: Algorithm2Config, *, impute: bool = False
    ) -> tuple[Algorithm2Stream, Array | None]:
        """Return the stream after rows; with `impute`, also the rows imputed.

        One by one, they are imputed in the course of the algorithm; in mini-batches, which may not
        be full yet, before it. Nothing is learned from rows without values, which stay missing.
        """
        some = np.flatnonzero(~np.isnan(rows).all(axis=1))
        samples = self.samples + len(rows)
        if not len(some):
            return replace(self, samples=samples), None
        stream = replace(
            self,
            pending=np.concatenate([self.pending, rows[some]]),
            samples=self.samples + int(some[-1]) + 1,
        )
        if self.model is None:
            stream = stream if stream.needs(config) > 0 else stream.learn(config)
            return replace(stream, samples=samples), None
        whole = len(stream.pending) // config.batch_size * config.batch_size
        at_once = config.batch_size == 1 and not len(self.pending)
        before = self.complete(rows, config) if impute and not at_once else None
        learned, done = stream._learn(whole, config)
        if impute and before is None:
            before = rows.copy()
            before[some] = done
        return replace(learned, samples=samples), before

    @property
    def can_impute(self) -> bool:
        """Whether there is a model that imputes rows."""
        return self.model is not None

    def complete(self, rows: Array, config: Algorithm2Config) -> Array:
        """Return rows, n x m, imputed; those without usable values stay missing."""
        assert self.model is not None
        filled, usable = rows.copy(), self.model.has_observed(rows)
        if usable.any():
            filled[usable] = self.model.complete(rows[usable])
        return filled

    def learn(self, config: Algorithm2Config) -> Algorithm2Stream:
        """Return the stream after it has learned from all pending rows."""
        stream = self if self.model is not None else self.start(self.pending, config)
        return stream._learn(len(stream.pending), config)[0]

    def fit_table(
        self, rows: Array, config: Algorithm2Config, stop: Callable[[int], bool]
    ) -> tuple[Algorithm2Stream, Array]:
        """Return the stream after all passes over a table, n x m, and the table imputed.

        `stop` is called with the number of each pass; a true return value makes it the last.
        """
        with closing(self.passes(rows, config)) as passes:  # an interrupt is lost in a destructor
            for number, after in enumerate(passes, start=1):  # noqa: B007
                if stop(number):
                    break
        return after

    def passes(
        self, rows: Array, config: Algorithm2Config
    ) -> Generator[tuple[Algorithm2Stream, Array], None, None]:
        """Yield the stream after each pass over a table, n x m, and the table as imputed in it."""
        stream = self.start(rows, config)
        model = stream.model
        assert model is not None
        X, known = model.scale(rows)
        if not X.shape[1]:
            yield replace(stream, samples=len(rows), batches=1), model.unscale(X, rows)
            return
        Z, state = np.zeros((len(X), len(model.D))), model.state
        for number, beta in enumerate(_betas(config), start=1):
            setting = replace(model.setting, beta=float(beta))
            X, Z, state, costs = _pass(X, known, Z, state.restart(), setting, config)
            stream = replace(
                stream,
                model=replace(model, state=state, setting=setting),
                cost=stream.cost.restart().add(costs),
                samples=len(rows),
                batches=number * -(-len(X) // config.batch_size),
            )
            yield stream, model.unscale(X, rows)

    def start(self, rows: Array, config: Algorithm2Config) -> Algorithm2Stream:
        """Determine scaling and bandwidth on rows, n x m, and draw the dictionary."""
        rng = np.random.default_rng([self.seed, self.batches])
        observed = ~np.isnan(rows)
        columns = Columns.measure(rows, observed, scale=config.scale and "standard")
        kept, known = columns.keep(rows, observed)
        spread = Scaling.measure(kept, known, scale="standard").spread
        varying = columns.scaling.varying
        X, known = columns.scale(rows, observed)
        X = np.where(known, X, 0)
        setting = Setting(config.kernel.resolve(X, config.bandwidth), config.beta, config.alpha)
        D = rng.standard_normal((config.n_components(len(X)), X.shape[1]))
        model = Algorithm2Model(
            columns,
            setting,
            Algorithm2State.start(D),
            spread[varying] / columns.scaling.spread[varying],
            config.steps,
        )
        cost = EmpiricalCost().recorded(config.record_cost)
        return replace(self, model=model, cost=cost, update=Update.STARTED)

    def _learn(self, count: int, config: Algorithm2Config) -> tuple[Algorithm2Stream, Array]:
        """Learn from the first `count` pending rows, and return them imputed."""
        model = self.model
        assert model is not None
        rows, pending = self.pending[:count], self.pending[count:]
        X, known = model.scale(rows)
        scores, filled, state = self.scores, X.copy(), model.state
        cost = self.cost.recorded(config.record_cost)
        size = _block_size(config)
        for start in range(0, count if X.shape[1] else 0, size):
            part = slice(start, start + size)
            now = replace(model, state=state)
            if config.monitor:
                at = self.samples - len(self.pending) + min(start + size, count)
                rng = np.random.default_rng([self.seed, at])
                scores = scores.add(_held_out_errors(now, X[part], known[part], rng), at)
            Z = np.zeros((len(X[part]), len(model.D)))
            done = _pass(X[part], known[part], Z, state, model.setting, config)
            filled[part], state, cost = done.X, done.state, cost.add(done.costs)
        stream = replace(
            self,
            pending=pending,
            model=replace(model, state=state, steps=config.steps),
            scores=scores,
            cost=cost,
            batches=self.batches + -(-count // config.batch_size),
            update=Update.REFINED,
        )
        return stream, model.unscale(filled, rows)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        m = self.width
        if m < 1 or self.pending.shape[1] != m or np.isinf(self.pending).any():
            raise ValueError(f"pending rows must have {m} features, and no infinite value")
        if self.seed >= 2**32 or self.samples < len(self.pending):
            raise ValueError("seed must be below 2**32, and samples must count all rows")
        if self.model is not None and len(self.model.columns.has_values) != m:
            raise ValueError(f"the model must have {m} features")


def _block_size(config: Algorithm2Config) -> int:
    return max(1, BLOCK // config.batch_size) * config.batch_size


def _held_out_errors(
    model: Algorithm2Model, X: Array, known: BoolArray, rng: np.random.Generator
) -> Array:
    """Return the errors of a few entries that are held out, in standard deviations."""
    held_out = mask_row_entries(known, rng)
    left = np.where(known & ~held_out, X, 0)
    predicted = model.complete_scaled(left, known & ~held_out)
    return (np.abs(predicted - X) / model.unit)[held_out]


def _pass(
    X: Array,
    known: BoolArray,
    Z: Array,
    state: Algorithm2State,
    setting: Setting,
    config: Algorithm2Config,
) -> Pass:
    with Workers():  # BLAS on one thread: these products are small
        done = paper_pass(
            X,
            known,
            Z,
            state,
            setting,
            batch_size=config.batch_size,
            max_inner=config.steps.max_iter,
            tol=config.steps.tol_change,
            momentum=config.steps.momentum,
            relaxation=config.steps.relaxation,
        )
    rejected = done.state.rejected - state.rejected
    if rejected:
        reason = (
            "they led to numbers that are not finite. Check their values, use scale=True, or "
            "OnlineImputer."
        )
        warn(SkippedRowsWarning(rejected, reason))
    return done


def _betas(config: Algorithm2Config) -> Array:
    """Return the ridge of each pass."""
    if config.falling is None or config.n_passes == 1:
        return np.full(config.n_passes, config.beta)
    return falling_betas(config.n_passes, *config.falling)
