"""Families that are not dictionaries: column means, Gaussians and their mixtures, low rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

import numpy as np

from hirank._text import plural
from hirank.models.als import RankSelection, fit_low_rank, select_rank, with_constant
from hirank.models.em import (
    EMFit,
    IncompleteTable,
    fit_mixture,
    grow_mixtures,
    independent_gaussian,
    max_components,
)
from hirank.models.fit_factors import fit_factors, ranks_for, select_factors
from hirank.models.more_mixtures import grow_another, growth_cost
from hirank.selection.trial import FIT_FAILURES, Refit, SearchData, Trial


@dataclass(frozen=True)
class ColumnMeans:
    """Column means: what remains where the features are unrelated."""

    family: ClassVar[str] = "column means"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield the one trial."""
        began = perf_counter()
        filled = [
            np.where(training, data.X, independent_gaussian(data.X, training).means[0])
            for training in data.training
        ]
        seconds = perf_counter() - began
        yield Trial.scored(self, self.family, {"n_components": 0}, filled, data, seconds)

    def refit(self, trial: Trial | None, data: SearchData, n_models: int | None) -> list[Refit]:
        """Return the means of all observed entries."""
        model = independent_gaussian(data.X, data.observed)
        return [Refit(np.where(data.observed, data.X, model.means[0]), model)]


@dataclass(frozen=True)
class GaussianMixtures:
    """One Gaussian, which is a linear model, then mixtures of more and more of them."""

    family: ClassVar[str] = "Gaussian"
    mixture_family: ClassVar[str] = "Gaussian mixture"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield a trial per noise level of one Gaussian, then one per number of components."""
        config = data.config.mixture
        if not max_components(data.observed, config):
            return
        tables = [
            IncompleteTable(np.where(training, data.X, 0), training) for training in data.training
        ]
        growing = grow_mixtures(tables, data.loss, config, data.workers, data.monitor)
        n_trials, began = 0, perf_counter()
        while True:
            try:
                fits = next(growing, None)
            except FIT_FAILURES as error:
                if not n_trials:
                    raise
                yield Trial.failed(self, error)
                return
            if fits is None:
                return
            n_trials += 1
            yield self._scored(fits, data, perf_counter() - began)
            began = perf_counter()

    def _scored(self, fits: list[EMFit], data: SearchData, seconds: float) -> Trial:
        size = len(fits[0].model)
        params = {"n_components": size, "noise": fits[0].noise}
        label, family = "one Gaussian", self.family
        if size > 1:
            label, family = f"mixture of {size} Gaussians", self.mixture_family
        filled = [fit.filled for fit in fits]
        return Trial.scored(
            self,
            label,
            params,
            filled,
            data,
            seconds,
            family=family,
            state=fits,
            linear=size == 1,
        ).report(data)

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit the mixtures of the folds to all observed entries; one Gaussian only once.

        Where there are fewer folds than models to average, others are grown on small tables.
        """
        fits: list[EMFit] = trial.state
        count = 1 if len(fits[0].model) == 1 else n_models or data.config.n_models
        table = IncompleteTable(data.X, data.observed)

        def refit(start: EMFit) -> Refit:
            fit = fit_mixture(
                start.model,
                start.noise,
                table,
                workers=data.workers,
                monitor=data.monitor,
                max_iter=data.config.mixture_refit_steps,
                config=data.config.mixture,
            )
            return Refit(fit.filled, fit.model)

        def grow(seed: int) -> Refit:
            fit = grow_another(
                table,
                fits[0],
                np.random.default_rng(seed),
                config=data.config.mixture,
                workers=data.workers,
                monitor=data.monitor,
            )
            return Refit(fit.filled, fit.model)

        starts = fits[:count]
        cost = 2.0 * len(starts) * len(starts[0].model) * data.X.size * data.X.shape[1]
        refits = [*data.workers.map(refit, starts, cost)]
        n_more = count - len(starts)
        config = data.config.mixture
        cost = growth_cost(table, len(fits[0].model), config)
        if not n_more or data.monitor.late or cost > config.max_growth_cost:
            return refits
        seeds = data.rng.integers(2**32, size=n_more).tolist()
        return [*refits, *data.workers.map(grow, seeds, n_more * cost)]


@dataclass(frozen=True)
class FactorAnalysis:
    """Low rank and a noise of each feature: takes the place of one Gaussian in wide tables."""

    family: ClassVar[str] = "factor analysis"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield one trial, of the rank with the lowest loss; none for narrow tables."""
        began, config = perf_counter(), data.config.factors
        if not ranks_for(data.X.shape, config):
            return
        tables = [(np.where(training, data.X, 0), training) for training in data.training]
        fits = select_factors(tables, data.loss, config, data.workers, data.monitor)
        rank = len(fits[0].model.loadings)
        label = f"factor analysis ({plural(rank, 'factor')})"
        filled, seconds = [fit.filled for fit in fits], perf_counter() - began
        yield Trial.scored(
            self, label, {"n_components": rank}, filled, data, seconds, state=fits, linear=True
        ).report(data)

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit the factors of the first fold to all observed entries."""
        fit = fit_factors(
            trial.state[0].model,
            data.X,
            data.observed,
            workers=data.workers,
            monitor=data.monitor,
            config=data.config.factors,
        )
        return [Refit(fit.filled, fit.model)]


@dataclass(frozen=True)
class LowRank:
    """Low-rank factors by alternating least squares: for tables with little noise or few rows."""

    family: ClassVar[str] = "low rank"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield one trial: rank and ridge are selected on each fold, the middle rank is kept."""
        began, config = perf_counter(), data.config.low_rank

        def select(fold: int) -> RankSelection:
            # The size of the constant feature must not depend on held-out entries either.
            constant = with_constant(data.X, training[fold])[0][:, -1:]
            none = np.zeros((len(constant), 1), bool)
            return select_rank(
                np.hstack([data.X, constant]),
                np.hstack([data.observed, ~none]),
                np.hstack([data.folds[fold], none]),
                monitor=data.monitor,
                config=config,
            )

        training = data.training
        cost = float(len(training) * data.X.size * min(data.X.shape))
        selections = [*data.workers.map(select, range(len(training)), cost)]
        filled = [
            np.where(one, data.X, (selection.factors.U @ selection.factors.V)[:, :-1])
            for one, selection in zip(training, selections, strict=True)
        ]
        middle = sorted(selections, key=lambda one: one.rank)[len(selections) // 2]
        params = {"n_components": middle.rank - 1, "ridge": middle.ridge}
        label = f"low rank ({plural(middle.rank - 1, 'factor')})"
        seconds = perf_counter() - began
        trial = Trial.scored(self, label, params, filled, data, seconds, state=middle, linear=True)
        yield trial.report(data)

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit factors of the selected rank to all observed entries."""
        filled, model = fit_low_rank(
            data.X, data.observed, trial.state, data.monitor, data.config.low_rank
        )
        return [Refit(filled, model)]
