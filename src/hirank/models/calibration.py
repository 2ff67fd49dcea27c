"""How far a fill may be from the truth: widths learned, and calibrated, on hidden entries.

At hidden entries the error of a fill is known. From it is learned where fills are good and where
not: a scale for every entry, by its feature, by the standard deviation that a mixture gives it and
by how far the candidates disagree. How often errors exceed so many scales is then counted, not
assumed (conformal prediction): for entries like the hidden ones an interval of coverage c holds the
truth with probability c, however wrong the scales are; good scales make it short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtr

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.models.mixture import Mixture

FEWEST = 10
"""Hidden entries below which all entries get the same width."""
FOLDS = 10
"""The scale of a hidden entry is learned from the other folds: its own error would shorten it."""
LEAN, RIDGE = 20.0, 10.0
"""Hidden entries that a feature must have to count as much as all others together, and the weight
of the squared exponents: both keep few entries from saying much."""
FLOOR = 0.05
"""Part of its median that a covariate has at least: its logarithm must not tell noise from 0."""
POWERS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of the learned scale. With 1 every entry is covered as often as any other; where a few entries
are off by far more than the rest, that makes long intervals for all that might be among them."""
JUDGED, AS_SHORT = 0.9, 1.02
"""Coverage at which powers are compared: the largest within this factor of the least mean width."""
FAR = 3.0
"""Times the error that one entry in ten exceeds: beyond, errors say no more about scales."""
TAIL = 0.1
"""Part of the scores that says how they go on beyond the largest."""
MAX_LOG_SCALE = 500.0
"""Beyond, powers of scales overflow."""
STEPS, SETTLED = 50, 1e-4
"""Of Newton's method, and the change of a logarithm after which the next would be nothing."""


@dataclass(frozen=True)
class Covariates:
    """What is known of e entries, and says how good their fills may be."""

    features: IntArray  # e; the column each is in
    deviation: Array  # e; standard deviation given what is observed; 0 if unknown
    spread: Array  # e; of the candidates' fills, around the fill that is used

    def __len__(self) -> int:
        return len(self.features)

    def take(self, index: BoolArray) -> Covariates:
        return Covariates(self.features[index], self.deviation[index], self.spread[index])


@dataclass(frozen=True)
class Scale:
    """exp(level + effect of the feature + slopes . logarithms of the covariates), per entry."""

    level: float
    effects: Annotated[Array, Shape("v")]
    slopes: Annotated[Array, Shape("2")]  # of deviation and spread
    floors: Annotated[Array, Shape("2")]
    centers: Annotated[Array, Shape("2")]  # of the logarithms
    limits: Annotated[Array, Shape("2 2")]  # smallest and largest logarithms; others are clipped

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not (self.floors > 0).all() or not (self.limits[0] <= self.limits[1]).all():
            raise ValueError("floors must be positive, and limits in order")
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.abs(self.slopes) @ np.abs(self.limits - self.centers).max(axis=0)
            largest = self.level + np.abs(self.effects).max(initial=0.0) + reach
        if not largest < MAX_LOG_SCALE:
            raise ValueError(f"logarithms of scales must stay below {MAX_LOG_SCALE:g}")

    @classmethod
    def learn(cls, errors: Array, covariates: Covariates, v: int) -> Scale:
        """The mean of absolute errors, h, by Gamma regression: least sum of error/s + log s.

        Each feature has `LEAN` entries more that are as far off as the rest makes expect.
        """
        raw = np.column_stack([covariates.deviation, covariates.spread])
        floors = np.array([FLOOR * np.median(x[x > 0]) if (x > 0).any() else 1.0 for x in raw.T])
        logs = np.log(raw + floors)
        centers, limits = logs.mean(axis=0), np.array([logs.min(axis=0), logs.max(axis=0)])
        A = np.column_stack([np.ones(len(logs)), logs - centers])
        coefficients, effects = _gamma_regression(errors, A, covariates.features, v)
        return cls(float(coefficients[0]), effects, coefficients[1:], floors, centers, limits)

    def __call__(self, covariates: Covariates, power: float = 1.0) -> Array:
        """Scales of e entries; those away from the middle to a power."""
        raw = np.column_stack([covariates.deviation, covariates.spread])
        logs = np.clip(np.log(raw + self.floors), *self.limits) - self.centers
        return np.exp(self.level + power * (self.effects[covariates.features] + logs @ self.slopes))


@dataclass(frozen=True)
class Calibration:
    """Intervals for fills, from the errors at hidden entries.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.calibration import Calibration, Covariates
    >>> rng = np.random.default_rng(0)
    >>> deviation = rng.uniform(0.1, 1, 2000)
    >>> covariates = Covariates(rng.integers(0, 5, 2000), deviation, np.zeros(2000))
    >>> calibration = Calibration.learn(deviation * rng.normal(size=2000), covariates, 5)
    >>> few = Covariates(np.zeros(2, int), np.array([0.2, 0.8]), np.zeros(2))
    >>> calibration.half_width(few, 0.9).round(1)
    array([0.4, 1.2])
    """

    scale: Scale
    power: float
    scores: Annotated[Array, Shape("h")]  # absolute errors in units of scales, in ascending order

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        scores = self.scores
        if not len(scores) or scores[0] < 0 or (np.diff(scores) < 0).any() or scores[-1] > 1e150:
            raise ValueError("scores must be sorted, nonnegative and not too large")
        if not 0 <= self.power <= 1:
            raise ValueError(f"power must be between 0 and 1; got {self.power!r}")

    @classmethod
    def learn(cls, residuals: Array, covariates: Covariates, n_features: int) -> Calibration:
        """From residuals (fill - truth), h, of hidden entries of a table with `n_features`."""
        errors = np.abs(residuals)
        _check(errors, covariates, n_features)
        positive = _tamed(errors)
        scale = Scale.learn(positive, covariates, n_features)
        if len(errors) < FEWEST:
            return cls(scale, 0.0, np.sort(errors / scale(covariates, 0.0)))
        fold = np.empty(len(errors), np.intp)
        fold[np.argsort(covariates.features, kind="stable")] = np.arange(len(errors)) % FOLDS
        scales = np.empty((len(POWERS), len(errors)))
        for number in range(FOLDS):
            there, here = fold != number, fold == number
            other = Scale.learn(positive[there], covariates.take(there), n_features)
            for i, power in enumerate(POWERS):
                scales[i, here] = other(covariates.take(here), power)
        scores = np.sort(errors / scales, axis=1)
        widths = _quantile(scores, 1 - JUDGED)[:, 0] * scales.mean(axis=1)
        best = int(np.flatnonzero(widths <= AS_SHORT * widths.min())[-1])
        return cls(scale, POWERS[best], scores[best])

    def half_width(self, covariates: Covariates, coverage: float) -> Array:
        """Half the width of intervals of a coverage between 0 and 1 around the fills of e entries.

        The score of rank ceil(coverage (h + 1)) times the scale. Where there is none so high, the
        scores are taken to go on as an exponential with the mean excess of the largest tenth.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, e.g. 0.9, and is {coverage!r}.")
        return _quantile(self.scores, 1 - coverage) * self.scale(covariates, self.power)

    def draw(
        self,
        X: Array,
        observed: BoolArray,
        covariates: Covariates,
        mixture: Mixture | None,
        rng: np.random.Generator,
    ) -> Array:
        """A completed table, n x v, as it may be: for multiple imputation.

        Parameters
        ----------
        X : n x v
            With the fills; covariates are those of missing entries, row by row.
        mixture : Mixture, optional
            Tells which errors in a row go together, and on which side of a fill the truth may be.
            Without it they are independent. How far fills are off follows the scores in any case.
        """
        missing = ~observed
        if mixture is None:
            z = rng.standard_normal(np.count_nonzero(missing))
        else:
            mean, deviation = mixture.conditional(X, observed)
            z = (mixture.draw(X, observed, rng) - mean)[missing] / deviation[missing]
        away = _quantile(self.scores, 2 * ndtr(-np.abs(z))) * self.scale(covariates, self.power)
        drawn = np.array(X, np.float64)
        drawn[missing] += np.sign(z) * away
        return drawn


def _gamma_regression(errors: Array, A: Array, features: IntArray, v: int) -> tuple[Array, Array]:
    """Coefficients of A, h x c, the first of a constant, and effects of v features; by Newton."""
    counts = np.bincount(features, minlength=v)
    ridge = np.append(0.0, np.full(A.shape[1] - 1, RIDGE))
    coefficients, effects = np.append(np.log(errors.mean()), ridge[1:] * 0), np.zeros(v)
    for _ in range(STEPS):
        ratio = errors * np.exp(-(A @ coefficients + effects[features]))
        extra = LEAN * np.exp(-effects)
        slope = A.T @ (1 - ratio) + ridge * coefficients
        slope_effects = counts - np.bincount(features, ratio, v) + LEAN - extra
        # Effects have a diagonal block: they are eliminated, so that wide tables are no problem.
        block = np.bincount(features, ratio, v) + extra
        cross = np.array([np.bincount(features, ratio * a, v) for a in A.T])
        inner = (A.T * ratio) @ A + np.diag(ridge) - (cross / block) @ cross.T
        move = -np.linalg.solve(inner, slope - cross @ (slope_effects / block))
        move_effects = -(slope_effects + move @ cross) / block
        largest = np.abs(A @ move + move_effects[features]).max()
        step = min(1.0, 1.0 / largest) if largest else 1.0
        coefficients, effects = coefficients + step * move, effects + step * move_effects
        if largest < SETTLED:
            break
    return coefficients, effects


def _quantile(scores: Array, outside: float | Array) -> Array:
    """What the part `outside`, e, of entries exceeds, ... x e, from sorted scores, ... x h."""
    outside = np.atleast_1d(outside)
    h = scores.shape[-1]
    # Rounding must not push 0.9 * 10 above 9.
    rank = np.ceil((h + 1) * (1 - outside) - 1e-9).astype(np.intp)
    top = max(1, int(TAIL * h))
    begin = scores[..., [-1 - top]] if top < h else np.zeros((*scores.shape[:-1], 1))
    excess = (scores[..., -top:] - begin).mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        tail = begin + excess * np.log((top + 1) / (h + 1) / np.maximum(outside, 1e-300))
    beyond = np.maximum(scores[..., [-1]], tail)
    return np.where(rank > h, beyond, scores[..., np.clip(rank, 1, h) - 1])


def _tamed(errors: Array) -> Array:
    """Absolute errors, h, to learn scales from: positive, and none far beyond the rest."""
    if not errors.any():
        return np.ones(len(errors))  # whatever the scale is, the scores will be 0
    most = FAR * np.quantile(errors, JUDGED) or errors.max()
    # An exact fill must not ask for a scale of 0, whose logarithm there is not.
    return np.clip(errors, 1e-6 * min(most, errors.mean()), most)


def _check(errors: Array, covariates: Covariates, n_features: int) -> None:
    columns = (covariates.features, covariates.deviation, covariates.spread)
    if not len(errors) or any(len(x) != len(errors) for x in columns):
        raise ValueError(
            f"Intervals are learned from hidden entries, at least one, each with its covariates: "
            f"{len(errors)} residuals, {len(covariates)} covariates."
        )
    if not all(np.isfinite(x).all() for x in (errors, *columns)):
        raise ValueError("Residuals and covariates must be finite: leave out those that are not.")
    if covariates.features.min() < 0 or covariates.features.max() >= n_features:
        raise ValueError(f"features must be columns of the table, 0 to {n_features - 1}.")
    if covariates.deviation.min() < 0 or covariates.spread.min() < 0:
        raise ValueError("deviation and spread are standard deviations: none may be negative.")
