"""A stream as in the paper: each sample, or mini-batch, improves the dictionary and is forgotten.

Scaling and bandwidth are settled on the first rows and stay; all else is Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import mask_row_entries
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.kernels import Kernel, Poly
from hirank.models.out_of_sample import paper_samples
from hirank.online.buffer import column_means
from hirank.online.config import Plan
from hirank.online.prequential import Scores
from hirank.optim.algorithm2 import PaperStream, falling_betas, paper_pass
from hirank.optim.path import Setting
from hirank.warn import warn_user

BLOCK = 50
"""Rows whose hidden entries are predicted together."""


@dataclass(frozen=True)
class PaperModel:
    """What was learned."""

    nonempty: BoolArray  # m: features that had a value when the stream started
    scaling: Scaling  # of those
    setting: Setting
    stream: PaperStream  # dictionary and momentum, in scaled units, r x v
    unit: Array  # v: standard deviations, in scaled units
    max_inner: int
    tol: float

    @property
    def D(self) -> Array:
        return self.stream.D

    @property
    def kernel(self) -> Kernel:
        return self.setting.kernel

    @property
    def means(self) -> Array:
        """Of the features, m; 0 for those without a value at the start."""
        means = np.zeros(len(self.nonempty))
        means[self.nonempty] = self.scaling.mean
        return means

    def dictionary(self) -> Array:
        """In the units of the data, r x m."""
        return self.raw(self.D, np.full((len(self.D), len(self.nonempty)), np.nan))

    def told(self, rows: Array) -> BoolArray:
        """Which rows, n x m, have a value to go by."""
        seen = self.scaled(rows)[1]
        return (seen.sum(axis=1) > 0) | (seen.shape[1] == 0)

    def scaled(self, rows: Array) -> tuple[Array, BoolArray]:
        """Rows, n x m, NaN = missing, in units of the model, n x v, 0 where missing."""
        known = ~np.isnan(rows)
        seen = known[:, self.nonempty][:, self.scaling.varying]
        X = self.scaling.forward(np.where(known, rows, 0)[:, self.nonempty])
        return np.where(seen, X, 0), seen

    def raw(self, X: Array, rows: Array) -> Array:
        """Scaled rows, n x v, in the units of the data, n x m; known entries as they are."""
        filled = np.zeros(rows.shape)
        filled[:, self.nonempty] = self.scaling.backward(X)
        return np.where(np.isnan(rows), filled, rows)

    def complete(self, rows: Array) -> Array:
        """Algorithm 3: fill rows, n x m, NaN = missing."""
        X, seen = self.scaled(rows)
        if X.shape[1]:
            with Workers(), np.errstate(all="ignore"):
                done = paper_samples(
                    X,
                    seen,
                    self.setting.basis(self.D),
                    max_iter=self.max_inner,
                    tol=self.tol,
                    relaxation=1.0 if isinstance(self.setting.kernel, Poly) else 1.1,
                )[0]
            # Rows that led nowhere, and rows without a value, get the mean.
            fine = np.isfinite(done.sum(axis=1)) & seen.any(axis=1)
            means = self.scaling.forward(self.scaling.mean[None])
            X = np.where(fine[:, None], done, np.where(seen, X, means))
        return self.raw(X, rows)


@dataclass(frozen=True)
class SampleStream:
    """Where a stream stands."""

    width: int
    seed: int
    pending: Array  # rows that do not fill a batch yet, p x m
    model: PaperModel | None = None
    scores: Scores = field(default_factory=Scores)
    samples: int = 0
    batches: int = 0
    action: str = ""

    @classmethod
    def empty(cls, width: int, seed: int) -> SampleStream:
        return cls(width, seed, np.zeros((0, width)))

    def means(self) -> Array:
        """Of the features, m: those of the model, else of the rows that are held, else 0."""
        return column_means(self.pending) if self.model is None else self.model.means

    def needs(self, plan: Plan) -> int:
        """Rows that are best given together."""
        if self.model is None:
            return plan.n_start - len(self.pending)
        return max(1, BLOCK // plan.batch_size) * plan.batch_size - len(self.pending)

    def take(
        self, rows: Array, plan: Plan, *, answer: bool = False
    ) -> tuple[SampleStream, Array | None]:
        """With rows, each with an observed entry; if asked for, also the rows as completed.

        One by one, they are completed in the course of the algorithm; in mini-batches, which may
        not be full yet, before it.
        """
        stream = replace(
            self, pending=np.concatenate([self.pending, rows]), samples=self.samples + len(rows)
        )
        if self.model is None:
            return (stream if stream.needs(plan) > 0 else stream.learn(plan)), None
        whole = len(stream.pending) // plan.batch_size * plan.batch_size
        at_once = plan.batch_size == 1 and not len(self.pending)
        before = self.model.complete(rows) if answer and not at_once else None
        learned, filled = stream._pass(whole, plan)
        return learned, filled if answer and before is None else before

    def learn(self, plan: Plan) -> SampleStream:
        """From all rows that are pending."""
        stream = self if self.model is not None else self.begin(self.pending, plan)
        return stream._pass(len(stream.pending), plan)[0]

    def over_table(
        self, rows: Array, plan: Plan, stop: Callable[[int], bool]
    ) -> tuple[SampleStream, Array]:
        """All passes over a table, n x m: the stream after them, and the table completed.

        `stop` is told the number of each pass that is done; a true answer makes it the last.
        """
        for number, after in enumerate(self.passes(rows, plan), start=1):  # noqa: B007
            if stop(number):
                break
        return after

    def passes(self, rows: Array, plan: Plan) -> Iterator[tuple[SampleStream, Array]]:
        """The stream after each pass over a table, n x m, and the table as completed in it."""
        stream = self.begin(rows, plan)
        model = stream.model
        assert model is not None
        X, seen = model.scaled(rows)
        if not X.shape[1]:
            yield replace(stream, samples=len(rows), batches=1), model.raw(X, rows)
            return
        Z, state = np.zeros((len(X), len(model.D))), model.stream
        for number, beta in enumerate(_betas(plan), start=1):
            setting = replace(model.setting, beta=float(beta))
            X, Z, state = _paper_pass(X, seen, Z, state.restart(), setting, plan)
            after = replace(model, stream=state, setting=setting)
            batches = number * -(-len(X) // plan.batch_size)
            after_pass = replace(stream, model=after, samples=len(rows), batches=batches)
            yield after_pass, model.raw(X, rows)

    def begin(self, rows: Array, plan: Plan) -> SampleStream:
        """Settle scaling and bandwidth on rows, n x m, and draw the dictionary."""
        rng = np.random.default_rng([self.seed, self.batches])
        known = ~np.isnan(rows)
        nonempty = known.sum(axis=0) > 0
        kept = rows[:, nonempty], known[:, nonempty]
        scaling = Scaling.measure(*kept, scale=plan.scale and "standard")
        spread = Scaling.measure(*kept, scale="standard").spread
        varying = scaling.varying
        X = scaling.forward(np.where(kept[1], kept[0], 0))
        X = np.where(kept[1][:, varying], X, 0)
        stage = plan.stages[0]
        setting = Setting(
            plan.kernel.resolve(X, stage.bandwidth), stage.beta, float(plan.options.alpha)
        )
        D = rng.standard_normal((plan.components(len(X)), X.shape[1]))
        model = PaperModel(
            nonempty,
            scaling,
            setting,
            PaperStream.start(D),
            spread[varying] / scaling.spread[varying],
            plan.options.max_iter,
            plan.options.tol,
        )
        return replace(self, model=model, action="started")

    def _pass(self, count: int, plan: Plan) -> tuple[SampleStream, Array]:
        """Learn from the first `count` pending rows; returns them completed."""
        model = self.model
        assert model is not None
        rows, pending = self.pending[:count], self.pending[count:]
        X, seen = model.scaled(rows)
        scores, filled, state = self.scores, X.copy(), model.stream
        size = max(1, BLOCK // plan.batch_size) * plan.batch_size
        for start in range(0, count if X.shape[1] else 0, size):
            part = slice(start, start + size)
            now = replace(model, stream=state)
            if plan.scoring:
                at = self.samples - len(self.pending) + min(start + size, count)
                rng = np.random.default_rng([self.seed, at])
                scores = scores.add(_predicted(now, X[part], seen[part], rng), at)
            Z = np.zeros((len(X[part]), len(model.D)))
            filled[part], _, state = _paper_pass(X[part], seen[part], Z, state, model.setting, plan)
        done = replace(
            self,
            pending=pending,
            model=replace(model, stream=state),
            scores=scores,
            batches=self.batches + -(-count // plan.batch_size),
            action="learned",
        )
        return done, model.raw(filled, rows)


def _predicted(model: PaperModel, X: Array, seen: BoolArray, rng: np.random.Generator) -> Array:
    """Errors of a few entries that are hidden, in standard deviations."""
    hidden = mask_row_entries(seen, rng)
    left = np.where(seen & ~hidden, X, np.nan)
    flat = replace(
        model,
        nonempty=np.ones(X.shape[1], bool),
        scaling=Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]), np.zeros(X.shape[1])),
    )
    return (np.abs(flat.complete(left) - X) / model.unit)[hidden]


def _paper_pass(
    X: Array,
    seen: BoolArray,
    Z: Array,
    state: PaperStream,
    setting: Setting,
    plan: Plan,
) -> tuple[Array, Array, PaperStream]:
    with Workers():  # BLAS on one thread: these products are small
        X, Z, after = paper_pass(
            X,
            seen,
            Z,
            state,
            setting,
            batch_size=plan.batch_size,
            max_inner=plan.options.max_iter,
            tol=plan.options.tol,
        )
    if after.rejected > state.rejected:
        warn_user(
            f"{after.rejected - state.rejected} sample(s) led to numbers that are not finite and "
            "were not learned from. Check their values, use scale=True, or mode='window'."
        )
    return X, Z, after


def _betas(plan: Plan) -> Array:
    """The ridge of each pass."""
    if plan.falling is None or plan.passes == 1:
        return np.full(plan.passes, plan.stages[0].beta)
    return falling_betas(plan.passes, *plan.falling)
