"""Intervals around imputed values, calibrated on held-out entries.

The errors at held-out entries are known. A scale is fitted to them for every entry, by its feature,
by the standard deviation that a mixture gives it, and by how far the families disagree. How often
errors exceed so many scales is then counted, not assumed (conformal prediction): for entries like
the held-out ones an interval of coverage c contains the truth with probability c, however wrong the
scales are; good scales make it short (docs/notes/intervals.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtr

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.models.factor_analysis import GaussianModel

MIN_ENTRIES = 10
"""Held-out entries below which all entries get the same width."""
FOLDS = 10
"""The scale of a held-out entry is fitted to the other folds: its own error would shorten it."""
PRIOR_ENTRIES, RIDGE = 20.0, 10.0
"""Held-out entries that a feature needs to count as much as all others together, and the weight of
the squared exponents: both shrink what rests on few entries."""
FLOOR = 0.05
"""Part of its median that a covariate has at least: its logarithm must not amplify noise near 0."""
POWERS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Powers of the fitted scale. With 1 every entry is covered as often as any other; where a few
errors are far larger than the rest, that makes long intervals for all that might be among them."""
COMPARED_COVERAGE, MAX_RELATIVE_WIDTH = 0.9, 1.02
"""Coverage at which powers are compared; the largest within this factor of the least mean width is
taken."""
MAX_RELATIVE_ERROR = 3.0
"""Times the error that one entry in ten exceeds, to which errors are clipped in fitting scales."""
TAIL = 0.1
"""Part of the scores from which those beyond the largest are extrapolated."""
MAX_LOG_SCALE = 500.0
"""Beyond, powers of scales overflow."""
STEPS, STEP_TOL = 50, 1e-4
"""Steps of Newton's method, and the change of a logarithm at which they end."""


@dataclass(frozen=True)
class Covariates:
    """What predicts the errors of e imputed entries."""

    features: IntArray  # e; the column of each
    deviation: Array  # e; standard deviation given what is observed; 0 if unknown
    spread: Array  # e; how far the families are from the imputed value

    def __len__(self) -> int:
        return len(self.features)

    def take(self, index: BoolArray) -> Covariates:
        return Covariates(self.features[index], self.deviation[index], self.spread[index])


@dataclass(frozen=True)
class Scale:
    """The scale of errors: exp(level + effect of the feature + slopes . log covariates)."""

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
    def fit(cls, errors: Array, covariates: Covariates, v: int) -> Scale:
        """Fit the mean of absolute errors, h, by Gamma regression: least sum of error/s + log s.

        Each feature has `PRIOR_ENTRIES` more entries, whose errors are as large as expected.
        """
        raw = np.column_stack([covariates.deviation, covariates.spread])
        floors = np.array([FLOOR * np.median(x[x > 0]) if (x > 0).any() else 1.0 for x in raw.T])
        logs = np.log(raw + floors)
        centers, limits = logs.mean(axis=0), np.array([logs.min(axis=0), logs.max(axis=0)])
        A = np.column_stack([np.ones(len(logs)), logs - centers])
        coefficients, effects = _gamma_regression(errors, A, covariates.features, v)
        return cls(float(coefficients[0]), effects, coefficients[1:], floors, centers, limits)

    def __call__(self, covariates: Covariates, power: float = 1.0) -> Array:
        """Return the scales of e entries, with deviations from the mean scale taken to a power."""
        raw = np.column_stack([covariates.deviation, covariates.spread])
        logs = np.clip(np.log(raw + self.floors), *self.limits) - self.centers
        return np.exp(self.level + power * (self.effects[covariates.features] + logs @ self.slopes))


@dataclass(frozen=True)
class Calibration:
    """Intervals around imputed values, from the errors at held-out entries.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.calibration import Calibration, Covariates
    >>> rng = np.random.default_rng(0)
    >>> deviation = rng.uniform(0.1, 1, 2000)
    >>> covariates = Covariates(rng.integers(0, 5, 2000), deviation, np.zeros(2000))
    >>> calibration = Calibration.fit(deviation * rng.normal(size=2000), covariates, 5)
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
    def fit(cls, residuals: Array, covariates: Covariates, n_features: int) -> Calibration:
        """Calibrate on residuals (imputed - truth), h, of a table with `n_features`."""
        errors = np.abs(residuals)
        _check(errors, covariates, n_features)
        positive = _clip_errors(errors)
        scale = Scale.fit(positive, covariates, n_features)
        if len(errors) < MIN_ENTRIES:
            return cls(scale, 0.0, np.sort(errors / scale(covariates, 0.0)))
        fold = np.empty(len(errors), np.intp)
        fold[np.argsort(covariates.features, kind="stable")] = np.arange(len(errors)) % FOLDS
        scales = np.empty((len(POWERS), len(errors)))
        for number in range(FOLDS):
            there, here = fold != number, fold == number
            other = Scale.fit(positive[there], covariates.take(there), n_features)
            for i, power in enumerate(POWERS):
                scales[i, here] = other(covariates.take(here), power)
        scores = np.sort(errors / scales, axis=1)
        widths = _quantile(scores, 1 - COMPARED_COVERAGE)[:, 0] * scales.mean(axis=1)
        best = int(np.flatnonzero(widths <= MAX_RELATIVE_WIDTH * widths.min())[-1])
        return cls(scale, POWERS[best], scores[best])

    def half_width(self, covariates: Covariates, coverage: float) -> Array:
        """Return half the width of intervals of a given coverage around e imputed values.

        It is the score of rank ceil(coverage (h + 1)) times the scale. Beyond the largest score,
        an exponential with the mean excess of the largest tenth is assumed.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1; got {coverage!r}.")
        return _quantile(self.scores, 1 - coverage) * self.scale(covariates, self.power)

    def draw(
        self,
        X: Array,
        observed: BoolArray,
        covariates: Covariates,
        mixture: GaussianModel | None,
        rng: np.random.Generator,
    ) -> Array:
        """Draw a completed table, n x v, for multiple imputation.

        Parameters
        ----------
        X : n x v
            With imputed values; covariates are those of missing entries, row by row.
        mixture : Mixture or FactorAnalyzer, optional
            Determines which errors in a row are correlated, and the skewness of each. Without it
            they are independent. The size of errors follows the scores in any case.
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
    """Return coefficients of A, h x c, whose first column is constant, and effects of features."""
    counts = np.bincount(features, minlength=v)
    ridge = np.append(0.0, np.full(A.shape[1] - 1, RIDGE))
    coefficients, effects = np.append(np.log(errors.mean()), ridge[1:] * 0), np.zeros(v)
    for _ in range(STEPS):
        ratio = errors * np.exp(-(A @ coefficients + effects[features]))
        extra = PRIOR_ENTRIES * np.exp(-effects)
        slope = A.T @ (1 - ratio) + ridge * coefficients
        slope_effects = counts - np.bincount(features, ratio, v) + PRIOR_ENTRIES - extra
        # The block of the effects is diagonal, so they are eliminated: wide tables cost little.
        block = np.bincount(features, ratio, v) + extra
        cross = np.array([np.bincount(features, ratio * a, v) for a in A.T])
        inner = (A.T * ratio) @ A + np.diag(ridge) - (cross / block) @ cross.T
        move = -np.linalg.solve(inner, slope - cross @ (slope_effects / block))
        move_effects = -(slope_effects + move @ cross) / block
        largest = np.abs(A @ move + move_effects[features]).max()
        step = min(1.0, 1.0 / largest) if largest else 1.0
        coefficients, effects = coefficients + step * move, effects + step * move_effects
        if largest < STEP_TOL:
            break
    return coefficients, effects


def _quantile(scores: Array, outside: float | Array) -> Array:
    """Return the quantiles that shares `outside`, e, of sorted scores, ... x h, exceed."""
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


def _clip_errors(errors: Array) -> Array:
    """Return absolute errors, h, to fit scales to: positive, and none far beyond the rest."""
    if not errors.any():
        return np.ones(len(errors))  # all scores are 0 whatever the scale is
    limit = MAX_RELATIVE_ERROR * np.quantile(errors, COMPARED_COVERAGE) or errors.max()
    # An error of 0 must not ask for a scale of 0, which has no logarithm.
    return np.clip(errors, 1e-6 * min(limit, errors.mean()), limit)


def _check(errors: Array, covariates: Covariates, n_features: int) -> None:
    columns = (covariates.features, covariates.deviation, covariates.spread)
    if not len(errors) or any(len(x) != len(errors) for x in columns):
        raise ValueError(
            f"Each residual must have covariates, and there must be one; got {len(errors)} "
            f"residuals and {len(covariates)} covariates."
        )
    if not all(np.isfinite(x).all() for x in (errors, *columns)):
        raise ValueError("residuals and covariates must be finite.")
    if covariates.features.min() < 0 or covariates.features.max() >= n_features:
        raise ValueError(f"features must be between 0 and {n_features - 1}.")
    if covariates.deviation.min() < 0 or covariates.spread.min() < 0:
        raise ValueError("deviation and spread must not be negative.")
