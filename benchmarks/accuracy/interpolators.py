"""Interpolation of the columns of a table in order of time, each on its own: methods to compare.

All take a table with NaN, n x m, and return it completed. Before the first and after the last
observed entry of a column they repeat it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator

from hirank.baselines import SoftImpute

Curve = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def along_columns(X: np.ndarray, curve: Curve) -> np.ndarray:
    """Interpolate each column by a curve through its observed entries; by lines if it has few."""
    rows, filled = np.arange(len(X), dtype=float), X.copy()
    for column in filled.T:
        known = ~np.isnan(column)
        first, last = rows[known][[0, -1]] if known.any() else (0, -1)
        inside = ~known & (rows > first) & (rows < last)
        if known.sum() > 3:
            column[inside] = curve(rows[known], column[known])(rows[inside])
        known = ~np.isnan(column)
        column[~known] = np.interp(rows[~known], rows[known], column[known]) if known.any() else 0
    return filled


def lines(X: np.ndarray) -> np.ndarray:
    return along_columns(X, lambda t, x: lambda at: np.interp(at, t, x))


def pchip(X: np.ndarray) -> np.ndarray:
    return along_columns(X, PchipInterpolator)


def akima(X: np.ndarray) -> np.ndarray:
    return along_columns(X, Akima1DInterpolator)


def splines(X: np.ndarray) -> np.ndarray:
    return along_columns(X, CubicSpline)


def soft_impute_on_lags(X: np.ndarray, lags: int = 2) -> np.ndarray:
    """Complete rows together with those before and after them by soft-impute."""
    n, m = X.shape
    padded = np.pad(X, ((lags, lags), (0, 0)), constant_values=np.nan)
    beside = np.hstack([padded[k : k + n] for k in range(2 * lags + 1)])
    filled = SoftImpute(keep_empty_features=True).fit_transform(beside)
    return np.where(np.isnan(X), filled[:, lags * m : (lags + 1) * m], X)


def kalman(X: np.ndarray) -> np.ndarray:
    """Smooth each column with a local linear trend of the highest likelihood on a grid.

    Level and slope are random walks, observations have noise. The variances are relative to the
    largest one, whose size the likelihood determines.
    """
    scale = np.nanstd(X, axis=0)
    scaled = (X - np.nanmean(X, axis=0)) / np.where(scale > 0, scale, 1)
    ratios = np.array([0, 1e-6, 1e-4, 1e-2, 1])
    grid = np.array([q for q in itertools.product(ratios, repeat=3) if max(q) == 1 and max(q[:2])])
    shape = (len(grid), X.shape[1])
    likelihood = _filter(scaled, *(np.broadcast_to(q[:, None], shape) for q in grid.T))[0]
    best = grid[likelihood.argmax(axis=0)]
    _, states = _filter(scaled, *(q[None] for q in best.T))
    level = _smooth(states)[:, 0]
    filled = level * np.where(scale > 0, scale, 1) + np.nanmean(X, axis=0)
    return np.where(np.isnan(X), filled, X)


def _filter(
    y: np.ndarray, noise: np.ndarray, of_level: np.ndarray, of_slope: np.ndarray
) -> tuple[np.ndarray, list[tuple]]:
    """Return log likelihoods, g x m, and predicted and filtered states; by 2 x 2 formulas."""
    zero = np.zeros(noise.shape)
    level, slope = zero, zero
    a, b, c = zero + 1e4, zero, zero + 1e2  # covariance of level and slope
    squares, logs, counts, states = zero, zero, zero, []
    for row in y:
        level, a, b, c = level + slope, a + 2 * b + c + of_level, b + c, c + of_slope
        predicted = level, slope, a, b, c
        known, S = ~np.isnan(row), a + noise + 1e-12
        error = np.where(known, row - level, 0)
        of_a, of_b = np.where(known, a / S, 0), np.where(known, b / S, 0)
        level, slope = level + of_a * error, slope + of_b * error
        a, b, c = a - of_a * a, b - of_a * b, c - of_b * b
        # The first values determine where the states begin.
        counted = known & (counts >= 2)
        squares = squares + np.where(counted, error**2 / S, 0)
        logs = logs + np.where(counted, np.log(S), 0)
        counts = counts + known
        if len(noise) == 1:
            states.append((predicted, (level, slope, a, b, c)))
    used = np.maximum(counts - 2, 1)
    return -used * np.log(squares / used + 1e-300) - logs, states


def _smooth(states: list[tuple]) -> np.ndarray:
    """Return smoothed levels and slopes, n x 2 x m, by the backward pass."""
    level, slope = states[-1][1][:2]
    smoothed = [(level, slope)]
    for later, here in itertools.pairwise(states[::-1]):
        (x, v, a, b, c), (px, pv, pa, pb, pc) = here[1], later[0]
        det = np.maximum(pa * pc - pb**2, 1e-300)
        to_level, to_slope = level - px, slope - pv
        u, w = (pc * to_level - pb * to_slope) / det, (pa * to_slope - pb * to_level) / det
        # P F' is [[a + b, b], [b + c, c]]
        level, slope = x + (a + b) * u + b * w, v + (b + c) * u + c * w
        smoothed.append((level, slope))
    return np.array(smoothed[::-1])[:, :, 0]
