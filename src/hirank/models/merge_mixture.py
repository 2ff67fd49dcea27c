"""Fewer components for a mixture: pairs that lose least are merged, without a look at the rows."""

from __future__ import annotations

import numpy as np

from hirank._typing import Array, IntArray
from hirank.models.mixture import Mixture


def merge_components(mixture: Mixture, count: int) -> Mixture:
    """Return a mixture of at most `count` components, each with the moments of those it replaces.

    A pair i, j that is merged costs (w_i + w_j) log|S_ij| - w_i log|S_i| - w_j log|S_j|, an upper
    bound of twice the Kullback-Leibler divergence between the mixtures before and after (Runnalls,
    2007).

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.merge_mixture import merge_components
    >>> from hirank.models.mixture import Mixture
    >>> means = np.array([[0.0], [9.0], [1.0]])
    >>> mixture = Mixture(np.array([0.25, 0.5, 0.25]), means, np.ones((3, 1, 1)))
    >>> merge_components(mixture, 2).means.ravel().tolist()
    [9.0, 0.5]
    """
    weights, means, covariances = mixture.weights, mixture.means, mixture.covariances
    costs = np.full((len(weights), len(weights)), np.inf)
    for j in range(1, len(weights)):
        costs[j, :j] = _merging_costs(weights, means, covariances, j)[:j]
    while len(weights) > max(count, 1):
        pair = np.array(np.unravel_index(costs.argmin(), costs.shape))
        weight, mean, covariance = _moments(weights, means, covariances, pair)
        weights = np.append(np.delete(weights, pair), weight)
        means = np.vstack([np.delete(means, pair, axis=0), mean])
        covariances = np.concatenate([np.delete(covariances, pair, axis=0), covariance[None]])
        costs = np.delete(np.delete(costs, pair, axis=0), pair, axis=1)
        costs = np.pad(costs, ((0, 1), (0, 1)), constant_values=np.inf)
        last = len(weights) - 1
        costs[last, :last] = _merging_costs(weights, means, covariances, last)[:last]
    return Mixture(weights, means, covariances)


def _moments(
    weights: Array, means: Array, covariances: Array, pair: IntArray
) -> tuple[float, Array, Array]:
    """Return the weight, mean, v, and covariance, v x v, of two components together."""
    weight = float(weights[pair].sum())
    share = weights[pair] / weight
    mean = share @ means[pair]
    away = means[pair] - mean
    covariance = np.tensordot(share, covariances[pair], axes=1) + (away.T * share) @ away
    return weight, mean, covariance


def _merging_costs(weights: Array, means: Array, covariances: Array, j: int) -> Array:
    """Return what it costs to merge component j with each of those before it, j."""
    w, wj = weights[:j], weights[j]
    total = w + wj
    away = means[:j] - means[j]
    merged = (w[:, None, None] * covariances[:j] + wj * covariances[j]) / total[:, None, None]
    merged += (w * wj / total**2)[:, None, None] * (away[:, :, None] * away[:, None, :])
    log_dets = np.linalg.slogdet(covariances[: j + 1])[1]
    costs: Array = total * np.linalg.slogdet(merged)[1] - w * log_dets[:j] - wj * log_dets[j]
    return costs
