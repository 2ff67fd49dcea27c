"""Expectation-maximization for mixtures of Gaussians on incomplete rows, and their growth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from hirank._compiled import core
from hirank._typing import Array, BoolArray, IntArray
from hirank.core.threads import MIN_SHARED_COST, Workers
from hirank.models.mixture import BLOCK_COST, Group, Mixture, groups
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor

NEGLIGIBLE = 1e-8  # a component with less than this of a row gets nothing from it


@dataclass(frozen=True)
class EMConfig:
    """Constants of mixtures, for features of variance 1; measured in docs/notes/selection.md."""

    noise_levels: tuple[float, ...] = (0.1, 0.01, 1e-3, 1e-5)  # parts of the variance
    min_noise: float = 1e-3  # of several components: each has fewer rows to estimate noise from
    max_iter: int = 10  # E-steps for each noise level and number of components
    tol: float = 2e-3  # root mean square change of the imputed values that ends the steps
    min_rows: int = 8  # of each half of a component that is split
    max_components: int = 64
    max_row_cost: float = 4e5  # multiplications per row of a step, which limits the components
    min_variance: float = 1e-9  # added to each variance, so that covariances have an inverse
    worse: float = 1.02  # times the lowest loss so far: smaller noise is not fitted any more
    min_growth: float = 1.2  # factor; few more components are not worth a fit
    better: float = 0.98  # times the lowest loss so far: more components are worth it
    max_small: int = 8  # components up to which growth goes on after one size that is not
    max_growth_cost: float = 1e9  # multiplications of a growth up to which there are several
    min_sparse: int = 8  # components from which most E-steps visit only the likely ones of a row,
    renew: int = 4  # all but the first, the second, and every so many after that


class EMFit(NamedTuple):
    """A mixture that was fitted to a table, and the table as the mixture imputes it."""

    model: Mixture
    noise: float
    filled: Array  # n x v


@dataclass(frozen=True)
class IncompleteTable:
    """A table with missing entries, and its rows in the groups in which they are processed.

    The groups are computed once for all mixtures that are fitted to the table.
    """

    X: Array  # n x v; 0 where not observed
    observed: BoolArray

    @cached_property
    def groups(self) -> list[Group]:
        """Rows with about as many missing entries, for NumPy."""
        return groups(self.observed)

    @cached_property
    def cost(self) -> float:
        """The multiplications of a step with one component."""
        v, missing = self.X.shape[1], (~self.observed).sum(axis=1)
        return float(np.sum(2.0 * v**2 + np.minimum(missing, v - missing) ** 3.0 + 100.0))

    @cached_property
    def sorted_rows(self) -> tuple[IntArray, Array, BoolArray]:
        """The rows such that those with equal patterns of missing entries follow each other."""
        codes = np.packbits(self.observed, axis=1)
        order = np.lexsort(codes.T) if codes.size else np.arange(len(codes))
        return order, np.ascontiguousarray(self.X[order]), self.observed[order]


class _Moments(NamedTuple):
    """Sums over rows, weighted by how likely each row belongs to each of K components."""

    counts: Array  # K
    totals: Array  # K x v; deviations from the means of the components
    squares: Array  # K x v x v; their products, uncertainty included


class _EStep(NamedTuple):
    """What one E-step computes."""

    moments: _Moments
    imputed: Array  # n x v; conditional means, at observed entries too
    log_likelihood: float
    likely: BoolArray | None = None  # n x K; components of sorted rows that are not negligible


@dataclass(frozen=True)
class _State:
    mixture: Mixture
    done: _EStep | None  # None before the first E-step
    objective: float  # negative log-likelihood of a row, on average
    change: float  # root mean square change of the imputed values
    number: int = 0  # of E-steps


@dataclass(frozen=True)
class EM:
    """Expectation-maximization: a step is an M-step, except in the first, and an E-step."""

    table: IncompleteTable
    noise: float  # part of the variance of each feature that is noise
    workers: Workers
    config: EMConfig
    monotone: ClassVar[bool] = False  # noise and pooled covariances are not in the likelihood

    def init(self, start: Mixture) -> _State:
        return _State(start, None, np.inf, np.inf)

    def step(self, state: _State) -> _State:
        mixture, before = state.mixture, state.done
        if before is not None:
            mixture = _m_step(mixture, before.moments, self.noise, self.config.min_variance)
        if core() is None:
            done = _e_step(mixture, self.table, self.workers)
        else:
            likely = self._likely(state, len(mixture))
            done = _compiled_e_step(mixture, self.table, self.workers, likely)
        change = 0.0  # of a table without columns that vary
        if done.imputed.size:
            last = np.inf if before is None else before.imputed
            change = float(np.sqrt(np.mean((done.imputed - last) ** 2)))
        objective = -done.log_likelihood / len(done.imputed)
        return _State(mixture, done, objective, change, state.number + 1)

    def _likely(self, state: _State, size: int) -> BoolArray | None:
        """Return the components that each row is compared with, n x K; None for all.

        From one step to the next hardly any row moves to a component that was negligible
        (docs/notes/selection.md).
        """
        renewed = state.number < 2 or (state.number - 1) % self.config.renew == 0
        if renewed or state.done is None or size < self.config.min_sparse:
            return None
        same = state.done.likely is not None and state.done.likely.shape[1] == size
        return state.done.likely if same else None

    def terminate(self, state: _State, objectives: Sequence[float]) -> bool:
        return state.change < self.config.tol


def fit_mixture(
    start: Mixture,
    noise: float,
    table: IncompleteTable,
    *,
    workers: Workers,
    monitor: Monitor,
    max_iter: int | None = None,
    config: EMConfig | None = None,
) -> EMFit:
    """Fit a mixture to a table from a mixture to start with."""
    config = config or EMConfig()
    solver = EM(table, noise, workers, config)
    state = minimize(solver, start, max_iter=max_iter or config.max_iter, monitor=monitor).state
    if state.done is None:
        raise FloatingPointError("The likelihood of the rows is not finite. Use scale='robust'.")
    return EMFit(state.mixture, noise, np.where(table.observed, table.X, state.done.imputed))


def grow_mixtures(
    tables: Sequence[IncompleteTable],
    loss: Callable[[Sequence[Array]], float],
    config: EMConfig,
    workers: Workers,
    monitor: Monitor,
) -> Iterator[list[EMFit]]:
    """Yield mixtures of more and more components, each started from the one before.

    The tables are one table with different entries held out; `loss` scores them as imputed. First
    one component is fitted with less and less noise, then more components, until the loss does not
    fall any more.
    """

    def fit(mixtures: list[Mixture], noise: float) -> list[EMFit]:
        def fit_fold(fold: int) -> EMFit:
            return fit_mixture(
                mixtures[fold],
                noise,
                tables[fold],
                workers=workers,
                monitor=monitor,
                config=config,
            )

        n, v = tables[0].X.shape
        cost = 2.0 * len(tables) * len(mixtures[0]) * n * v**2
        return [*workers.map(fit_fold, range(len(tables)), cost)]

    mixtures = [independent_gaussian(table.X, table.observed, config) for table in tables]
    best: list[EMFit] = []
    lowest = np.inf
    for noise in config.noise_levels:
        fits = fit(mixtures, noise)
        yield fits
        mixtures, found = [one.model for one in fits], loss([one.filled for one in fits])
        if not best or found < lowest:
            best, lowest = fits, found
        if found > config.worse * lowest or monitor.stopped:
            break
    noise, fits, poor = max(best[0].noise, config.min_noise), best, 0
    n_rows, limit = len(tables[0].X), max_components(tables[0].observed, config)
    while not monitor.late:
        larger = [split_components(one.model, n_rows, limit, config.min_rows) for one in fits]
        if len(larger[0]) < config.min_growth * len(fits[0].model):
            return
        fits = fit(larger, noise)
        yield fits
        found = loss([one.filled for one in fits])
        poor = 0 if found < config.better * lowest else poor + 1
        lowest = min(lowest, found)
        patience = 2 if len(fits[0].model) <= config.max_small else 1
        if poor >= patience:
            return


def max_components(observed: BoolArray, config: EMConfig) -> int:
    """Return how many components a table, n x v, allows; 0 if it is too wide for any.

    What counts is the work of a row, not that of the table: more rows allow more components.
    """
    n, v = observed.shape
    missing = (~observed).sum(axis=1)
    solved = float(np.mean(missing**2.0 * np.minimum(missing, v - missing)))
    row_cost = v**2 + solved / 2 + 2 * v**3 / n
    return min(config.max_components, int(config.max_row_cost // max(row_cost, 1.0)))


def split_components(
    mixture: Mixture,
    n: int,
    limit: int,
    min_rows: int = 8,
    rng: np.random.Generator | None = None,
) -> Mixture:
    """Cut components with enough of n rows in two, up to `limit`.

    They are cut across their longest direction, or across random ones if there is a generator.
    """
    room = limit - len(mixture)
    parts: list[tuple[float, Array, Array]] = []
    for k in np.argsort(-mixture.weights, kind="stable"):
        weight, mean, S = mixture.weights[k], mixture.means[k], mixture.covariances[k]
        if room <= 0 or weight * n < 2 * min_rows:
            parts.append((weight, mean, S))
            continue
        room -= 1
        if rng is None:
            values, vectors = np.linalg.eigh(S)
            away = 0.8 * np.sqrt(values[-1]) * vectors[:, -1]
        else:
            toward = rng.standard_normal(len(mean))
            away = 0.8 * (S @ toward) / np.sqrt(toward @ S @ toward)
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


def _compiled_e_step(
    mixture: Mixture, table: IncompleteTable, workers: Workers, likely: BoolArray | None = None
) -> _EStep:
    """Visit the likely components of each sorted row, n x K, or all."""
    module, arrays = core(), mixture.arrays
    assert module is not None
    order, X, observed = table.sorted_rows
    cost = table.cost * len(mixture)
    # The blocks, in whose order sums are added, do not depend on the number of threads.
    count = max(1 if cost < MIN_SHARED_COST else 2, math.ceil(cost / BLOCK_COST))
    bounds = [len(X) * i // count for i in range(count + 1)]
    results = workers.map(
        lambda block: module.mixture_moments(
            X[block], observed[block], *arrays, None if likely is None else likely[block]
        ),
        [slice(*pair) for pair in pairwise(bounds)],
        cost,
    )
    imputed, marks = np.empty(X.shape), np.empty((len(X), len(mixture)), bool)
    moments, log_likelihood = None, 0.0
    for (first, last), result in zip(pairwise(bounds), results, strict=True):
        imputed[order[first:last]], marks[first:last], *sums, likelihood = result
        log_likelihood += likelihood
        moments = _Moments(*sums) if moments is None else _add(moments, _Moments(*sums))
    assert moments is not None
    return _EStep(moments, imputed, log_likelihood, marks)


def _e_step(mixture: Mixture, table: IncompleteTable, workers: Workers) -> _EStep:
    """Visit all components without the compiled core."""
    work = partial(_group_moments, mixture, table)
    results = [*workers.map(work, table.groups, table.cost * len(mixture))]
    imputed = np.empty(table.X.shape)
    for group, (_, values, _) in zip(table.groups, results, strict=True):
        imputed[group.rows] = values
    moments = reduce(_add, [result[0] for result in results])
    return _EStep(moments, imputed, sum(result[2] for result in results))


def _add(one: _Moments, other: _Moments) -> _Moments:
    return _Moments(*(a + b for a, b in zip(one, other, strict=True)))


def _group_moments(
    mixture: Mixture, table: IncompleteTable, group: Group
) -> tuple[_Moments, Array, float]:
    """Return the moments of the components, imputed values and log-likelihood of a group."""
    log_likelihood, share, each = mixture.given(table.X, table.observed, group)
    v = table.X.shape[1]
    cells = (group.at[:, :, None] * (v + 1) + group.at[:, None, :]).ravel()
    parts, imputed = [], np.zeros((len(group.rows), v))
    for w, one, mean in zip(share.T, each, mixture.means, strict=True):
        imputed += w[:, None] * one.fill
        w = np.where(w < NEGLIGIBLE, 0, w)
        d = one.fill - mean
        between = (d.T * w) @ d
        within = np.bincount(cells, (w[:, None, None] * one.C).ravel(), (v + 1) ** 2)
        square = between + within.reshape(v + 1, v + 1)[:v, :v]
        parts.append((float(w.sum()), w @ d, square))
    counts, totals, squares = zip(*parts, strict=True)
    moments = _Moments(np.array(counts), np.array(totals), np.array(squares))
    return moments, imputed, float(log_likelihood.sum())


def _m_step(mixture: Mixture, moments: _Moments, noise: float, min_variance: float) -> Mixture:
    v = mixture.means.shape[1]
    used = moments.counts >= 1  # no row belongs to the others
    counts = moments.counts[used]
    shifts = moments.totals[used] / counts[:, None]
    scatters = moments.squares[used] - counts[:, None, None] * (
        shifts[:, :, None] * shifts[:, None, :]
    )
    pooled = scatters.sum(axis=0) / counts.sum()
    # A few rows do not determine v (v + 1) / 2 numbers: the pooled covariance counts as v rows.
    prior = v if len(counts) > 1 else 0
    S = (scatters + prior * pooled) / (counts + prior)[:, None, None]
    S = (S + S.transpose(0, 2, 1)) / 2
    diagonal = np.einsum("kii->ki", S)
    diagonal += noise * diagonal + min_variance
    return Mixture(counts / counts.sum(), mixture.means[used] + shifts, S)
