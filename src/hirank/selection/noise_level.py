"""Whether linear models can be ahead, and whether they leave only noise.

No model has a lower error than the noise of the entries themselves. Where the error of the best
linear model at held-out entries is close to that, curved models cannot be worth their time in a
large table (docs/notes/large_tables.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.models.als import Factors
from hirank.selection.candidates import GaussianMixtures, LowRank
from hirank.selection.trial import SearchData, Trial


def only_noise_left(trials: Sequence[Trial], data: SearchData) -> bool:
    """Return whether the best trial is linear and close to the noise that low rank leaves."""
    config = data.config.noise
    best = min(trials, key=lambda one: one.loss, default=None)
    factors = next((one.state for one in trials if isinstance(one.candidate, LowRank)), None)
    compared = data.is_large and len(data.folds) == 1
    if not compared or best is None or factors is None or not best.linear:
        return False
    errors = data.at_held_out(best.filled) - data.truth
    level = noise_level(factors.factors, data.X, data.training[0])
    return float(np.sqrt(np.mean(errors**2))) < config.max_ratio * level


def is_far_from_linear(trials: Sequence[Trial], max_ratio: float) -> bool:
    """Return whether a mixture is so far ahead of one Gaussian that no linear model is worth it.

    Other linear models are rarely better than one Gaussian by as much (docs/notes/selection.md).
    """
    gaussian = [one for one in trials if isinstance(one.candidate, GaussianMixtures)]
    single = min((one.loss for one in gaussian if one.linear), default=0.0)
    return any(one.loss < max_ratio * single for one in gaussian)


def noise_level(factors: Factors, X: Array, observed: BoolArray) -> float:
    """Return the noise that factors of X, n x v, and a constant feature leave; 0 if unknown.

    That is the root of the squared residuals over their degrees of freedom.
    """
    U, V = factors
    n, v = X.shape
    free = int(observed.sum()) - len(V) * (n + v - len(V))
    if free <= 0:
        return 0.0
    residuals = ((U @ V)[:, :v] - X)[observed]
    return float(np.sqrt(np.sum(residuals**2) / free))
