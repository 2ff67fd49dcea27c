"""Fitting a mixture of Gaussians to rows with holes: expectation, maximization, and growth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.models.mixture import FLOOR, Group, Mixture, groups
from hirank.optim.trace import Monitor

NOISE = (0.1, 0.01, 1e-3, 1e-5)
"""Parts of a feature's variance that are taken for noise, from a cautious model to a daring one."""
LEAST_NOISE = 1e-3
"""The least with several components: the smaller they are, the less there is to see noise by."""
STEPS = 10
"""Of expectation and maximization, at most, for each size."""
SETTLED = 2e-3
"""Change of the fills, in standard deviations, at which they end early."""
FEWEST = 8
"""Rows that each half of a component must have for it to be split."""
LARGEST = 32
"""Components at most."""
COST = 5e8
"""Multiplications in one step at most: it limits the components."""
WORSE, BETTER = 1.02, 0.98
"""Times the lowest error so far: a reason to end, and a reason to go on."""


class Level(NamedTuple):
    """A mixture along the way, and the table as it completes it."""

    mixture: Mixture
    noise: float
    X: Array  # n x v
    log_likelihood: float  # of a row, on average


class _Moments(NamedTuple):
    """Sums over rows, by how much they belong to a component."""

    weight: float
    total: Array  # v; deviations from the mean of the component
    square: Array  # v x v; their products, uncertainty included


@dataclass(frozen=True)
class Learner:
    """Rows to learn from, n x v, and who does the work."""

    X: Array
    observed: BoolArray
    workers: Workers
    record: Monitor

    def settle(self, mixture: Mixture, noise: float, steps: int = STEPS) -> Level:
        """Expectation and maximization until the fills stay where they are."""
        X, observed = self.X, self.observed
        parts = groups(observed)
        cost = 4.0 * len(mixture) * sum(g.at.size * (g.at.shape[1] + X.shape[1]) for g in parts)
        stage, before = self.record.stages, None
        for _ in range(steps):
            work = partial(_expect, mixture, X, observed)
            results = [*self.workers.map(work, parts, cost)]
            fills = np.empty(X.shape)
            for group, (_, fill, _) in zip(parts, results, strict=True):
                fills[group.rows] = fill
            log_likelihood = sum(float(r[2]) for r in results) / len(X)
            level = Level(mixture, noise, np.where(observed, X, fills), log_likelihood)
            done = self.record.record(-log_likelihood, stage)
            if done or (before is not None and np.sqrt(np.mean((fills - before) ** 2)) < SETTLED):
                break
            before = fills
            mixture = _maximize(mixture, [r[0] for r in results], noise)
        return level


def grow(
    learners: Sequence[Learner], error: Callable[[Sequence[Array]], float]
) -> Iterator[list[Level]]:
    """Mixtures of more and more components, each from the one before, of several tables in step.

    The tables are the same one with different entries hidden; `error` judges their fills together.
    First one component with less and less noise, then more components. It ends when nothing gets
    better.
    """
    first = learners[0]
    mixtures = [independent(one.X, one.observed) for one in learners]
    best: list[Level] = []
    lowest = np.inf
    for noise in NOISE:
        levels = [one.settle(m, noise) for one, m in zip(learners, mixtures, strict=True)]
        yield levels
        mixtures, found = [level.mixture for level in levels], error([one.X for one in levels])
        if not best or found < lowest:
            best, lowest = levels, found
        if found > WORSE * lowest or first.record.stopped:
            break
    noise, levels, poor = max(best[0].noise, LEAST_NOISE), best, 0
    most = affordable(first.observed)
    while poor < 2 and not first.record.stopped:
        larger = [split(level.mixture, len(first.X), most) for level in levels]
        if len(larger[0]) == len(levels[0].mixture):
            return
        levels = [one.settle(m, noise) for one, m in zip(learners, larger, strict=True)]
        yield levels
        found = error([one.X for one in levels])
        poor = 0 if found < BETTER * lowest else poor + 1
        lowest = min(lowest, found)


def affordable(observed: BoolArray) -> int:
    """Components that a mixture for a table, n x v, may have; 0 if it is too large for any."""
    n, v = observed.shape
    missing = (~observed).sum(axis=1).astype(float)
    one = float(np.sum(missing**3)) + 2.0 * n * v**2 + 4.0 * v**3
    return min(LARGEST, int(COST // one))


def split(mixture: Mixture, n: int, most: int) -> Mixture:
    """Components with enough of n rows cut in two across their longest direction."""
    room = most - len(mixture)
    parts: list[tuple[float, Array, Array]] = []
    for k in np.argsort(-mixture.weights, kind="stable"):
        weight, mean, S = mixture.weights[k], mixture.means[k], mixture.covariances[k]
        if room <= 0 or weight * n < 2 * FEWEST:
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


def independent(X: Array, observed: BoolArray) -> Mixture:
    """One Gaussian whose features have nothing to do with each other."""
    known = np.where(observed, X, np.nan)
    variances = np.nanvar(known, axis=0) + FLOOR
    return Mixture(np.ones(1), np.nanmean(known, axis=0)[None], np.diag(variances)[None])


def _expect(
    mixture: Mixture, X: Array, observed: BoolArray, group: Group
) -> tuple[list[_Moments], Array, float]:
    """What a group of rows adds to the moments of each component; its fills; log likelihood."""
    log_likelihood, share, each = mixture.given(X, observed, group)
    v = X.shape[1]
    cells = (group.at[:, :, None] * (v + 1) + group.at[:, None, :]).ravel()
    moments, fill = [], np.zeros((len(group.rows), v))
    for w, one, component in zip(share.T, each, mixture.components, strict=True):
        fill += w[:, None] * one.fill
        d = one.fill - component.mean
        sure = (d.T * w) @ d
        unsure = np.bincount(cells, (w[:, None, None] * one.C).ravel(), (v + 1) ** 2)
        square = sure + unsure.reshape(v + 1, v + 1)[:v, :v]
        moments.append(_Moments(float(w.sum()), w @ d, square))
    return moments, fill, float(log_likelihood.sum())


def _maximize(mixture: Mixture, moments: list[list[_Moments]], noise: float) -> Mixture:
    v = mixture.means.shape[1]
    counts, means, scatters = [], [], []
    for component, parts in zip(mixture.components, zip(*moments, strict=True), strict=True):
        count = sum(part.weight for part in parts)
        if count < 1:
            continue  # nobody belongs to it
        shift = np.sum([part.total for part in parts], axis=0) / count
        square = np.sum([part.square for part in parts], axis=0)
        counts.append(count)
        means.append(component.mean + shift)
        scatters.append(square - count * np.outer(shift, shift))
    weights = np.array(counts)
    within = np.sum(scatters, axis=0) / weights.sum()
    # A few rows say little about v (v + 1) / 2 numbers: they lean on what all have in common.
    lean = v if len(counts) > 1 else 0
    covariances = []
    for count, scatter in zip(counts, scatters, strict=True):
        S = (scatter + lean * within) / (count + lean)
        covariances.append((S + S.T) / 2 + np.diag(noise * np.diag(S) + FLOOR))
    return Mixture(weights / weights.sum(), np.array(means), np.array(covariances))
