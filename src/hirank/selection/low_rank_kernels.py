"""Low-rank kernel matrices as a family of the search: trials, and refits to all entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import clip_missing
from hirank.core.init import soft_impute
from hirank.models.fit_schatten import (
    SchattenEnd,
)
from hirank.models.weighted import WeightedModel
from hirank.selection.low_rank_paths import Comparison, PathFit, SchattenSpec
from hirank.selection.trial import Refit, SearchData, Trial


@dataclass(frozen=True)
class SchattenTrial:
    """The state of a trial: the stages that were fitted on each fold."""

    spec: SchattenSpec
    number: int  # of the best stage
    stages: list[list[SchattenEnd]]  # one per fold, in weighted features
    before: Trial | None  # the best of the families before

    @property
    def ends(self) -> list[SchattenEnd]:
        """Where the best stage ended, one per fold, in weighted features."""
        return [stages[self.number] for stages in self.stages]


@dataclass(frozen=True)
class LowRankKernels:
    """Tables whose images under a polynomial or an RBF kernel span few dimensions."""

    family: ClassVar[str] = "low-rank kernel"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield a trial per kernel and unit; kernels are families of their own: they stack well.

        All are fitted to the first fold, and those that are behind after some stages are given up.
        What can improve the stack is then fitted to the other folds as well; the rest is rejected.
        """
        config = data.config.schatten
        perfect = best is not None and best.loss < config.perfect_error
        n, v = data.X.shape
        too_large = n > config.max_rows or v > config.max_features
        if too_large or data.monitor.late or perfect:
            return
        starts = [
            clip_missing(data.bounds, soft_impute(data.X, training), training)
            for training in data.training
        ]
        first = data.compared_folds()
        fits = Comparison(first, starts[: len(first.folds)], best).run()
        trials = [self._scored(fit, first, best) for fit in fits]
        for fit, trial in zip(fits, trials, strict=True):
            same = [one for one in trials if one.family == trial.family]
            # Not those that are rejected anyway: of its own family, and of degree 1.
            others = [one for one in trials if one.family != trial.family and not one.rejected]
            if trial is min(same, key=_loss) and first.can_improve(trial, [*others, best]):
                whole = self._fit_other_folds(fit, data, starts)
                yield self._scored(whole, data, best, averaged=not fit.spec.rough).report(data)
            else:
                yield replace(trial, rejected=True).report(data)

    def _fit_other_folds(self, fit: PathFit, data: SearchData, starts: list[Array]) -> PathFit:
        """Fit as many stages to the other folds as to the first."""
        whole = PathFit(fit.spec, data, starts)
        whole.folds[: len(fit.folds)], whole.seconds = fit.folds, fit.seconds
        whole.take_stages(len(fit.losses))
        return whole

    def _scored(
        self, fit: PathFit, data: SearchData, before: Trial | None, *, averaged: bool = False
    ) -> Trial:
        """Return the trial of a path; degree 1 is linear, and not preferred on a complete table.

        New rows of that may have far fewer observed entries than those from which entries were held
        out. With `averaged`, rows that fit several places are imputed with their mean.
        """
        spec, number = fit.spec, fit.best
        state = SchattenTrial(spec, number, [one.ends for one in fit.folds], before)
        stage = spec.path.stages[number]
        params: dict[str, Any] = {
            "kernel": spec.name,
            "n_components": len(state.ends[0].D),
            "beta": stage.beta,
        }
        if spec.name == "rbf":
            params["bandwidth"] = stage.bandwidth
        label = f"{self.family} ({spec.name})"
        filled = [one.filled(number, averaged=averaged) for one in fit.folds]
        linear = spec.name == "linear"
        trial = Trial.scored(
            self, label, params, filled, data, fit.seconds, family=label, state=state, linear=linear
        )
        return replace(trial, rejected=linear and bool(data.observed.all()))

    @classmethod
    def is_ahead(cls, trial: Trial, max_ratio: float) -> bool:
        """Return whether a trial of this family is far better than the families before."""
        own = isinstance(trial.candidate, cls)
        before = trial.state.before if own else None
        return own and (before is None or trial.loss < max_ratio * before.loss)

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit to all observed entries: along the whole path, then from where the folds have ended.

        With the entries that were held out, some rows are recovered that were not before, so the
        last stage alone would not be enough (docs/notes/schatten.md).
        """
        config, state = data.config.schatten, trial.state
        if data.monitor.stopped:
            return [_from_fold(state, data)]
        # If held-out entries are recovered, all others are: nothing is gained by the whole path.
        if data.monitor.late or trial.loss < config.recovered_error:
            return [_refit(state, data, state.number, _fold_table(state, data, state.ends[0]))]
        start = clip_missing(data.bounds, soft_impute(data.X, data.observed), data.observed)
        starts = [(0, start * state.spec.weights)]
        for end in state.ends:
            first = min(config.refit_stage, state.number)
            starts.append((first, _fold_table(state, data, end)))
        exact = self.is_ahead(trial, config.max_ratio_exact) and not state.spec.rough
        spec = state.spec
        if exact:
            spec = replace(spec, path=replace(spec.path, tol=data.solver.tol * config.exact_tol))
        count = n_models or (config.n_models if exact else config.n_models_noisy)
        state = replace(state, spec=spec)
        factor = config.close_landmarks if trial.loss < config.close_error else 1
        starts = starts[:count]
        cost = len(starts) * data.step_cost(len(state.ends[0].D))
        return [
            *data.workers.map(
                lambda start: _refit(state, data, *start, factor, thorough=exact), starts, cost
            )
        ]


def _loss(trial: Trial) -> float:
    return trial.loss


def _refit(
    state: SchattenTrial,
    data: SearchData,
    first: int,
    X: Array,
    landmark_factor: int = 1,
    *,
    thorough: bool = False,
) -> Refit:
    """Fit the stages from `first` on, from a table in weighted features, to all entries.

    The last stage has `landmark_factor` times the landmarks.
    If `thorough`, the last stage is fitted twice, with restarts in between: only then do the last
    rows of a union of subspaces reach the right one. Rows that fit several places are imputed with
    their mean (docs/notes/schatten.md).
    """
    fitter, path, last = state.spec.fitter(data, data.observed), state.spec.path, state.number
    for number in range(first, last):
        X = fitter.restart(number, fitter.fit_stage(path, number, X))
    last_path = replace(path, landmark_factor=landmark_factor)
    end = fitter.fit_stage(last_path, last, X)
    thorough &= not data.monitor.stopped
    if thorough:
        end = fitter.fit_stage(last_path, last, fitter.restart_rows(end))
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
