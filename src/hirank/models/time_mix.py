"""Weights of several imputed values of an entry, by feature and distance to observed entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.models.timeline import Timeline


@dataclass(frozen=True)
class MixConfig:
    """Constants of the weights; measured in docs/notes/temporal.md."""

    edges: tuple[float, ...] = (1.5, 2.5, 4.5, 8.5, 16.5, 32.5)  # of distances, in usual steps
    prior_at_distance: float = 100.0  # entries that all distances count as, for each of them
    prior_of_feature: float = 200.0  # entries that all features count as, for each of them
    max_error: float = 10.0  # root mean squares to which errors are clipped


DEFAULTS = MixConfig()


def distance_classes(
    observed: BoolArray, timeline: Timeline, unit: float, config: MixConfig = DEFAULTS
) -> IntArray:
    """Return the class of the distance to the nearest observed entry of the feature, n x m."""
    distance = np.full(observed.shape, np.inf)
    for span in timeline.spans():
        times, seen = timeline.times[span, None], observed[span]
        last = np.maximum.accumulate(np.where(seen, times, -np.inf), axis=0)
        later = np.minimum.accumulate(np.where(seen, times, np.inf)[::-1], axis=0)[::-1]
        distance[span] = np.minimum(times - last, later - times)
    return np.digitize(distance / unit, config.edges)


def mix_weights(
    errors: Array, features: IntArray, classes: IntArray, m: int, config: MixConfig = DEFAULTS
) -> Array:
    """Return weights, classes x m x c, of c predictions that are nonnegative and sum to 1.

    They minimize the squared errors at held-out entries. Features and distances with few of these
    are judged by the others as well.

    Parameters
    ----------
    errors : h x c
    features, classes : h
        Of the held-out entries.
    """
    c, n_classes = errors.shape[1], len(config.edges) + 1
    size = np.sqrt(np.mean(errors**2)) + np.finfo(np.float64).tiny ** 0.5
    errors = np.clip(errors / size, -config.max_error, config.max_error)
    products = errors[:, :, None] * errors[:, None, :]
    number = classes * m + features
    flat = np.zeros((n_classes * m, c, c))
    np.add.at(flat, number, products)
    sums = flat.reshape(n_classes, m, c, c)
    counts = np.bincount(number, minlength=n_classes * m).reshape(n_classes, m)[..., None, None]
    whole = products.mean(axis=0)
    far, near = config.prior_at_distance, config.prior_of_feature
    pooled = sums.sum(axis=1, keepdims=True) + far * whole
    pooled /= counts.sum(axis=1, keepdims=True) + far
    moments = (sums + near * pooled) / (counts + near)
    weights = _smallest_mean_square(moments.reshape(-1, c, c))
    return weights.reshape(n_classes, m, c)


def _smallest_mean_square(moments: Array) -> Array:
    """Return the weights, k x c, that minimize w' A w, w >= 0 with sum 1, for moments A, k x c x c.

    There are few predictions, so all subsets are tried.
    """
    k, c = moments.shape[:2]
    A = moments + 1e-9 * np.trace(moments, axis1=1, axis2=2)[:, None, None] / c * np.eye(c)
    A = A + np.finfo(np.float64).tiny ** 0.5 * np.eye(c)
    best, lowest = np.zeros((k, c)), np.full(k, np.inf)
    for subset in range(1, 2**c):
        members = np.flatnonzero([subset >> i & 1 for i in range(c)])
        w = np.linalg.solve(A[:, members[:, None], members], np.ones((k, len(members), 1)))[..., 0]
        total = w.sum(axis=1)
        w = w / total[:, None]
        better = (w >= 0).all(axis=1) & (1 / total < lowest) & (total > 0)
        lowest[better] = 1 / total[better]
        best[better] = 0
        best[np.ix_(better, members)] = w[better]
    return best
