"""Low-rank kernel matrices as a family: which kernel and units, and where the path ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, clip_missing
from hirank.core.init import soft_impute
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.fit_schatten import SchattenEnd, SchattenFitter, SchattenPath
from hirank.models.weighted import WeightedModel
from hirank.optim.early_stopping import AS_GOOD, is_past_minimum
from hirank.selection.config import SchattenConfig
from hirank.selection.trial import Refit, SearchData, Trial


@dataclass(frozen=True)
class SchattenSpec:
    """What defines a low-rank kernel matrix before it is fitted: kernel, path and units."""

    name: str  # of the kernel
    path: SchattenPath
    weights: Array  # v; features are multiplied by them

    def fitter(self, data: SearchData, fixed: BoolArray) -> SchattenFitter:
        bounds = data.bounds
        if bounds is not None:
            bounds = Bounds(bounds.lower * self.weights, bounds.upper * self.weights)
        return SchattenFitter(fixed, data.monitor, data.workers, bounds)


@dataclass(frozen=True)
class SchattenTrial:
    """The state of a trial: where the path ended on each fold."""

    spec: SchattenSpec
    number: int  # of the best stage
    ends: list[SchattenEnd]  # one per fold, in weighted features
    before: Trial | None  # the best of the families before


@dataclass(frozen=True)
class LowRankKernels:
    """Tables whose images under a polynomial or an RBF kernel span few dimensions."""

    family: ClassVar[str] = "low-rank kernel"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield a trial per kernel and unit; kernels are families of their own: they stack well."""
        config = data.config.schatten
        perfect = best is not None and best.loss < config.perfect_error
        if len(data.X) > config.max_rows or data.monitor.late or perfect:
            return
        starts = [
            clip_missing(data.bounds, soft_impute(data.X, training), training)
            for training in data.training
        ]
        rival = np.inf if best is None else best.loss
        scaled = np.ones(data.X.shape[1])
        if config.exact_error < rival < np.inf:
            rough = config.rough()
            trial = self._fit_folds(_poly(data, scaled, rough), data, starts, best)
            yield trial
            if data.monitor.late:
                return
            if not self.is_ahead(trial, config.max_ratio_noisy):
                yield from self._linear([trial], rough, data, starts, best)
                yield from self._narrower(scaled, rough, data, starts, best)
                return
        found: list[Trial] = []
        for weights in (scaled, *_common_unit(data.spread, config)):
            found.append(self._fit_folds(_poly(data, weights, config), data, starts, best))
            yield found[-1]
            if data.monitor.late:
                return
            if found[-1].loss < config.perfect_error:
                break
        yield from self._linear(found, config, data, starts, best)
        if min(one.loss for one in found) < config.perfect_error:
            return
        weights = min(found, key=lambda one: one.loss).state.spec.weights
        yield from self._narrower(weights, config, data, starts, best)

    def _linear(
        self,
        found: list[Trial],
        config: SchattenConfig,
        data: SearchData,
        starts: list[Array],
        before: Trial | None,
    ) -> Iterator[Trial]:
        """Yield a trial of degree 1 if a linear family was best so far and is behind now.

        Otherwise a table of low rank would look curved where this penalty is only solved better.
        If the table is complete, or degree 2 perfect, that is preferred: new rows may have far
        fewer observed entries than those from which entries were held out.
        """
        best = min(found, key=lambda one: one.loss)
        if before is not None and before.linear and best.loss < before.loss:
            spec = _poly(data, best.state.spec.weights, config, degree=1)
            trial = self._fit_folds(spec, data, starts, before)
            complete, perfect = data.observed.all(), best.loss < config.perfect_error
            yield replace(trial, linear=True, rejected=bool(complete or perfect))

    def _narrower(
        self,
        weights: Array,
        config: SchattenConfig,
        data: SearchData,
        starts: list[Array],
        before: Trial | None,
    ) -> Iterator[Trial]:
        """Yield trials of narrower and narrower RBF kernels, as long as they get better."""
        last = np.inf
        for bandwidth in config.bandwidths:
            trial = self._fit_folds(_rbf(bandwidth, data, weights, config), data, starts, before)
            yield trial
            if data.monitor.late or trial.loss > last:
                return
            last = trial.loss

    @classmethod
    def is_ahead(cls, trial: Trial, max_ratio: float) -> bool:
        """Return whether a trial of this family is far better than the families before."""
        own = isinstance(trial.candidate, cls)
        before = trial.state.before if own else None
        return own and (before is None or trial.loss < max_ratio * before.loss)

    def _fit_folds(
        self, spec: SchattenSpec, data: SearchData, starts: list[Array], before: Trial | None
    ) -> Trial:
        """Fit stage by stage, so that all folds stop at the same one."""
        began, path, tables = perf_counter(), spec.path, [X * spec.weights for X in starts]
        fitters = [spec.fitter(data, training) for training in data.training]
        config = data.config.schatten
        noisy = path.power == config.noisy_power
        stages: list[list[SchattenEnd]] = []
        losses: list[float] = []
        for number in range(len(path.stages)):
            ends = [f.fit_stage(path, number, X) for f, X in zip(fitters, tables, strict=True)]
            stages.append(ends)
            losses.append(data.loss([end.X / spec.weights for end in ends]))
            flat = number > 1 and losses[-1] > config.min_gain * losses[-3]
            if data.monitor.stopped or is_past_minimum(losses) or (noisy and flat):
                break
            if number + 1 < len(path.stages):
                tables = [f.restart(number, end) for f, end in zip(fitters, ends, strict=True)]
        number = max(i for i, loss in enumerate(losses) if loss <= AS_GOOD * min(losses))
        ends, stage = stages[number], path.stages[number]
        params: dict[str, Any] = {
            "kernel": spec.name,
            "n_components": len(ends[0].D),
            "beta": stage.beta,
        }
        if spec.name == "rbf":
            params["bandwidth"] = stage.bandwidth
        label = f"{self.family} ({spec.name})"
        filled = [
            np.where(f.fixed, data.X, (end.X if noisy else f.average_places(end)) / spec.weights)
            for f, end in zip(fitters, ends, strict=True)
        ]
        state = SchattenTrial(spec, number, ends, before)
        seconds = perf_counter() - began
        return Trial.scored(
            self, label, params, filled, data, seconds, family=label, state=state
        ).report(data)

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit to all observed entries: along the whole path, then from where the folds have ended.

        With the entries that were held out, some rows are recovered that were not before, so the
        last stage alone would not be enough (docs/notes/schatten.md).
        """
        config, state = data.config.schatten, trial.state
        if data.monitor.stopped:
            return [_from_fold(state, data)]
        if data.monitor.late:  # there is time for the last stage only
            return [_refit(state, data, state.number, _fold_table(state, data, state.ends[0]))]
        start = clip_missing(data.bounds, soft_impute(data.X, data.observed), data.observed)
        starts = [(0, start * state.spec.weights)]
        for end in state.ends:
            first = min(config.refit_stage, state.number)
            starts.append((first, _fold_table(state, data, end)))
        exact = self.is_ahead(trial, config.max_ratio_exact)
        tol = data.solver.tol * (config.exact_tol if exact else config.tol)
        spec = replace(state.spec, path=replace(state.spec.path, tol=tol))
        count = n_models or (config.n_models if exact else config.n_models_noisy)
        state = replace(state, spec=spec)
        return [_refit(state, data, *start, thorough=exact) for start in starts[:count]]


def _refit(
    state: SchattenTrial, data: SearchData, first: int, X: Array, *, thorough: bool = False
) -> Refit:
    """Fit the stages from `first` on, from a table in weighted features, to all entries.

    If `thorough`, the last stage is fitted twice, with restarts in between: only then do the last
    rows of a union of subspaces reach the right one. Rows that fit several places are imputed with
    their mean (docs/notes/schatten.md).
    """
    fitter, path, last = state.spec.fitter(data, data.observed), state.spec.path, state.number
    for number in range(first, last):
        X = fitter.restart(number, fitter.fit_stage(path, number, X))
    end = fitter.fit_stage(path, last, X)
    thorough &= not data.monitor.stopped
    if thorough:
        end = fitter.fit_stage(path, last, fitter.restart_rows(end))
    refitted = _make_refit(state, data, end, exact=bool(data.observed.all()))
    if not thorough:
        return refitted
    averaged = fitter.average_places(end) / state.spec.weights
    return refitted._replace(filled=np.where(data.observed, data.X, averaged))


def _from_fold(state: SchattenTrial, data: SearchData) -> Refit:
    """Return what was fitted on the first fold: there is no time left to refit it."""
    end = state.ends[0]._replace(X=_fold_table(state, data, state.ends[0]))
    return _make_refit(state, data, end, exact=False)


def _fold_table(state: SchattenTrial, data: SearchData, end: SchattenEnd) -> Array:
    """Return the table of a fold, in weighted features, with all observed entries."""
    return np.where(data.observed, data.X * state.spec.weights, end.X)


def _make_refit(state: SchattenTrial, data: SearchData, end: SchattenEnd, *, exact: bool) -> Refit:
    spec, weights = state.spec, state.spec.weights
    bounds = spec.fitter(data, data.observed).bounds
    model = WeightedModel(weights, spec.path.model(end, state.number, bounds, exact=exact))
    return Refit(np.where(data.observed, data.X, end.X / weights), model)


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
    return SchattenSpec(name, _path(Poly(degree, size), 1.0, data, config), weights)


def _rbf(
    bandwidth: float, data: SearchData, weights: Array, config: SchattenConfig
) -> SchattenSpec:
    return SchattenSpec("rbf", _path(RBF(), bandwidth, data, config), weights)


def _path(
    kernel: Kernel, bandwidth: float, data: SearchData, config: SchattenConfig
) -> SchattenPath:
    return SchattenPath(
        kernel,
        bandwidth,
        config.power,
        smoothing=config.smoothing,
        max_iter=min(config.max_iter, data.solver.max_iter),
        tol=config.tol * data.solver.tol,
    )
