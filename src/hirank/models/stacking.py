"""Several models as one: weighted means of their fills."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds, clip_missing
from hirank.models.row_models import RowModel

LEAST = 0.03
"""Weights below are taken for chance."""
WORTH = 0.99
"""Times the error of the best candidate alone: a blend must be better to be worth it."""
TAME = 3.0
"""Mean absolute residuals beyond which a residual counts linearly: few entries must not decide."""
ROUNDS = 4


@dataclass(frozen=True)
class Blend:
    """The weighted mean of what several models fill in: a `RowModel`."""

    parts: tuple[RowModel, ...]
    weights: Array  # sum to 1
    kinds: tuple[str, ...]  # names; parts of one kind differ by chance only
    bounds: Bounds | None = None  # of the fills, v features in scaled units

    def complete(self, X: Array, observed: BoolArray) -> Array:
        return self.mean(self.fills(X, observed), X, observed)

    def fills(self, X: Array, observed: BoolArray) -> list[Array]:
        """What each part fills in, n x v."""
        return [
            clip_missing(self.bounds, part.complete(X, observed), observed) for part in self.parts
        ]

    def mean(self, fills: list[Array], X: Array, observed: BoolArray) -> Array:
        """The fills, n x v each, as one."""
        whole = sum(w * fill for w, fill in zip(self.weights, fills, strict=True))
        return np.where(observed, X, whole)

    def shares(self) -> Array:
        """The weights of the kinds, in order."""
        own = np.array(self.kinds)
        return np.array([self.weights[own == kind].sum() for kind in dict.fromkeys(self.kinds)])

    def spread(self, fills: list[Array]) -> Array:
        """How far the kinds are from the whole in their fills, n x v each."""
        own = np.array(self.kinds)
        means = []
        for kind in dict.fromkeys(self.kinds):
            shares = np.where(own == kind, self.weights, 0)
            means.append(np.tensordot(shares / shares.sum(), np.stack(fills), axes=1))
        return disagreement(np.stack(means), np.tensordot(self.weights, np.stack(fills), axes=1))


def disagreement(fills: Array, whole: Array) -> Array:
    """Root mean square distance of several fills, over the first axis, from one."""
    distance: Array = np.sqrt(np.mean((fills - whole) ** 2, axis=0))
    return distance


def typical(residuals: Array) -> float:
    """The geometric mean of mean absolute and root mean square.

    By the first alone, guessing the most frequent value beats the mean; by the second alone, a few
    entries far off decide.
    """
    return float(np.sqrt(np.mean(np.abs(residuals)) * np.sqrt(np.mean(residuals**2))))


def weigh(fills: Array, truth: Array) -> Array:
    """Weights of c candidates, from what they filled in for h hidden entries, h x c.

    None is negative and their sum is 1. If a blend gains nothing over the best candidate, that one
    has all the weight.
    """
    errors = [typical(fill - truth) for fill in fills.T]
    alone = np.eye(fills.shape[1])[int(np.argmin(errors))]
    weights = alone
    for _ in range(ROUNDS):
        residual = np.abs(fills @ weights - truth)
        trust = 1 / np.sqrt(np.maximum(residual, TAME * residual.mean() + 1e-300))
        weights = _least_squares(fills * trust[:, None], truth * trust)
    weights = np.where(weights < LEAST, 0, weights)
    weights = weights / weights.sum() if weights.any() else alone
    return weights if typical(fills @ weights - truth) < WORTH * min(errors) else alone


def _least_squares(A: Array, b: Array) -> Array:
    """The x >= 0 with sum 1 that brings A x closest to b."""
    heavy = 1e3 * max(float(np.abs(A).max()), 1e-300)
    try:
        x, _ = nnls(np.vstack([A, np.full(A.shape[1], heavy)]), np.append(b, heavy))
    except RuntimeError:  # it went in circles
        x = np.ones(A.shape[1])
    return x / x.sum() if x.sum() > 0 else np.full(len(x), 1 / len(x))
