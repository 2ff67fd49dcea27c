"""Iteratively reweighted least squares for the Schatten-p penalty, along falling smoothings.

For each smoothing gamma of a path the penalty is lowered over the missing entries. The gradient of
the penalty is that of the least squares with the weights of the moment, so weights are renewed with
every step; the curvature of the least squares, sample by sample, guides the steps (L-BFGS with a
line search: within a stage the penalty cannot rise). Between stages, samples that fit badly
restart from where their neighbors are: on unions of surfaces some start near the wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.baselines.schatten import Evaluation, Penalty, pick_landmarks
from hirank.core.curvature import inverse_curvature
from hirank.core.init import soft_impute
from hirank.core.masking import mask_entries
from hirank.core.objective import Basis
from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.optim import quasi_newton as qn
from hirank.optim.early_stopping import BestStage
from hirank.optim.loop import has_stalled, minimize
from hirank.optim.path import Setting, Stage, rescale_ridges, resolve_stage
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import Monitor

# Measured in docs/notes/baselines_vmc.md: below 1e-8 nothing was gained.
FIRST_SMOOTHING, LAST_SMOOTHING = 1e-1, 1e-8  # of the path, in units of the mean of k(x, x)
MIN_LANDMARKS, MAX_LANDMARKS = 150, 400  # of the automatic rule
WINDOW = 10  # steps over which progress is measured
MEMORY = 10  # steps that shape the curvature of L-BFGS
RENEW_AFTER = 40  # steps after which the curvature of the samples is measured again
SEARCH_TOL = 3e-3  # while specifications are compared, a rough answer is enough
MAX_CURVATURE = 250_000_000  # entries of the n x m x m curvature, one gigabyte: beyond, do without


@dataclass(frozen=True)
class KernelPath:
    """A kernel, its penalty, and the path along which the smoothing of the penalty falls."""

    kernel: Kernel
    bandwidth: float = 1.0  # multiple of the mean distance of samples, if the kernel has none
    power: float = 0.5
    n_landmarks: int | None = None  # None: by the number of samples
    smoothing: float | None = None  # of the last stage; None: where held-out entries are recovered
    max_iter: int = 100
    tol: float = 1e-3

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, a decade of smoothing each."""
        last = LAST_SMOOTHING if self.smoothing is None else self.smoothing
        count = max(1, round(float(np.log10(FIRST_SMOOTHING / last))) + 1)
        gammas = np.geomspace(max(FIRST_SMOOTHING, last), last, count)
        return tuple(Stage(self.bandwidth, float(gamma)) for gamma in gammas)

    def landmarks(self, X: Array, kernel: Kernel) -> IntArray | None:
        """Return the indices of rows of X, n x m, that represent all; None if all rows do."""
        r = self.n_landmarks
        if r is None:
            r = int(np.clip(round(3.8 * len(X) ** 0.6), MIN_LANDMARKS, MAX_LANDMARKS))
        return None if r >= len(X) else pick_landmarks(X, kernel, r)


class IRLSFit(NamedTuple):
    """A completed table and what describes it."""

    X: Array  # n x m
    D: Array  # landmarks, r x m
    path: KernelPath
    settings: tuple[Setting, ...]  # of the stages up to the last
    reason: StopReason  # why the last stage ended


def fit_irls(
    X: Array,
    observed: BoolArray,
    paths: Sequence[KernelPath],
    rng: np.random.Generator,
    monitor: Monitor,
) -> IRLSFit:
    """Impute the missing entries of X, n x m, along the best of the paths.

    If there is something to select, a few observed entries are held out first: the path, and its
    end if that is open, are those that recover them best. The last stage, or all of them if there
    were several paths, is then fitted again with all entries.
    """
    path = paths[0]
    selecting = len(paths) > 1 or path.smoothing is None
    held_out = np.zeros_like(observed)
    if selecting:
        held_out = mask_entries(observed, rng, selecting=True)
    with Workers() as workers:
        if not held_out.any():
            return PathFitter(path, observed, monitor, workers).fit(soft_impute(X, observed))
        training = observed & ~held_out
        path, best = _select_path(X, training, held_out, paths, monitor, workers)
        fitter = PathFitter(path, observed, monitor, workers)
        if len(paths) > 1:  # they were compared with a rough tolerance
            return fitter.fit(soft_impute(X, observed), last=best.number)
        start = np.where(observed, X, best.X)
        return fitter.fit(start, first=best.number, last=best.number)


def _select_path(
    X: Array,
    training: BoolArray,
    held_out: BoolArray,
    paths: Sequence[KernelPath],
    monitor: Monitor,
    workers: Workers,
) -> tuple[KernelPath, BestStage]:
    """Return the path that recovers held-out entries best, and its best stage."""
    start, found = soft_impute(X, training), list[tuple[float, KernelPath, BestStage]]()
    for path in paths:
        best = BestStage(X, held_out)
        rough = path if len(paths) == 1 else replace(path, tol=max(SEARCH_TOL, path.tol))
        PathFitter(rough, training, monitor, workers).fit(start, best=best)
        found.append((min(best.errors), path, best))
        if monitor.stopped:
            break
    _, path, best = min(found, key=lambda one: one[0])
    return path, best


@dataclass(frozen=True)
class PathFitter:
    """Minimizes the penalty along a path, with some entries, n x m, held fixed."""

    path: KernelPath
    fixed: BoolArray
    monitor: Monitor
    workers: Workers

    def fit(
        self,
        X: Array,
        *,
        first: int = 0,
        last: int | None = None,
        best: BestStage | None = None,
    ) -> IRLSFit:
        """Fit stages from X, n x m, to the last, or until held-out entries only get worse.

        With a given smoothing the path is followed to its end, whatever `best` finds on the way.
        """
        path, open_end = self.path, self.path.smoothing is None
        last = len(path.stages) - 1 if last is None else last
        for number in range(first, last + 1):
            setting = resolve_stage(path.stages[number], path.kernel, X, X)
            landmarks = path.landmarks(X, setting.kernel)
            penalty = Penalty(setting.kernel, setting.beta, path.power)
            X, reason = self._minimize(X, penalty, landmarks)
            D = X.copy() if landmarks is None else X[landmarks]
            scored = open_end or number == last or self.monitor.stopped
            past = best is not None and scored and best.is_past(number, X, D)
            if self.monitor.stopped or past:
                break
            if number in RESTART_AFTER and number < last:
                X, _ = restart_samples(X, D, self.fixed, setting, self.workers)
        stages = path.stages[: number + 1]
        settings = [resolve_stage(stage, path.kernel, D, D) for stage in stages[:-1]] + [setting]
        return IRLSFit(X, D, path, rescale_ridges(settings, path.stages, D), reason)

    def _minimize(
        self, X: Array, penalty: Penalty, landmarks: IntArray | None
    ) -> tuple[Array, StopReason]:
        """Minimize the penalty over the entries that are not fixed."""
        if self.fixed.all():
            self.monitor.record(penalty(X, landmarks).value, self.monitor.stages)
            return X, StopReason.NOTHING_TO_FIT
        solver = IRLS(X, self.fixed, penalty, landmarks, self.path.tol, self.workers)
        solution = minimize(
            solver, X[~self.fixed], max_iter=self.path.max_iter, monitor=self.monitor
        )
        return solver.table(solution.state.rows.x[0]), solution.reason


@dataclass(frozen=True)
class IRLSState:
    """Where the vector of the free entries stands."""

    rows: qn.Rows  # one row
    steps: int = 0

    @property
    def objective(self) -> float:
        return float(self.rows.value[0])


@dataclass(frozen=True)
class IRLS:
    """L-BFGS on the penalty of one stage, guided by the curvature of the least squares."""

    X: Array  # n x m
    fixed: BoolArray  # entries of X that stay
    penalty: Penalty
    landmarks: IntArray | None
    tol: float
    workers: Workers
    monotone: ClassVar[bool] = True

    def table(self, vector: Array) -> Array:
        """Return X with other values at its free entries."""
        full = self.X.copy()
        full[~self.fixed] = vector
        return full

    def init(self, start: Array) -> IRLSState:
        return IRLSState(self._begin(start))

    def step(self, state: IRLSState) -> IRLSState:
        rows, steps = state.rows, state.steps + 1
        if steps % RENEW_AFTER == 0:
            rows = self._begin(rows.x[0])
        point = qn.trial(rows)
        value, gradient = self._evaluate(self.table(point[0]))
        return IRLSState(qn.update(rows, point, np.array([value]), gradient[None]), steps)

    def terminate(self, state: IRLSState, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol, WINDOW)

    def _begin(self, vector: Array) -> qn.Rows:
        X = self.table(vector)
        at: Evaluation = self.penalty(X, self.landmarks)
        gradient, guide = at.gradient[~self.fixed], self._precondition(X, at.basis)
        return qn.begin(vector[None], np.array([at.value]), gradient[None], MEMORY, guide)

    def _evaluate(self, X: Array) -> tuple[float, Array]:
        """Return value and gradient at a point; an infinite value where it is out of range."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.penalty(X, self.landmarks)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros(int((~self.fixed).sum()))
        return at.value, at.gradient[~self.fixed]

    def _precondition(self, X: Array, basis: Basis) -> qn.Precondition | None:
        """Return the inverse curvature of the least squares in each sample of X, n x m."""
        if X.size * X.shape[1] > MAX_CURVATURE:
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
