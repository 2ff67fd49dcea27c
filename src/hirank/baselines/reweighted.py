"""Iteratively reweighted least squares for the Schatten-p penalty, along falling smoothings.

For each smoothing gamma of a path the penalty is lowered over the missing entries. The gradient of
the penalty is that of the least squares with the weights of the moment, so weights are renewed with
every step; the curvature of the least squares, sample by sample, guides the steps (L-BFGS with a
line search: within a stage the penalty can't rise). Between stages, samples that fit badly try
again from where their neighbors are: on unions of surfaces some start near the wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.baselines._recorder import Recorder
from hirank.baselines.schatten import Evaluation, Penalty, pick_landmarks
from hirank.core.curvature import inverse_curvature
from hirank.core.init import soft_impute
from hirank.core.masking import mask_entries
from hirank.core.objective import Basis
from hirank.core.threads import Workers
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.optim import quasi_newton as qn
from hirank.optim.early_stopping import BestStage
from hirank.optim.path import Setting, Stage, rescale_ridges, resolve_stage
from hirank.optim.restarts import restart_samples

FIRST_SMOOTHING, LAST_SMOOTHING = 1e-1, 1e-8
"""Smoothing of the first and the last stage, in units of the mean of k(x, x)."""
FEWEST_LANDMARKS, MOST_LANDMARKS = 150, 400
"""What the automatic rule keeps to."""
WINDOW = 10
"""Steps over which progress is judged."""
MEMORY = 10
RENEW = 40
"""Steps after which the curvature is measured again."""
SEARCH_TOL = 3e-3
"""While choosing, a rough answer will do."""
LARGEST_CURVATURE = 250_000_000
"""Entries of the n x m x m curvature beyond which the steps do without: one gigabyte."""


@dataclass(frozen=True)
class Plan:
    """How to complete a table."""

    kernel: Kernel
    bandwidth: float = 1.0  # multiple of the mean distance of samples, if the kernel has none
    power: float = 0.5
    n_landmarks: int | None = None  # None: after the number of samples
    smoothing: float | None = None  # of the last stage; None: where hidden entries come out best
    max_iter: int = 100
    tol: float = 1e-3

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The path, a decade of smoothing a stage."""
        last = LAST_SMOOTHING if self.smoothing is None else self.smoothing
        count = max(1, round(float(np.log10(FIRST_SMOOTHING / last))) + 1)
        gammas = np.geomspace(max(FIRST_SMOOTHING, last), last, count)
        return tuple(Stage(self.bandwidth, float(gamma)) for gamma in gammas)

    def landmarks(self, X: Array, kernel: Kernel) -> IntArray | None:
        """Indices of rows of X, n x m, to stand for all; None if all do."""
        r = self.n_landmarks
        if r is None:
            r = int(np.clip(round(3.8 * len(X) ** 0.6), FEWEST_LANDMARKS, MOST_LANDMARKS))
        return None if r >= len(X) else pick_landmarks(X, kernel, r)


@dataclass(frozen=True)
class Found:
    """A completed table and what describes it."""

    X: Array  # n x m
    D: Array  # landmarks, r x m
    plan: Plan
    settings: tuple[Setting, ...]  # of the stages up to the last
    reason: str  # why the last stage ended


def complete_table(
    X: Array,
    observed: BoolArray,
    plans: Sequence[Plan],
    rng: np.random.Generator,
    record: Recorder,
) -> Found:
    """Fill the missing entries of X, n x m, after the best of the plans.

    If there is something to choose, a few observed entries are hidden first: the plan, and the end
    of its path if that is open, are those that recover them best. The last stage, or all of them if
    there were several plans, is then walked again with all entries.
    """
    plan = plans[0]
    choice = len(plans) > 1 or plan.smoothing is None
    hidden = mask_entries(observed, rng, selecting=True) if choice else np.zeros_like(observed)
    with Workers() as workers:
        if not hidden.any():
            return Walk(plan, observed, record, workers)(soft_impute(X, observed))
        plan, best = _choose(X, observed & ~hidden, hidden, plans, record, workers)
        walk = Walk(plan, observed, record, workers)
        if len(plans) > 1:  # the way there was a rough one
            found = walk(soft_impute(X, observed), last=best.number)
        else:
            start = np.where(observed, X, best.X)
            found = walk(start, first=best.number, last=best.number)
    count = best.number + 1
    if count == len(plan.stages) or record.stopped:
        return found
    why = f"Hidden entries were recovered best at stage {count} of {len(plan.stages)}"
    return replace(found, reason=f"{why}, so the path ends there. {found.reason}")


def _choose(
    X: Array,
    seen: BoolArray,
    hidden: BoolArray,
    plans: Sequence[Plan],
    record: Recorder,
    workers: Workers,
) -> tuple[Plan, BestStage]:
    """The plan that recovers hidden entries best, and its best stage."""
    start, found = soft_impute(X, seen), list[tuple[float, Plan, BestStage]]()
    for plan in plans:
        best = BestStage(X, hidden)
        rough = plan if len(plans) == 1 else replace(plan, tol=max(SEARCH_TOL, plan.tol))
        Walk(rough, seen, record, workers)(start, best=best)
        found.append((best.lowest, plan, best))
        if record.stopped:
            break
    _, plan, best = min(found, key=lambda one: one[0])
    return plan, best


@dataclass(frozen=True)
class Walk:
    """The stages of a plan with some entries, n x m, held fixed."""

    plan: Plan
    fixed: BoolArray
    record: Recorder
    workers: Workers

    def __call__(
        self,
        X: Array,
        *,
        first: int = 0,
        last: int | None = None,
        best: BestStage | None = None,
    ) -> Found:
        """Walk stages from X, n x m, or until hidden entries only get worse.

        With a given smoothing the path is walked to its end, whatever `best` says on the way.
        """
        plan, open_end = self.plan, self.plan.smoothing is None
        last = len(plan.stages) - 1 if last is None else last
        for number in range(first, last + 1):
            setting = resolve_stage(plan.stages[number], plan.kernel, X, X)
            landmarks = plan.landmarks(X, setting.kernel)
            penalty = Penalty(setting.kernel, setting.beta, plan.power)
            X, reason = self._descend(X, penalty, landmarks)
            D = X.copy() if landmarks is None else X[landmarks]
            judged = open_end or number == last or self.record.stopped
            past = best is not None and judged and best.is_past(number, X, D)
            if self.record.stopped or past:
                break
            if number in RESTART_AFTER and number < last:
                X, _ = restart_samples(X, D, self.fixed, setting, self.workers)
        stages = plan.stages[: number + 1]
        settings = [resolve_stage(stage, plan.kernel, D, D) for stage in stages[:-1]] + [setting]
        return Found(X, D, plan, rescale_ridges(settings, plan.stages, D), reason)

    def _descend(self, X: Array, penalty: Penalty, landmarks: IntArray | None) -> tuple[Array, str]:
        """Lower the penalty over the entries that are not fixed."""
        missing, stage = np.flatnonzero(~self.fixed), self.record.stages

        def table(vector: Array) -> Array:
            full = X.copy()
            full.ravel()[missing] = vector
            return full

        def begin(vector: Array, at: Evaluation) -> qn.Rows:
            guide = self._guide(table(vector), at.basis)
            gradient = at.gradient.ravel()[missing]
            return qn.begin(vector[None], np.array([at.value]), gradient[None], MEMORY, guide)

        vector = X.ravel()[missing]
        at = penalty(X, landmarks)
        if not len(missing) and not self.record.stopped:
            self.record.record(at.value, stage)
            return X, "Nothing was missing."
        if self.record.stopped:  # while choosing; the start is what there is
            return X, self.record.ended()
        rows, history = begin(vector, at), [at.value]
        for step in range(1, self.plan.max_iter + 1):
            if step % RENEW == 0:
                rows = begin(rows.x[0], penalty(table(rows.x[0]), landmarks))
            point = qn.trial(rows)
            value, gradient = _tried(penalty, table(point[0]), landmarks)
            rows = qn.update(rows, point, np.array([value]), gradient.ravel()[missing][None])
            history.append(float(rows.value[0]))
            if self.record.record(history[-1], stage):
                return table(rows.x[0]), self.record.ended()
            if step >= WINDOW and history[-1 - WINDOW] - history[-1] <= self.plan.tol * history[-1]:
                return table(rows.x[0]), self.record.converged(self.plan.tol, "the penalty")
        return table(rows.x[0]), self.record.exhausted(self.plan.max_iter)

    def _guide(self, X: Array, basis: Basis) -> qn.Precondition | None:
        """The inverse curvature of the least squares in each sample of X, n x m."""
        if X.size * X.shape[1] > LARGEST_CURVATURE:
            return None
        free = ~self.fixed
        inverses, unit = inverse_curvature(X, basis, self.workers, free)

        def apply(vectors: Array) -> Array:
            size = np.abs(vectors).max(initial=0) or 1.0
            full = np.zeros(X.shape, np.float32)
            full[free] = vectors[0] / size
            moves = np.matmul(inverses, full[:, :, None])[:, :, 0]
            return moves[free][None].astype(np.float64) * (size / unit)

        return apply


def _tried(penalty: Penalty, X: Array, landmarks: IntArray | None) -> tuple[float, Array]:
    """Value and gradient at a point that may be out of bounds."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            at = penalty(X, landmarks)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(X)
    return at.value, at.gradient
