"""A row given its observed entries, by what a Gaussian filter expects of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from hirank._typing import Array, BoolArray, IntArray

if TYPE_CHECKING:
    from hirank.online.filters import FilterConfig


class Prediction(NamedTuple):
    """What a filter expects of the next row, before any of its entries is known."""

    mean: Array  # m, in units of the data
    covariance: Array  # m x m, in units of the features, like all that follow
    noise: Array  # m x m, the part of e
    cross: Array  # m x m, covariance with the row before; 0 x m without a trend
    growth: Array | float = 1.0  # m; deviations of e over those of a usual step


class Filtered(NamedTuple):
    """A row given its observed entries."""

    imputed: Array  # m; conditional means, of observed entries given the others
    variance: Array  # m, of the errors of these, in units of the data
    at: IntArray  # o; the observed entries that were used
    pull: Array  # o; S^-1 v, for innovations v with the covariance S
    solved: Array  # o x 3m; S^-1 times their rows of noise, covariance and cross covariance


def condition(
    prediction: Prediction, y: Array, known: BoolArray, unit: Array, config: FilterConfig
) -> Filtered:
    """Return a row y, m, given its observed entries of features that are known already."""
    mean, P, Q, cross, _ = prediction
    at: IntArray = np.flatnonzero(known & ~np.isnan(y))
    m = len(y)
    if not len(at):
        return Filtered(mean, unit**2 * P.diagonal(), at, np.zeros(0), np.zeros((0, 3 * m)))
    S = P[np.ix_(at, at)]
    reach = config.max_innovation * np.sqrt(S.diagonal())
    v = np.clip(((y - mean) / unit)[at], -reach, reach)
    try:
        factor = cho_factor(S, lower=True, check_finite=False)
    except LinAlgError:  # by rounding: the row says nothing
        return condition(prediction, np.full(m, np.nan), known, unit, config)
    right = np.concatenate([v[:, None], Q[at], P[at], cross[at] if len(cross) else Q[at]], axis=1)
    solved = cho_solve(factor, right, check_finite=False)
    pull = solved[:, 0]
    precision = dpotri(factor[0], lower=1)[0].diagonal()
    move = P[:, at] @ pull
    move[at] = v - pull / precision  # leave one out
    far = config.max_move * np.sqrt(P.diagonal())
    variance = np.maximum(
        P.diagonal() - np.einsum("ij,ji->i", P[:, at], solved[:, m + 1 : 2 * m + 1]), 0
    )
    variance[at] = 1 / precision
    return Filtered(
        mean + unit * np.clip(move, -far, far), unit**2 * variance, at, pull, solved[:, 1:]
    )
