"""The fit of a low-rank kernel matrix to a table: landmarks, and a path of falling smoothings.

For each smoothing gamma of a path the Schatten-p penalty of the kernel matrix is lowered over the
missing entries. Between stages, samples that fit badly restart from where their neighbors are: on
unions of surfaces some start near the wrong one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Bounds
from hirank.core.schatten import pick_landmarks
from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import RBF, Kernel
from hirank.models.dictionary import Dictionary
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.optim.irls import IRLS
from hirank.optim.loop import minimize
from hirank.optim.path import (
    WINDOW,
    PathPoint,
    Setting,
    Stage,
    default_path,
    rescale_ridges,
    resolve_stage,
)
from hirank.optim.restarts import average_places, restart_samples
from hirank.optim.trace import Monitor

# Measured in docs/notes/schatten.md: below 1e-8 nothing was gained.
FIRST_SMOOTHING, LAST_SMOOTHING = 1e-1, 1e-8  # of the path, in units of the mean of k(x, x)
EXACT_SMOOTHINGS = 1e-10, 1e-12  # further ones for new rows, if no landmark had missing entries
TRIMMED_SMOOTHING = 1e-6  # in stages below, landmarks end with the smoothing
ROUNDING = 1e-3  # part of the smoothing that counts as rounding: nothing closer to a span matters
MAX_SHARE = 0.75  # of rows that are landmarks: beyond, the whole kernel matrix is as cheap
N_NARROW = 3  # stages of a dictionary's path, in place of the first of the own one, for new rows
MIN_LANDMARKS, MAX_LANDMARKS = 150, 400  # of the automatic rule


def default_n_landmarks(n: int) -> int:
    """Return how many rows of n represent all: more for more rows, but fewer and fewer of them."""
    return int(np.clip(round(3.8 * n**0.6), MIN_LANDMARKS, MAX_LANDMARKS))


@dataclass(frozen=True)
class SchattenPath:
    """A kernel, its penalty, and the path along which the smoothing of the penalty falls."""

    kernel: Kernel
    bandwidth: float = 1.0  # multiple of the mean distance of samples, if the kernel has none
    power: float = 0.5
    n_landmarks: int | None = None  # None: by the number of rows, and no more than a stage needs
    smoothing: float = LAST_SMOOTHING  # of the last stage
    max_iter: int = 100
    tol: float = 1e-3
    decades: float = 1.0  # by which the smoothing falls from one stage to the next
    window: int = WINDOW  # steps over which a stage is judged
    landmark_factor: int = 1  # by which the automatic number of landmarks is multiplied

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, along which the smoothing falls by a constant factor."""
        first, last = max(FIRST_SMOOTHING, self.smoothing), self.smoothing
        gammas = np.geomspace(
            first, last, max(1, round(float(np.log10(first / last)) / self.decades) + 1)
        )
        return tuple(Stage(self.bandwidth, float(gamma)) for gamma in gammas)

    def landmarks(self, X: Array, setting: Setting, enough: float = 0.0) -> IntArray | None:
        """Return the indices of rows of X, n x m, that represent all; None if all rows do.

        They end where all images are within a squared distance of `enough` from their span.
        """
        n = len(X)
        automatic = self.landmark_factor * default_n_landmarks(n)
        r = automatic if self.n_landmarks is None else self.n_landmarks
        if r >= n and not enough:
            return None
        landmarks = pick_landmarks(X, setting.kernel, r, enough)
        return None if r >= n and len(landmarks) > MAX_SHARE * n else landmarks

    def model(
        self,
        end: SchattenEnd,
        number: int,
        bounds: Bounds | None = None,
        *,
        exact: bool = False,
    ) -> Dictionary:
        """Return the model that imputes new rows from the span of landmarks of the imputed table.

        They are as many as there may be: where they end with the smoothing, new rows are imputed
        worse, since they have more to follow than the rows of the table. New rows first go through
        stages with a narrow kernel, which lead them to the right surface (docs/notes/schatten.md).
        At the end of the path, `exact` landmarks, without imputed entries, leave nothing to smooth.
        """
        stages, narrow = self.model_stages(number), min(N_NARROW, number)
        landmarks = self.landmarks(end.X, end.setting)
        D = end.X if landmarks is None else end.X[landmarks]
        before = [
            resolve_stage(one, RBF() if i < narrow else self.kernel, D, D)
            for i, one in enumerate(stages[:number])
        ]
        settings = [*before, end.setting]
        if exact and number + 1 == len(self.stages):
            stages += tuple(Stage(self.bandwidth, gamma) for gamma in EXACT_SMOOTHINGS)
            settings += [end.setting] * len(EXACT_SMOOTHINGS)
        return Dictionary(D, rescale_ridges(settings, stages, D), bounds=bounds)

    def model_stages(self, number: int) -> tuple[Stage, ...]:
        """Return the stages of new rows if the path ends with a stage: first some narrow ones."""
        narrow = default_path()[: min(N_NARROW, number)]
        return (*narrow, *self.stages[len(narrow) : number + 1])


class SchattenEnd(NamedTuple):
    """The state of a fit at the end of a stage."""

    X: Array  # n x m
    D: Array  # landmarks, r x m
    setting: Setting
    reason: StopReason  # why the stage ended


@dataclass(frozen=True)
class SchattenFitter:
    """Minimizes the penalty stage by stage over the entries of a table that are not fixed."""

    fixed: BoolArray  # n x m
    monitor: Monitor
    workers: Workers
    bounds: Bounds | None = None  # of the other entries, in scaled units
    restarts: bool = True  # of rows that fit badly, between stages

    def fit_stage(self, path: SchattenPath, number: int, X: Array) -> SchattenEnd:
        """Fit one stage from an imputed table X, n x m, whose free entries are in the bounds."""
        setting = resolve_stage(path.stages[number], path.kernel, X, X)
        # What is much closer to the span of landmarks than the smoothing changes nothing. At the
        # end of the path all that is closer is rounding, and landmarks that follow it keep a fit
        # from becoming exact (docs/notes/schatten.md).
        part = 1.0 if path.stages[number].beta < TRIMMED_SMOOTHING else ROUNDING
        enough = part * setting.beta if path.n_landmarks is None else 0.0
        landmarks = path.landmarks(X, setting, enough)
        solver = IRLS(
            self.fixed,
            self.workers,
            bounds=self.bounds,
            tol=path.tol,
            power=path.power,
            landmarks=landmarks,
            window=path.window,
        )
        X, reason = self._minimize(solver, PathPoint(setting, X, X), path.max_iter)
        return SchattenEnd(X, X.copy() if landmarks is None else X[landmarks], setting, reason)

    def restart(self, number: int, end: SchattenEnd) -> Array:
        """Return the table, n x m, from which the stage after `number` starts."""
        again = self.restarts and number in RESTART_AFTER
        return self.restart_rows(end) if again else end.X

    def restart_rows(self, end: SchattenEnd) -> Array:
        """Return a table, n x m, with rows that fit badly in better places."""
        return restart_samples(end.X, end.D, self.fixed, end.setting, self.workers, self.bounds)[0]

    def average_places(self, end: SchattenEnd) -> Array:
        """Return a table, n x m, with rows that fit several places at the mean of these."""
        return average_places(end.X, end.D, self.fixed, end.setting, self.workers, self.bounds)

    def _minimize(self, solver: IRLS, start: PathPoint, max_iter: int) -> tuple[Array, StopReason]:
        if not self.fixed.all():
            solution = minimize(solver, start, max_iter=max_iter, monitor=self.monitor)
            return solution.state.X(), solution.reason
        value, _ = solver.problem(start).evaluate(start.X[:0, 0], self.workers)
        self.monitor.record(value, self.monitor.begin_stage())
        return start.X, StopReason.NOTHING_TO_FIT
