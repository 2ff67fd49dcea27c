"""Factor analysis of a table with missing entries by EM, and the growth of its rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.svt import leading_singular
from hirank.core.threads import Workers
from hirank.models.factor_analysis import FactorAnalyzer
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor

BLOCK = 256
"""Rows, or features, that are processed together."""
FEATURES = 512
"""Features of one product of a block of rows, which limits its memory."""


@dataclass(frozen=True)
class FactorConfig:
    """Constants of factor analysis, for features of variance 1 (docs/notes/wide_tables.md)."""

    min_features: int = 50  # of narrower tables, any covariance can be estimated
    ranks: tuple[int, ...] = (4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128)
    max_numbers: float = 3e7  # in the products of factors of all rows, which limits the rank
    max_cost: float = 5e10  # multiplications in one step, which limits the rank too
    rough_iter: int = 5  # steps for each rank on the way
    max_iter: int = 12  # steps for the selected rank
    tol: float = 2e-3  # root mean square change of the imputed values that ends the steps
    min_noise: float = 1e-5  # variance
    better: float = 0.99  # times the lowest loss so far: a rank that is worth going on
    patience: int = 2  # ranks in a row that are not


class FactorFit(NamedTuple):
    """A model that was fitted to a table, and the table as the model imputes it."""

    model: FactorAnalyzer
    filled: Array  # n x v
    factors: Array  # n x r; their conditional means


@dataclass(frozen=True)
class _State:
    model: FactorAnalyzer
    factors: Array  # n x r; conditional means
    products: Array | None  # n x p; conditional means of products; None before the first E-step
    imputed: Array  # n x v; conditional means, at observed entries too
    objective: float  # negative log-likelihood of a row, on average
    change: float  # root mean square change of `imputed`


@dataclass(frozen=True)
class FactorEM:
    """Expectation-maximization: a step is an M-step, except in the first, and an E-step.

    The products of pairs of factors, and of a constant factor for the mean, are kept as the p
    numbers of the upper half of a symmetric matrix.
    """

    X: Array  # n x v; 0 where not observed
    observed: BoolArray
    workers: Workers
    config: FactorConfig
    monotone: ClassVar[bool] = False  # the noise has a lower limit

    def init(self, start: FactorAnalyzer) -> _State:
        return _State(start, np.zeros((len(self.X), 0)), None, self.X, np.inf, np.inf)

    def step(self, state: _State) -> _State:
        model = state.model
        if state.products is not None:
            model = self._m_step(model, state.factors, state.products)
        factors, products, log_likelihood = self._e_step(model)
        imputed = model.mean + factors @ model.loadings
        change = np.inf
        if state.products is not None:
            change = float(np.sqrt(np.mean((imputed - state.imputed) ** 2)))
        objective = -log_likelihood / len(self.X)
        return _State(model, factors, products, imputed, objective, change)

    def terminate(self, state: _State, objectives: Sequence[float]) -> bool:
        return state.change < self.config.tol

    def _e_step(self, model: FactorAnalyzer) -> tuple[Array, Array, float]:
        """Return the means of factors, n x r, of their products, n x p, and the log-likelihood."""
        blocks = _blocks(len(self.X))
        cost = self.X.size * len(model.loadings) ** 2 / 2
        results = self.workers.map(partial(self._row_moments, model), blocks, cost)
        factors, products, log_likelihoods = zip(*results, strict=True)
        return np.concatenate(factors), np.concatenate(products), sum(log_likelihoods)

    def _row_moments(self, model: FactorAnalyzer, rows: slice) -> tuple[Array, Array, float]:
        r = len(model.loadings)
        upper = np.triu_indices(r)
        seen, d = self.observed[rows], np.where(self.observed[rows], self.X[rows] - model.mean, 0)
        d /= np.sqrt(model.noise)
        basis = model.loadings / np.sqrt(model.noise)
        halves, right = np.zeros((len(d), len(upper[0]))), d @ basis.T
        for start in range(0, len(model.mean), FEATURES):
            part = slice(start, start + FEATURES)
            B = basis[:, part]
            halves += seen[:, part].astype(np.float64) @ (B[upper[0]] * B[upper[1]]).T
        gram = _symmetric(halves, upper, r) + np.eye(r)
        C = np.linalg.inv(gram)
        z = (C @ right[:, :, None])[:, :, 0]
        log_det = np.linalg.slogdet(gram)[1].sum() + (seen @ np.log(model.noise)).sum()
        square = np.sum(d**2) - np.sum(z * right)
        log_likelihood = -(log_det + square + seen.sum() * np.log(2 * np.pi)) / 2
        moments = np.zeros((len(d), r + 1, r + 1))
        z1 = np.column_stack([z, np.ones(len(z))])
        np.multiply(z1[:, :, None], z1[:, None, :], out=moments)
        moments[:, :r, :r] += C
        with_constant = np.triu_indices(r + 1)
        return z, moments[:, with_constant[0], with_constant[1]], float(log_likelihood)

    def _m_step(self, model: FactorAnalyzer, factors: Array, products: Array) -> FactorAnalyzer:
        work = partial(self._feature_parameters, model.noise, factors, products)
        cost = self.X.size * products.shape[1]
        coefficients, noise = zip(
            *self.workers.map(work, _blocks(self.X.shape[1]), cost), strict=True
        )
        W = np.concatenate(coefficients).T
        return FactorAnalyzer(W[-1], np.ascontiguousarray(W[:-1]), np.concatenate(noise))

    def _feature_parameters(
        self, noise: Array, factors: Array, products: Array, features: slice
    ) -> tuple[Array, Array]:
        """Return loadings and means, b x (r + 1), and noise, b, of a block of features."""
        r = factors.shape[1]
        seen, x = self.observed[:, features].astype(np.float64), self.X[:, features]
        gram = _symmetric(seen.T @ products, np.triu_indices(r + 1), r + 1)
        right = np.column_stack([x.T @ factors, x.sum(axis=0)])
        # Loadings are small unless entries determine them: they have the prior N(0, 1).
        prior = np.append(np.ones(r), 0)
        ridge = noise[features, None, None] * np.diag(prior)
        w = np.linalg.solve(gram + ridge, right[:, :, None])[:, :, 0]
        square = np.sum(x**2, axis=0) - np.sum(w * (2 * right - (gram @ w[:, :, None])[:, :, 0]), 1)
        return w, np.maximum(square / seen.sum(axis=0), self.config.min_noise)


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]


def _symmetric(halves: Array, upper: tuple[IntArray, IntArray], r: int) -> Array:
    """Return symmetric matrices, n x r x r, from their upper halves, n x p."""
    full = np.empty((len(halves), r, r))
    full[:, upper[0], upper[1]] = halves
    full[:, upper[1], upper[0]] = halves
    return full


def fit_factors(
    start: FactorAnalyzer,
    X: Array,
    observed: BoolArray,
    *,
    workers: Workers,
    monitor: Monitor,
    max_iter: int | None = None,
    config: FactorConfig | None = None,
) -> FactorFit:
    """Fit factors to a table, n x v, with 0 where not observed, from a model to start with."""
    config = config or FactorConfig()
    solver = FactorEM(X, observed, workers, config)
    state = minimize(solver, start, max_iter=max_iter or config.max_iter, monitor=monitor).state
    if state.products is None:
        raise FloatingPointError("The likelihood of the rows is not finite. Use scale='robust'.")
    return FactorFit(state.model, np.where(observed, X, state.imputed), state.factors)


def select_factors(
    tables: Sequence[tuple[Array, BoolArray]],
    loss: Callable[[Sequence[Array]], float],
    config: FactorConfig,
    workers: Workers,
    monitor: Monitor,
) -> list[FactorFit]:
    """Return factors of the rank with the lowest loss, each rank started from the one before.

    The tables (X with 0 where not observed, and what is observed) are one table with different
    entries held out; `loss` scores the tables as imputed.
    """

    def fit(models: list[FactorAnalyzer], max_iter: int) -> list[FactorFit]:
        return [
            fit_factors(
                model, *table, workers=workers, monitor=monitor, max_iter=max_iter, config=config
            )
            for model, table in zip(models, tables, strict=True)
        ]

    fits = [_independent(*table, config) for table in tables]
    best, lowest, poor = fits, np.inf, 0
    for rank in ranks_for(tables[0][0].shape, config):
        starts = [_add_factors(one, *table, rank) for one, table in zip(fits, tables, strict=True)]
        fits = fit(starts, config.rough_iter)
        found = loss([one.filled for one in fits])
        poor = 0 if found < config.better * lowest else poor + 1
        if found < lowest:
            best, lowest = fits, found
        if poor >= config.patience or monitor.stopped:
            break
    if monitor.stopped:
        return best
    last = fit([one.model for one in best], config.max_iter)
    return last if loss([one.filled for one in last]) < lowest else best


def ranks_for(shape: tuple[int, ...], config: FactorConfig) -> list[int]:
    """Return the ranks to compare for a table, n x v; none if it is too narrow."""
    n, v = shape
    if v < config.min_features:
        return []
    return [
        r
        for r in config.ranks
        if 2 * r <= min(n, v)
        and max(n, v) * r**2 / 2 <= config.max_numbers
        and float(n) * v * r**2 <= config.max_cost
    ]


def _independent(X: Array, observed: BoolArray, config: FactorConfig) -> FactorFit:
    """Return a model without factors."""
    n, v = X.shape
    count = observed.sum(axis=0)
    mean = X.sum(axis=0) / count
    variances = np.where(observed, X - mean, 0).var(axis=0) * n / count
    model = FactorAnalyzer(mean, np.zeros((0, v)), np.maximum(variances, config.min_noise))
    return FactorFit(model, np.where(observed, X, mean), np.zeros((n, 0)))


def _add_factors(fit: FactorFit, X: Array, observed: BoolArray, rank: int) -> FactorAnalyzer:
    """Return a model of a larger rank, with leading directions of what is left unexplained."""
    mean, W, noise = fit.model.mean, fit.model.loadings, fit.model.noise
    residual = np.where(observed, X - mean - fit.factors @ W, 0) / np.sqrt(noise)
    _, s, Qt = leading_singular(residual, rank - len(W))
    more = s[:, None] / np.sqrt(len(X)) * Qt * np.sqrt(noise)
    return FactorAnalyzer(mean, np.vstack([W, more]), noise)
