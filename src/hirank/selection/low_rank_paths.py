"""Low-rank kernel matrices fitted along paths, and the comparison of kernels and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.fit_schatten import (
    SchattenEnd,
    SchattenFitter,
    SchattenPath,
    default_n_landmarks,
)
from hirank.optim.early_stopping import AS_GOOD, HOPELESS, is_past_minimum
from hirank.selection.config import SchattenConfig
from hirank.selection.trial import SearchData, Trial


@dataclass(frozen=True)
class SchattenSpec:
    """What defines a low-rank kernel matrix before it is fitted: kernel, path and units."""

    name: str  # of the kernel
    path: SchattenPath
    weights: Array  # v; features are multiplied by them
    rough: bool = False  # True: as for a table that may be noisy
    restarts: bool = True  # of rows that fit badly, between stages

    def fitter(self, data: SearchData, fixed: BoolArray) -> SchattenFitter:
        bounds = data.bounds
        if bounds is not None:
            bounds = Bounds(bounds.lower * self.weights, bounds.upper * self.weights)
        return SchattenFitter(fixed, data.monitor, data.workers, bounds, restarts=self.restarts)


class _FoldFit:
    """The stages of a path that were fitted to one fold, from an imputed table, n x v."""

    def __init__(self, spec: SchattenSpec, data: SearchData, fold: int, start: Array) -> None:
        self.spec, self.data = spec, data
        self.fitter = spec.fitter(data, data.training[fold])
        self.start = start * spec.weights
        self.ends: list[SchattenEnd] = []

    def take_stage(self) -> None:
        """Fit the next stage."""
        number, X = len(self.ends), self.start
        if number:
            X = self.fitter.restart(number - 1, self.ends[-1])
        self.ends.append(self.fitter.fit_stage(self.spec.path, number, X))

    def scaled(self, number: int) -> Array:
        """Return the table, n x v, that a stage ended with, in scaled features."""
        return self.ends[number].X / self.spec.weights

    def filled(self, number: int, *, averaged: bool) -> Array:
        """Return the table, n x v, as a stage imputes it, with observed entries."""
        end = self.ends[number]
        X = self.fitter.average_places(end) if averaged else end.X
        return np.where(self.fitter.fixed, self.data.X, X / self.spec.weights)


class PathFit:
    """A path on the folds of a table: all stop at the same stage."""

    def __init__(self, spec: SchattenSpec, data: SearchData, starts: Sequence[Array]) -> None:
        self.spec, self.data = spec, data
        self.folds = [_FoldFit(spec, data, fold, start) for fold, start in enumerate(starts)]
        self.losses: list[float] = []  # at held-out entries, one per stage
        self.seconds = 0.0

    @property
    def best(self) -> int:
        """The latest stage that is as good as any."""
        return max(i for i, loss in enumerate(self.losses) if loss <= AS_GOOD * self.loss)

    @property
    def loss(self) -> float:
        return min(self.losses)

    def take_stages(self, until: int) -> None:
        """Fit the stages before `until` that a fold has not been fitted to."""
        began = perf_counter()
        while len(self.losses) < until:
            number = len(self.losses)
            waiting = [fold for fold in self.folds if len(fold.ends) == number]
            cost = len(waiting) * self.data.step_cost(default_n_landmarks(len(self.data.X)))
            for _ in self.data.workers.map(_FoldFit.take_stage, waiting, cost):
                pass
            self.losses.append(self.data.loss([fold.scaled(number) for fold in self.folds]))
            if self.data.monitor.stopped:
                break
        self.seconds += perf_counter() - began

    def follow(self, until: int | None = None, max_loss: float = 0.0) -> None:
        """Fit stages, at most those before `until`, as long as they are worth it.

        A path with less than `max_loss` ends: that is all there is to know about it.
        """
        n_stages = len(self.spec.path.stages)
        until = n_stages if until is None else min(until, n_stages)
        while len(self.losses) < until and not self.data.monitor.stopped and not self.has_ended:
            self.take_stages(len(self.losses) + 1)
            if self.loss < max_loss:
                return

    @property
    def has_ended(self) -> bool:
        """Whether no further stage is worth fitting."""
        if is_past_minimum(self.losses):
            return True
        rough = self.spec.rough and not self.data.is_narrow
        if rough and self.losses and self.losses[-1] > HOPELESS * self.loss:
            return True
        back = 1 + max(1, round(2 / self.spec.path.decades))
        enough = self.spec.rough and len(self.losses) >= back
        return enough and self.losses[-1] > self.data.config.schatten.min_gain * self.losses[-back]

    def is_behind(self, other: PathFit) -> bool:
        """Return whether the last stage has far more loss than the same one of another path."""
        number = min(len(self.losses), len(other.losses)) - 1
        ratio = self.data.config.schatten.max_ratio_behind
        return self.losses[number] > ratio * other.losses[number]


class Comparison:
    """Compares kernels and units on the first fold: roughly on tables that may be noisy.

    `rival` is the loss of the best family before.
    """

    def __init__(self, data: SearchData, starts: list[Array], before: Trial | None) -> None:
        self.data, self.starts, self.before = data, starts, before
        self.rival = np.inf if before is None else data.loss(before.filled[: len(starts)])
        self.fits: list[PathFit] = []

    def run(self) -> list[PathFit]:
        """Return the paths that were fitted."""
        data, config = self.data, self.data.config.schatten
        scaled = np.ones(data.X.shape[1])
        if config.exact_error < self.rival < np.inf:
            rough = config.rough(noisy=data.is_noisy(self.rival), narrow=data.is_narrow)
            best = PathFit(_poly(data, scaled, rough), data, self.starts)
            self.fits.append(best)
            exact = config.max_ratio_noisy * self.rival
            best.follow(config.probe_stages, exact)
            if exact <= best.loss < rough.max_ratio_rough * self.rival:
                best.follow(max_loss=exact)
            if best.loss >= exact or data.monitor.late:
                # Only a path of small steps shows whether a table is exact.
                decades = rough.decades if data.is_narrow else config.rough_decades
                self._compare_others(best, replace(rough, decades=decades))
                return self.fits
        polys = []
        for weights in (scaled, *_common_unit(data.spread, config)):
            polys.append(self._begin(_poly(data, weights, config)))
            if data.monitor.late:
                break
        lowest = min(one.losses[-1] for one in polys)
        polys = [one for one in polys if one.losses[-1] <= config.max_ratio_units * lowest]
        for fit in polys:
            fit.follow()
        best = min(polys, key=lambda one: one.loss)
        self._compare_others(best, config)
        return self.fits

    def _begin(self, spec: SchattenSpec) -> PathFit:
        """Fit the first stages of a path."""
        fit = PathFit(spec, self.data, self.starts)
        self.fits.append(fit)
        fit.follow(1 + round((self.data.config.schatten.probe_stages - 1) / spec.path.decades))
        return fit

    def _compare_others(self, best: PathFit, config: SchattenConfig) -> None:
        """Fit degree 1, and narrower and narrower RBF kernels.

        Degree 1 is fitted if a linear family was best so far and is behind now. Otherwise a table
        of low rank would look curved where this penalty is only solved better. Neither is fitted
        if degree 2 is perfect. RBF kernels are fitted as long as they get better, unless degree 2
        is far ahead of other families.
        """
        data, weights = self.data, best.spec.weights
        if data.monitor.late or best.loss < config.perfect_error:
            return
        if self.before is not None and self.before.linear and best.loss < self.rival:
            spec = _poly(data, weights, config, degree=1)
            self._fit_unless_behind(spec, best, config.max_ratio_rough)
        fits: list[PathFit] = []
        if best.loss < config.max_ratio_curved * self.rival < np.inf and not data.is_narrow:
            return
        for bandwidth in config.bandwidths:
            if data.monitor.late:
                return
            spec = _rbf(bandwidth, data, weights, config)
            fits.append(self._fit_unless_behind(spec, best, config.max_ratio_rough))
            if len(fits) > 1 and fits[-1].loss > fits[-2].loss:
                return

    def _fit_unless_behind(
        self, spec: SchattenSpec, best: PathFit, max_ratio_rough: float
    ) -> PathFit:
        """Fit the first stages of a path, and the others unless it is behind."""
        fit = self._begin(spec)
        behind = fit.is_behind(best) and not self.data.is_narrow
        behind |= spec.rough and fit.loss > max_ratio_rough * self.rival
        if not self.data.monitor.late and not behind:
            fit.follow()
        return fit


def _common_unit(spread: Array, config: SchattenConfig) -> list[Array]:
    """Return the weights of features in a common unit, if they may have one and are not in it."""
    ratio = spread.max(initial=0) / spread.min(initial=np.inf)
    if not 1 < ratio <= config.max_unit_ratio:
        return []
    return [spread / np.sqrt(np.mean(spread**2))]


def _poly(
    data: SearchData, weights: Array, config: SchattenConfig, degree: int = 2
) -> SchattenSpec:
    seen = np.logical_and.reduce(data.training)  # no entry that is held out in any fold
    squares = np.square(data.X).sum(axis=0, where=seen) / np.maximum(seen.sum(axis=0), 1)
    size = float(squares @ weights**2) or 1.0
    name = "linear" if degree == 1 else "poly"
    path = _path(Poly(degree, size), 1.0, data, config)
    return SchattenSpec(name, path, weights, config.is_rough, config.restarts)


def _rbf(
    bandwidth: float, data: SearchData, weights: Array, config: SchattenConfig
) -> SchattenSpec:
    return SchattenSpec(
        "rbf", _path(RBF(), bandwidth, data, config), weights, config.is_rough, config.restarts
    )


def _path(
    kernel: Kernel, bandwidth: float, data: SearchData, config: SchattenConfig
) -> SchattenPath:
    return SchattenPath(
        kernel,
        bandwidth,
        config.power,
        config.n_landmarks(data.X),
        smoothing=config.smoothing,
        max_iter=min(config.max_iter, data.solver.max_iter),
        tol=config.tol * data.solver.tol,
        decades=config.decades,
        window=config.window,
    )
