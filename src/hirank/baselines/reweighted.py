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
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.baselines.schatten import Penalty, pick_landmarks
from hirank.core.curvature import inverse_curvature
from hirank.core.init import soft_impute
from hirank.core.masking import mask_entries
from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.optim import quasi_newton as qn
from hirank.optim.early_stopping import BestStage
from hirank.optim.lbfgs import LBFGS, MAX_CURVATURE, LBFGSState
from hirank.optim.loop import has_stalled, minimize
from hirank.optim.path import WINDOW, PathPoint, Setting, Stage, rescale_ridges, resolve_stage
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import Monitor

# Measured in docs/notes/baselines_vmc.md: below 1e-8 nothing was gained.
FIRST_SMOOTHING, LAST_SMOOTHING = 1e-1, 1e-8  # of the path, in units of the mean of k(x, x)
MIN_LANDMARKS, MAX_LANDMARKS = 150, 400  # of the automatic rule
SEARCH_TOL = 3e-3  # while specifications are compared, a rough answer is enough


@dataclass(frozen=True)
class KernelPath:
    """A kernel, its penalty, and the path along which the smoothing of the penalty falls."""

    kernel: Kernel
    bandwidth: float = 1.0  # multiple of the mean distance of samples, if the kernel has none
    power: float = 0.5
    n_landmarks: int | str = "auto"  # by the number of samples
    smoothing: float | str = "auto"  # of the last stage: where held-out entries are recovered best
    max_iter: int = 100
    tol: float = 1e-3

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, a decade of smoothing each."""
        last = LAST_SMOOTHING if self.smoothing == "auto" else float(self.smoothing)
        count = max(1, round(float(np.log10(FIRST_SMOOTHING / last))) + 1)
        gammas = np.geomspace(max(FIRST_SMOOTHING, last), last, count)
        return tuple(Stage(self.bandwidth, float(gamma)) for gamma in gammas)

    def landmarks(self, X: Array, kernel: Kernel) -> IntArray | None:
        """Return the indices of rows of X, n x m, that represent all; None if all rows do."""
        r = int(np.clip(round(3.8 * len(X) ** 0.6), MIN_LANDMARKS, MAX_LANDMARKS))
        r = r if self.n_landmarks == "auto" else int(self.n_landmarks)
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
    held_out = np.zeros_like(observed)
    if len(paths) > 1 or paths[0].smoothing == "auto":
        held_out = mask_entries(observed, rng, selecting=True)
    with Workers() as workers:
        fitter = PathFitter(observed, monitor, workers)
        if not held_out.any():
            return fitter.fit(paths[0], soft_impute(X, observed))
        search = replace(fitter, fixed=observed & ~held_out)
        start, found = soft_impute(X, search.fixed), list[tuple[KernelPath, BestStage]]()
        for path in paths:
            found.append((path, BestStage(X, held_out)))
            rough = path if len(paths) == 1 else replace(path, tol=max(SEARCH_TOL, path.tol))
            search.fit(rough, start, best=found[-1][1])
            if monitor.stopped:
                break
        path, best = min(found, key=lambda one: min(one[1].errors))
        if len(paths) > 1:  # they were compared with a rough tolerance
            return fitter.fit(path, soft_impute(X, observed), last=best.number)
        start = np.where(observed, X, best.X)
        return fitter.fit(path, start, first=best.number, last=best.number)


@dataclass(frozen=True)
class PathFitter:
    """Minimizes the penalty along a path, with some entries, n x m, held fixed."""

    fixed: BoolArray
    monitor: Monitor
    workers: Workers

    def fit(
        self,
        path: KernelPath,
        X: Array,
        *,
        first: int = 0,
        last: int | None = None,
        best: BestStage | None = None,
    ) -> IRLSFit:
        """Fit stages from X, n x m, to the last, or until held-out entries only get worse.

        With a given smoothing the path is followed to its end, whatever `best` finds on the way.
        """
        last = len(path.stages) - 1 if last is None else last
        for number in range(first, last + 1):
            setting = resolve_stage(path.stages[number], path.kernel, X, X)
            landmarks = path.landmarks(X, setting.kernel)
            solver = IRLS(
                self.fixed, self.workers, tol=path.tol, power=path.power, landmarks=landmarks
            )
            X, reason = self._minimize(solver, PathPoint(setting, X, X), path.max_iter)
            D = X.copy() if landmarks is None else X[landmarks]
            scored = path.smoothing == "auto" or number == last or self.monitor.stopped
            past = best is not None and scored and best.is_past(number, X, D)
            if self.monitor.stopped or past:
                break
            if number in RESTART_AFTER and number < last:
                X, _ = restart_samples(X, D, self.fixed, setting, self.workers)
        stages = path.stages[: number + 1]
        settings = [resolve_stage(stage, path.kernel, D, D) for stage in stages[:-1]] + [setting]
        return IRLSFit(X, D, path, rescale_ridges(settings, path.stages, D), reason)

    def _minimize(self, solver: IRLS, start: PathPoint, max_iter: int) -> tuple[Array, StopReason]:
        if not self.fixed.all():
            solution = minimize(solver, start, max_iter=max_iter, monitor=self.monitor)
            return solution.state.X(), solution.reason
        value, _ = solver.problem(start).evaluate(start.X[:0, 0], self.workers)
        self.monitor.record(value, self.monitor.stages)
        return start.X, StopReason.NOTHING_TO_FIT


@dataclass(frozen=True)
class IRLS(LBFGS):
    """L-BFGS on the penalty of one stage, guided by the curvature of the least squares."""

    renew: int = 40
    power: float = 0.5
    landmarks: IntArray | None = None

    def problem(self, start: PathPoint) -> FreeEntries:
        """Return the objective of the stage of a starting point."""
        penalty = Penalty(start.setting.kernel, start.setting.beta, self.power)
        return FreeEntries(start.X, ~self.observed, penalty, self.landmarks)

    def init(self, start: PathPoint) -> LBFGSState:
        # With an age of 1, curvature is renewed at every step whose number `renew` divides.
        return replace(self._evaluate(self.problem(start), start.X[~self.observed]), age=1)

    def terminate(self, state: LBFGSState, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol, WINDOW)


@dataclass(frozen=True)
class FreeEntries:
    """The penalty as a function of the entries of a table that are not fixed."""

    table: Array  # n x m
    free: BoolArray
    penalty: Penalty
    landmarks: IntArray | None

    def X(self, vector: Array) -> Array:
        X = self.table.copy()
        X[self.free] = vector
        return X

    def D(self, vector: Array) -> Array:
        return self.X(vector)[slice(None) if self.landmarks is None else self.landmarks]

    def box(self) -> None:
        return None

    def evaluate(self, vector: Array, workers: Workers) -> tuple[float, Array]:
        """Return value and gradient at a point; an infinite value where it is out of range."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                at = self.penalty(self.X(vector), self.landmarks)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(vector)
        return at.value, at.gradient[self.free]

    def precondition(self, vector: Array, workers: Workers) -> qn.Precondition | None:
        """Return the inverse curvature of the least squares in each sample."""
        X, free = self.X(vector), self.free
        if X.size * X.shape[1] > MAX_CURVATURE:
            return None
        basis = self.penalty(X, self.landmarks).basis
        inverses, unit = inverse_curvature(X, basis, workers, free)

        def apply(vectors: Array) -> Array:
            size = np.abs(vectors).max(initial=0) or 1.0
            full = np.zeros(X.shape, np.float32)
            full[free] = vectors[0] / size
            moves = np.matmul(inverses, full[:, :, None])[:, :, 0]
            return moves[free][None].astype(np.float64) * (size / unit)

        return apply
