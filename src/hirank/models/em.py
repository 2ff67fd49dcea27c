"""Expectation-maximization for mixtures of Gaussians on incomplete rows, and their growth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.models.mixture import Group, Mixture, groups
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor


@dataclass(frozen=True)
class EMConfig:
    """Constants of mixtures, for features of variance 1; measured in docs/notes/selection.md."""

    noise_levels: tuple[float, ...] = (0.1, 0.01, 1e-3, 1e-5)  # parts of the variance
    min_noise: float = 1e-3  # of several components: each has fewer rows to estimate noise from
    max_iter: int = 10  # E-steps for each noise level and number of components
    tol: float = 2e-3  # root mean square change of the imputed values that ends the steps
    min_rows: int = 8  # of each half of a component that is split
    max_components: int = 32
    max_cost: float = 3e9  # multiplications in one step, which limits the number of components
    min_variance: float = 1e-9  # added to each variance, so that covariances have an inverse
    worse: float = 1.02  # times the lowest loss so far: smaller noise is not fitted any more
    min_growth: float = 1.2  # factor; where `max_cost` is the limit, few more are not worth a fit
    better: float = 0.98  # times the lowest loss so far: more components are worth it


class EMFit(NamedTuple):
    """A mixture that was fitted to a table, and the table as the mixture imputes it."""

    mixture: Mixture
    noise: float
    filled: Array  # n x v


class _Moments(NamedTuple):
    """Sums over rows, weighted by how likely each row belongs to a component."""

    weight: float
    total: Array  # v; deviations from the mean of the component
    square: Array  # v x v; their products, uncertainty included


@dataclass(frozen=True)
class _State:
    mixture: Mixture
    moments: list[list[_Moments]]  # per group of rows, per component; empty before the first E-step
    imputed: Array  # n x v; conditional means, at observed entries too
    objective: float  # negative log-likelihood of a row, on average
    change: float  # root mean square change of `imputed`


@dataclass(frozen=True)
class EM:
    """Expectation-maximization: a step is an M-step, except in the first, and an E-step."""

    X: Array  # n x v; 0 where not observed
    observed: BoolArray
    noise: float  # part of the variance of each feature that is noise
    workers: Workers
    config: EMConfig
    monotone: ClassVar[bool] = False  # noise and pooled covariances are not in the likelihood

    def init(self, start: Mixture) -> _State:
        return _State(start, [], np.full(self.X.shape, np.inf), np.inf, np.inf)

    def step(self, state: _State) -> _State:
        mixture = state.mixture
        if state.moments:
            mixture = _m_step(mixture, state.moments, self.noise, self.config.min_variance)
        work = partial(_e_step, mixture, self.X, self.observed)
        results = [*self.workers.map(work, self._groups, self._cost * len(mixture))]
        imputed = np.empty(self.X.shape)
        for group, (_, values, _) in zip(self._groups, results, strict=True):
            imputed[group.rows] = values
        log_likelihood = sum(float(result[2]) for result in results) / len(self.X)
        change = 0.0  # of a table without columns that vary
        if imputed.size:
            change = float(np.sqrt(np.mean((imputed - state.imputed) ** 2)))
        return _State(mixture, [result[0] for result in results], imputed, -log_likelihood, change)

    def terminate(self, state: _State, objectives: Sequence[float]) -> bool:
        return state.change < self.config.tol

    @cached_property
    def _groups(self) -> list[Group]:
        return groups(self.observed)

    @cached_property
    def _cost(self) -> float:
        v = self.X.shape[1]
        return 4.0 * sum(group.at.size * (group.at.shape[1] + v) for group in self._groups)


def fit_mixture(
    start: Mixture,
    noise: float,
    X: Array,
    observed: BoolArray,
    *,
    workers: Workers,
    monitor: Monitor,
    max_iter: int | None = None,
    config: EMConfig | None = None,
) -> EMFit:
    """Fit a mixture to a table, n x v, with 0 where not observed, from a mixture to start with."""
    config = config or EMConfig()
    solver = EM(X, observed, noise, workers, config)
    state = minimize(solver, start, max_iter=max_iter or config.max_iter, monitor=monitor).state
    if not state.moments:
        raise FloatingPointError("The likelihood of the rows is not finite. Use scale='robust'.")
    return EMFit(state.mixture, noise, np.where(observed, X, state.imputed))


def grow_mixtures(
    tables: Sequence[tuple[Array, BoolArray]],
    loss: Callable[[Sequence[Array]], float],
    config: EMConfig,
    workers: Workers,
    monitor: Monitor,
) -> Iterator[list[EMFit]]:
    """Yield mixtures of more and more components, each started from the one before.

    The tables (X with 0 where not observed, and what is observed) are one table with different
    entries held out; `loss` scores the tables as imputed. First one component is fitted with less
    and less noise, then more components, until the loss does not fall any more.
    """

    def fit(mixtures: list[Mixture], noise: float) -> list[EMFit]:
        return [
            fit_mixture(mixture, noise, *table, workers=workers, monitor=monitor, config=config)
            for mixture, table in zip(mixtures, tables, strict=True)
        ]

    mixtures = [independent_gaussian(*table, config) for table in tables]
    best: list[EMFit] = []
    lowest = np.inf
    for noise in config.noise_levels:
        fits = fit(mixtures, noise)
        yield fits
        mixtures, found = [one.mixture for one in fits], loss([one.filled for one in fits])
        if not best or found < lowest:
            best, lowest = fits, found
        if found > config.worse * lowest or monitor.stopped:
            break
    noise, fits, poor = max(best[0].noise, config.min_noise), best, 0
    n_rows, limit = len(tables[0][0]), max_components(tables[0][1], config)
    while poor < 2 and not monitor.stopped:
        larger = [split_components(one.mixture, n_rows, limit, config.min_rows) for one in fits]
        min_growth = config.min_growth if limit < config.max_components else 1.0  # costly: more
        if len(larger[0]) <= min_growth * len(fits[0].mixture):
            return
        fits = fit(larger, noise)
        yield fits
        found = loss([one.filled for one in fits])
        poor = 0 if found < config.better * lowest else poor + 1
        lowest = min(lowest, found)


def max_components(observed: BoolArray, config: EMConfig) -> int:
    """Return how many components a table, n x v, allows; 0 if it is too large for any."""
    n, v = observed.shape
    missing = (~observed).sum(axis=1).astype(float)
    one = float(np.sum(missing**3)) + 2.0 * n * v**2 + 4.0 * v**3
    return min(config.max_components, int(config.max_cost // one))


def split_components(mixture: Mixture, n: int, limit: int, min_rows: int = 8) -> Mixture:
    """Cut components with enough of n rows in two across their longest direction, up to `limit`."""
    room = limit - len(mixture)
    parts: list[tuple[float, Array, Array]] = []
    for k in np.argsort(-mixture.weights, kind="stable"):
        weight, mean, S = mixture.weights[k], mixture.means[k], mixture.covariances[k]
        if room <= 0 or weight * n < 2 * min_rows:
            parts.append((weight, mean, S))
            continue
        room -= 1
        values, vectors = np.linalg.eigh(S)
        away = 0.8 * np.sqrt(values[-1]) * vectors[:, -1]
        # What the two means now explain need not be in the covariance any more.
        S = S - 0.9 * np.outer(away, away)
        parts += [(weight / 2, mean - away, S), (weight / 2, mean + away, S)]
    weights, means, covariances = zip(*parts, strict=True)
    return Mixture(np.array(weights), np.array(means), np.array(covariances))


def independent_gaussian(X: Array, observed: BoolArray, config: EMConfig | None = None) -> Mixture:
    """Return one Gaussian with the means and variances of the features, which are independent."""
    known = np.where(observed, X, np.nan)
    variances = np.nanvar(known, axis=0) + (config or EMConfig()).min_variance
    return Mixture(np.ones(1), np.nanmean(known, axis=0)[None], np.diag(variances)[None])


def _e_step(
    mixture: Mixture, X: Array, observed: BoolArray, group: Group
) -> tuple[list[_Moments], Array, float]:
    """Return the moments of each component, imputed values and log-likelihood of a group."""
    log_likelihood, share, each = mixture.given(X, observed, group)
    v = X.shape[1]
    cells = (group.at[:, :, None] * (v + 1) + group.at[:, None, :]).ravel()
    moments, imputed = [], np.zeros((len(group.rows), v))
    for w, one, component in zip(share.T, each, mixture.components, strict=True):
        imputed += w[:, None] * one.fill
        d = one.fill - component.mean
        between = (d.T * w) @ d
        within = np.bincount(cells, (w[:, None, None] * one.C).ravel(), (v + 1) ** 2)
        square = between + within.reshape(v + 1, v + 1)[:v, :v]
        moments.append(_Moments(float(w.sum()), w @ d, square))
    return moments, imputed, float(log_likelihood.sum())


def _m_step(
    mixture: Mixture, moments: list[list[_Moments]], noise: float, min_variance: float
) -> Mixture:
    v = mixture.means.shape[1]
    counts, means, scatters = [], [], []
    for component, parts in zip(mixture.components, zip(*moments, strict=True), strict=True):
        count = sum(part.weight for part in parts)
        if count < 1:
            continue  # no row belongs to it
        shift = np.sum([part.total for part in parts], axis=0) / count
        square = np.sum([part.square for part in parts], axis=0)
        counts.append(count)
        means.append(component.mean + shift)
        scatters.append(square - count * np.outer(shift, shift))
    weights = np.array(counts)
    pooled = np.sum(scatters, axis=0) / weights.sum()
    # A few rows do not determine v (v + 1) / 2 numbers: the pooled covariance counts as v rows.
    prior = v if len(counts) > 1 else 0
    covariances = []
    for count, scatter in zip(counts, scatters, strict=True):
        S = (scatter + prior * pooled) / (count + prior)
        covariances.append((S + S.T) / 2 + np.diag(noise * np.diag(S) + min_variance))
    return Mixture(weights / weights.sum(), np.array(means), np.array(covariances))
