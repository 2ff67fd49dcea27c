"""Routed dictionaries as a family: one small dictionary per component of a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hirank._text import plural
from hirank._typing import Array
from hirank.models.dictionary import Dictionary
from hirank.models.merge_mixture import merge_components
from hirank.models.routed import RoutedDictionaries, measure_residuals
from hirank.models.stacking import selection_loss
from hirank.optim.early_stopping import AS_GOOD
from hirank.optim.restarts import restart_samples
from hirank.selection.candidates import GaussianMixtures
from hirank.selection.routed_fit import (
    RoutedFit,
    Routing,
    confident_rows,
    fit_components,
    held_out_errors,
    make_fitter,
    make_spec,
    route_rows,
)
from hirank.selection.trial import Refit, SearchData, Trial


@dataclass(frozen=True)
class RoutedState:
    """The state of a trial: the models of the folds, and the stage that they ended with."""

    models: list[RoutedDictionaries]
    stage: int
    mixture: Trial  # whose components they belong to
    rough: bool = False  # whether stages end early


@dataclass(frozen=True)
class Routed:
    """Tables of many curved pieces, each of which a small dictionary follows."""

    family: ClassVar[str] = "routed dictionaries"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield dictionaries for the components of the best mixture, where that is promising."""
        began, config = perf_counter(), data.config.routed
        if best is None or data.monitor.late or best.loss < config.perfect_error:
            return
        mixture = _mixture_trial(best)
        if mixture is None or len(data.X) < config.min_table_rows:
            return
        probe = _select_size(mixture, data)
        if probe is None:
            return
        fits = [
            fit_components(
                _merge_and_route(mixture, fold, probe.size, data),
                mixture.filled[fold],
                training,
                data,
                probe.n_stages,
                rough=probe.rough,
            )
            for fold, training in enumerate(data.training)
        ]
        if any(not ends for fit in fits for ends in fit.ends):  # there was no time for all
            return
        stage = _best_stage([held_out_errors(fit, data, fold) for fold, fit in enumerate(fits)])
        yield self._scored(fits, RoutedState([], stage, mixture, probe.rough), data, began)

    def _scored(
        self, fits: list[RoutedFit], state: RoutedState, data: SearchData, began: float
    ) -> Trial:
        models = [fit.model(state.stage, data) for fit in fits]
        filled = [
            model.complete(np.where(training, data.X, 0), training)
            for model, training in zip(models, data.training, strict=True)
        ]
        size = len(models[0])
        params: dict[str, Any] = {"kernel": "rbf", "n_components": size}
        label = f"{self.family} ({plural(size, 'component')})"
        seconds, state = perf_counter() - began, replace(state, models=models)
        return Trial.scored(self, label, params, filled, data, seconds, state=state).report(data)

    @classmethod
    def is_ahead(cls, trial: Trial, max_ratio: float) -> bool:
        """Return whether a trial of this family is far better than the mixture."""
        own = isinstance(trial.candidate, cls)
        return own and trial.loss < max_ratio * trial.state.mixture.loss

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit the last stage of each dictionary to all observed entries."""
        state: RoutedState = trial.state
        model = state.models[0]
        if not data.monitor.stopped:
            model = _refit_last_stage(model, state, trial.filled[0], data)
        return [Refit(model.complete(data.X, data.observed), model)]


def _mixture_trial(best: Trial) -> Trial | None:
    """Return the trial of a mixture that other families did not leave far behind, if any."""
    if not isinstance(best.candidate, GaussianMixtures):
        best = getattr(best.state, "before", None) or best
    several = isinstance(best.candidate, GaussianMixtures) and not best.linear
    return best if several else None


def _merge_and_route(mixture: Trial, fold: int, size: int, data: SearchData) -> Routing:
    whole, *_ = mixture.state[fold]
    merged = merge_components(whole, size)
    return route_rows(merged, data.X, data.training[fold], data.config.routed)


class _Probe(NamedTuple):
    """What the dictionaries of some components have shown."""

    ratio: float  # their loss over that of the mixture at the same entries
    size: int = 0  # components of the mixture
    n_stages: int = 0  # of the path, to the best one
    rough: bool = False  # whether dictionaries gain so little that their stages may end early


def _select_size(mixture: Trial, data: SearchData) -> _Probe | None:
    """Return the probe of the best number of components; None if all are behind the mixture.

    Only a few components of the first fold are fitted, first for all components of the mixture,
    then for half as many, and so on: on exact tables small components are better, on noisy ones
    large components.
    """
    config, best = data.config.routed, _Probe(np.inf, rough=data.is_noisy(mixture.loss))
    size = int(mixture.params["n_components"])
    while size >= config.min_components and not data.monitor.late:
        routing = _merge_and_route(mixture, 0, size, data)
        if len(routing.rows) < config.min_components:
            break
        probe = _probe(routing, mixture, data, rough=best.rough)
        # Where dictionaries are little better than the mixture, the table is noisy.
        noisy = data.is_large and probe.ratio >= config.clear_ratio
        probe = probe._replace(size=size, rough=noisy or data.is_noisy(mixture.loss))
        if probe.ratio >= best.ratio:
            break
        best = probe
        if best.ratio < config.clear_ratio:
            break
        size = len(routing.rows) // 2
    return best if best.ratio < config.max_ratio else None


def _probe(routing: Routing, mixture: Trial, data: SearchData, *, rough: bool) -> _Probe:
    """Return the loss of some dictionaries over that of the mixture at the same entries.

    Components of medium size are taken: the largest ones often consist of several pieces.
    """
    n_probes = data.config.routed.n_probes
    order = np.argsort([len(rows) for rows in routing.rows], kind="stable")
    middle = order[max(0, len(order) - n_probes) // 2 :][:n_probes]
    probe = replace(routing, rows=[routing.rows[k] for k in middle])
    rows = np.concatenate(probe.rows)
    before = (mixture.filled[0] - data.X)[rows][data.folds[0][rows]]
    if not before.any():
        return _Probe(np.inf)
    fit = fit_components(probe, mixture.filled[0], data.training[0], data, rough=rough)
    errors = held_out_errors(fit, data, 0)
    if not errors:  # there was no time
        return _Probe(np.inf)
    ratio = min(selection_loss(one) for one in errors) / selection_loss(before)
    return _Probe(ratio, n_stages=_best_stage([errors]) + 1)


def _best_stage(residuals: Sequence[list[Array]]) -> int:
    """Return the latest stage that is as good as any, from the errors on each fold."""
    losses = [selection_loss(np.concatenate(each)) for each in zip(*residuals, strict=False)]
    return max(i for i, loss in enumerate(losses) if loss <= AS_GOOD * min(losses))


def _refit_last_stage(
    model: RoutedDictionaries, state: RoutedState, filled: Array, data: SearchData
) -> RoutedDictionaries:
    """Fit the last stage to all observed entries, from a table that the model imputed, n x v.

    Components that are left with few confident rows keep the dictionary that they have.
    """
    config, fitter = data.config.routed, make_fitter(data, rough=state.rough)
    start = np.where(data.observed, data.X, filled)
    rows = confident_rows(model.router.shares(data.X, data.observed), config)

    def fit(k: int) -> tuple[Dictionary, float]:
        dictionary = model.dictionaries[k]
        if len(rows[k]) < config.min_rows or data.monitor.stopped:
            return dictionary, float(model.residuals[k])
        x, observed = start[rows[k]], data.observed[rows[k]]
        x, D = restart_samples(
            x, dictionary.D, observed, dictionary.settings[-1], fitter.data.workers, data.bounds
        )
        spec = make_spec(len(x), config)
        end = fitter.fit_stages(observed, spec, x, D, range(state.stage, state.stage + 1))[-1]
        settings = (*dictionary.settings[:-1], end.setting)
        fitted = replace(dictionary, D=end.D, settings=settings)
        return fitted, float(np.median(measure_residuals(fitted, end.X)))

    fits = data.workers.map(fit, range(len(model)), np.inf)
    dictionaries, residuals = zip(*fits, strict=True)
    return RoutedDictionaries(model.router, dictionaries, np.array(residuals))
