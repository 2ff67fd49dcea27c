"""Gaussian filters of rows that follow each other, with a covariance that is learned.

Each filter describes the deviations of a row from the means, in units of the features, by

    x_t = c1 x_{t-1} + c2 x_{t-2} + e_t,    e_t ~ N(0, Q),

with one c1 and c2 for each feature and a full covariance Q:

    static   c1 = c2 = 0                        a Gaussian of single rows
    lagged   the same for a row and the one before as completed, side by side, with a hundredth of
             the shrinkage of correlations and a shorter memory
    loose    as static, with a tenth of the shrinkage: in place of lagged where there are blocks
    level    c1 = a, c2 = 0                     last values, moved as the observed features moved
    trend    c1 = a (1 + f), c2 = -a f          the same with a damped trend

A step that is s times the usual one has c1 and c2 that say the same of s steps in a row, and a
covariance that has grown accordingly (`clock.py`).

The prediction of a row is the conditional mean given the rows before and its observed entries; of
an observed entry it is that given the others (leave-one-out), at no cost. Q is learned by online
expectation-maximization with exponential forgetting. docs/notes/ordered_streams.md has what was
measured and what did not work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from hirank import _compiled
from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.online.clock import Pace, continuation, growth_of_level, growth_of_trend
from hirank.online.conditioning import Filtered, Prediction, condition
from hirank.online.moments import RunningMoments

KINDS = ("static", "lagged", "level", "trend")
"""The filters of a stream; "loose" takes the place of "lagged" where it would cost too much."""
_EVEN = Pace()


@dataclass(frozen=True)
class FilterConfig:
    """Constants of the filters (docs/notes/ordered_streams.md)."""

    memory: float = 500.0  # rows over which the covariance is averaged
    prior_rows: float = 20.0  # that the first covariance counts for
    prior_variance: float = 0.1  # of that covariance
    loose_shrinkage: float = 0.1  # of the correlations of the loose filter, times the usual one
    lagged_shrinkage: float = 0.01  # the same of the lagged filter
    lagged_memory: float = 300.0  # rows over which its covariance is averaged
    max_lagged: float = 6.0  # errors expected by the level filter, by which it may differ from that
    min_lagged: float = 0.05  # the least such error, in standard deviations of the feature
    ridge: float = 1e-4  # part of each variance that is added
    min_variance: float = 1e-9
    inflation: float = 1e-6  # part of predicted variances that is added
    max_innovation: float = 5.0  # standard deviations to which innovations are clipped
    max_move: float = 5.0  # standard deviations by which observed entries may move others
    max_level: float = 1.0  # autocorrelation of levels
    max_step: float = 0.95  # autocorrelation of steps
    largest_lagged: int = 100  # features: beyond, the lagged filter takes most of the time
    largest_block: int = 128  # features: the cost of a filter grows with their cube
    usual_block: int = 64  # features where one block is not enough
    reach: float = 3.0  # root mean square steps to which the step that a trend continues is clipped


class TrendSteps(NamedTuple):
    """How the trend filter takes a step, m each."""

    c1: Array
    c2: Array
    reach: Array  # to which the last step is clipped, in units of the data
    growth: Array  # deviations of e over those of a usual step


def trend_steps(moments: RunningMoments, pace: Pace, config: FilterConfig) -> TrendSteps:
    """Return how the trend filter takes the next step."""
    damping = moments.damping(config.max_level, config.max_step, config.reach)
    growth = np.sqrt(growth_of_trend(damping.step, pace.step))
    level, step = damping.level**pace.step, continuation(damping.step, pace)
    reach = damping.max_step * np.sqrt(pace.before)
    return TrendSteps(level * (1 + step), -level * step, reach, growth)


class Step(NamedTuple):
    """What a filter expects of a row, and the filter after it."""

    imputed: Array  # as of `Filtered`
    variance: Array
    after: GaussianFilter | None  # None if nothing was to be learned


@dataclass(frozen=True)
class GaussianFilter:
    """One filter: the state of the last row, and the sums from which Q is estimated."""

    kind: str
    x: Annotated[Array, Shape("m")]  # the last row as completed, in units of the data
    before: Annotated[Array, Shape("m")]  # the row before, given what was observed since
    P: Annotated[Array, Shape("m m")]  # covariance of x
    P_cross: Annotated[Array, Shape("m m")]  # of x and `before`; zeros without a trend
    P_before: Annotated[Array, Shape("m m")]  # of `before`; zeros without a trend
    Q_sum: Annotated[Array, Shape("m m")]
    weight: float  # rows behind Q_sum
    seen: float  # observed entries behind it

    @classmethod
    def start(cls, kind: str, m: int, config: FilterConfig) -> GaussianFilter:
        """Return a filter that has seen no rows."""
        zeros, none = np.zeros(m), np.zeros((m, m))
        return cls(kind, zeros, zeros, np.eye(m), none, none, none, 0.0, 0.0)._forget(config)

    def _forget(self, config: FilterConfig) -> GaussianFilter:
        """Return the filter with the covariance of the beginning."""
        m, n = len(self.x), config.prior_rows
        return replace(self, Q_sum=n * config.prior_variance * np.eye(m), weight=n, seen=0.0)

    def add_features(self, count: int, config: FilterConfig) -> GaussianFilter:
        """Return the filter with so many features more, which have no values."""
        if self.kind == "lagged":  # rows, and then the rows before
            half = len(self.x) // 2
            wide = replace(self, kind="loose").add_features(2 * count, config)
            new = 2 * half + np.arange(count)
            order = np.concatenate([np.arange(half), new, half + np.arange(half), new + count])
            return replace(wide._at(order), kind="lagged")
        more = GaussianFilter.start(self.kind, count, config)
        variance = config.prior_variance * self.weight * np.eye(count)
        return replace(
            self,
            x=np.append(self.x, more.x),
            before=np.append(self.before, more.before),
            P=block_diag(self.P, more.P),
            P_cross=block_diag(self.P_cross, more.P_cross),
            P_before=block_diag(self.P_before, more.P_before),
            Q_sum=block_diag(self.Q_sum, variance),
        )

    def _at(self, features: IntArray) -> GaussianFilter:
        """Return the filter with its features in another order."""
        square = np.ix_(features, features)
        return replace(
            self,
            x=self.x[features],
            before=self.before[features],
            P=self.P[square],
            P_cross=self.P_cross[square],
            P_before=self.P_before[square],
            Q_sum=self.Q_sum[square],
        )

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if self.kind not in (*KINDS, "loose"):
            allowed = ", ".join((*KINDS, "loose"))
            raise ValueError(f"kind must be one of {allowed}; got {self.kind!r:.40}")
        if not self.weight > 0 or self.seen < 0:
            raise ValueError("weight must be positive, and seen not negative")
        if self.Q_sum.diagonal().min() < 0 or not np.allclose(self.Q_sum, self.Q_sum.T):
            raise ValueError("Q_sum must be symmetric, with a diagonal that is not negative")

    def rescale(self, factor: Array, first: bool, config: FilterConfig) -> GaussianFilter:
        """Return the filter in other units; what it learned before the first ones is forgotten."""
        both = np.outer(factor, factor)
        scaled = replace(
            self,
            P=self.P * both,
            P_cross=self.P_cross * both,
            P_before=self.P_before * both,
            Q_sum=self.Q_sum * both,
        )
        return scaled._forget(config) if first else scaled

    def noise(self, config: FilterConfig, n_known: int | None = None) -> Array:
        """Return Q, with correlations shrunk by the number of entries behind each known feature."""
        Q = self.Q_sum / self.weight
        variances = Q.diagonal().copy()
        Q *= self._shrinkage(len(self.x) if n_known is None else n_known, config)
        Q[np.diag_indices(len(Q))] = variances * (1 + config.ridge) + config.min_variance
        return Q

    def _shrinkage(self, n_known: int, config: FilterConfig) -> float:
        """Return the factor of correlations."""
        shares = {"loose": config.loose_shrinkage, "lagged": config.lagged_shrinkage}
        m, share = max(n_known, 1), shares.get(self.kind, 1.0)
        return 1 - share * m / (m + self.seen / m)

    def _keep(self, config: FilterConfig) -> float:
        """Return what part of the sums a row leaves."""
        return 1 - 1 / (config.lagged_memory if self.kind == "lagged" else config.memory)

    def predict(
        self, moments: RunningMoments, config: FilterConfig, pace: Pace = _EVEN
    ) -> Prediction:
        """Return what is expected of the next row."""
        Q, mean = self.noise(config, int(moments.known.sum())), moments.mean
        diagonal, none = np.diag_indices(len(mean)), np.zeros((0, len(mean)))
        if self.kind not in ("level", "trend"):
            return Prediction(mean, Q, Q, none)
        if self.kind == "level":
            a = moments.pooled_level()
            growth = growth_of_level(a, pace.step)
            Q, a = Q * growth, a**pace.step
            P = a**2 * self.P + Q
            P[diagonal] *= 1 + config.inflation
            return Prediction(mean + a * (self.x - mean), P, Q, none, np.sqrt(growth))
        c1, c2, reach, deviations = trend_steps(moments, pace, config)
        before = self.x - np.clip(self.x - self.before, -reach, reach)
        Q = Q * deviations[:, None] * deviations
        mixed = c1[:, None] * self.P_cross * c2
        P = c1[:, None] * self.P * c1 + mixed + mixed.T + c2[:, None] * self.P_before * c2 + Q
        P[diagonal] *= 1 + config.inflation
        cross = c1[:, None] * self.P + c2[:, None] * self.P_cross.T
        expected = mean + c1 * (self.x - mean) + c2 * (before - mean)
        return Prediction(expected, P, Q, cross, deviations)

    def step(
        self, y: Array, moments: RunningMoments, pace: Pace, config: FilterConfig, *, learn: bool
    ) -> Step:
        """Return what the filter expects of a row y, m, given its observed entries.

        With `learn`, also the filter after the row. In the compiled core if there is one.
        """
        core = _compiled.core()
        if core is None:
            prediction = self.predict(moments, config, pace)
            row = condition(prediction, y, moments.known, moments.unit, config)
            after = self.learn(y, prediction, row, moments.unit, config) if learn else None
            return Step(row.imputed, row.variance, after)
        known = moments.known
        ordered, trend = self.kind in ("level", "trend"), self.kind == "trend"
        zeros = np.zeros(len(y))
        steps = TrendSteps(zeros, zeros, zeros, zeros + 1)
        if trend:
            steps = trend_steps(moments, pace, config)
        elif ordered:
            a = moments.pooled_level()
            growth = np.sqrt(growth_of_level(a, pace.step))
            steps = steps._replace(c1=np.full(len(y), a**pace.step), growth=steps.growth * growth)
        imputed, variance, *state = core.filter_row(
            np.array([self.x, self.before, y, moments.mean, moments.unit, *steps]),
            known,
            *(np.ascontiguousarray(A) for A in (self.P, self.P_cross, self.P_before, self.Q_sum)),
            ordered,
            trend,
            learn,
            self.weight,
            self._shrinkage(int(known.sum()), config),
            config.ridge,
            config.min_variance,
            config.inflation,
            config.max_innovation,
            config.max_move,
            self._keep(config),
        )
        if not learn:
            return Step(imputed, variance, None)
        count, weight, seen = int((known & ~np.isnan(y)).sum()), self.weight, self.seen
        if count:
            keep = self._keep(config)
            weight, seen = keep * weight + 1, keep * seen + count
        x, before, P, P_cross, P_before, Q_sum = state
        after = GaussianFilter(self.kind, x, before, P, P_cross, P_before, Q_sum, weight, seen)
        return Step(imputed, variance, after)

    def learn(
        self, y: Array, prediction: Prediction, row: Filtered, unit: Array, config: FilterConfig
    ) -> GaussianFilter:
        """Return the filter after a row y, m, NaN where missing."""
        _, P, Q, cross, growth = prediction
        x, at, keep = np.where(np.isnan(y), row.imputed, y), row.at, self._keep(config)
        m, ordered, trend = len(x), self.kind in ("level", "trend"), len(cross) > 0
        of_noise, of_P, of_cross = np.split(row.solved, [m, 2 * m], axis=1)
        new = replace(self, x=x)
        if len(at):
            # e and its covariance, as of a usual step
            rest, e = Q - Q[:, at] @ of_noise, Q[:, at] @ row.pull / growth
            rest = rest / np.multiply.outer(growth, growth)
            new = replace(
                new,
                Q_sum=keep * self.Q_sum + (rest + rest.T) / 2 + np.outer(e, e),
                weight=keep * self.weight + 1,
                seen=keep * self.seen + len(at),
            )
        if ordered:
            new = replace(new, P=_symmetric(P - P[:, at] @ of_P))
        if trend:
            across = cross[at]  # of the observed entries and the row before
            new = replace(
                new,
                before=self.x + unit * (across.T @ row.pull),
                P_cross=cross - P[:, at] @ of_cross,
                P_before=_symmetric(self.P - across.T @ of_cross),
            )
        return new._fix(~np.isnan(y), np.isnan(y) | np.isin(np.arange(m), at))

    def _fix(self, seen: BoolArray, expected: BoolArray) -> GaussianFilter:
        """Return the filter with observed entries known exactly, and first values as constants."""
        P, P_cross = self.P.copy(), self.P_cross.copy()
        if self.kind in ("level", "trend"):
            P[seen] = P[:, seen] = 0
            P_cross[seen] = 0
        before = np.where(expected, self.before, self.x)
        return replace(self, P=P, P_cross=P_cross, before=before)


def _symmetric(A: Array) -> Array:
    return (A + A.T) / 2
