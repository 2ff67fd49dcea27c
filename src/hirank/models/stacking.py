"""A stack of models: the weighted mean of their imputed values, and the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import nnls

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.bounds import Bounds, clip_missing
from hirank.models.dictionary import Dictionary
from hirank.models.factor_analysis import GaussianModel
from hirank.models.low_rank import Subspace
from hirank.models.routed import RoutedDictionaries
from hirank.models.weighted import WeightedModel

MIN_WEIGHT = 0.03
"""Smaller weights are taken for chance."""
MAX_RELATIVE_LOSS = 0.99
"""Loss over that of the best model alone, below which a stack is worth it."""
HUBER = 3.0
"""Mean absolute residuals beyond which a residual counts linearly: few entries must not decide."""
ROUNDS = 4
MAX_MODELS = 20
"""Models of a family that are averaged."""
MAX_WORK = 2e11
"""Multiplications of a block of rows in a model file; 1.6e11 took 13 s. Four dictionaries of 800
points, the most that the default rules take, need 2e10."""


@dataclass(frozen=True)
class Stack:
    """The weighted mean of the values that several models impute: a `RowModel`."""

    models: tuple[Dictionary | GaussianModel | Subspace | WeightedModel | RoutedDictionaries, ...]
    weights: Annotated[Array, Shape("p")]  # nonnegative, with sum 1
    families: tuple[str, ...]  # p names; models of one family differ by their random start
    bounds: Bounds | None = None  # of imputed values, v features in scaled units

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.models[0].width

    @property
    def work(self) -> float:
        """The multiplications of a block of rows."""
        return sum(model.work for model in self.models)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        return self.average(self.complete_each(X, observed), X, observed)

    def complete_each(self, X: Array, observed: BoolArray) -> list[Array]:
        """Return the rows as each model imputes them, n x v."""
        return [
            clip_missing(self.bounds, model.complete(X, observed), observed)
            for model in self.models
        ]

    def average(self, filled: list[Array], X: Array, observed: BoolArray) -> Array:
        """Return the weighted mean of tables, n x v, one per model."""
        mean = sum(w * one for w, one in zip(self.weights, filled, strict=True))
        return np.where(observed, X, mean)

    def family_weights(self) -> Array:
        """Return the weight of each family, in order."""
        return np.bincount(self._family_numbers(), self.weights)

    def spread(self, filled: list[Array]) -> Array:
        """Return how far the families are from the stack, n x v, from tables of each model."""
        own, tables = self._family_numbers(), np.stack(filled)
        means = []
        for family in range(own.max() + 1):
            shares = np.where(own == family, self.weights, 0)
            means.append(np.tensordot(shares / shares.sum(), tables, axes=1))
        return disagreement(np.stack(means), np.tensordot(self.weights, tables, axes=1))

    def _family_numbers(self) -> IntArray:
        """Return the family of each model, numbered in order."""
        numbers = {name: i for i, name in enumerate(dict.fromkeys(self.families))}
        return np.array([numbers[name] for name in self.families])

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        p = len(self.models)
        if not p or p != len(self.weights) or p != len(self.families):
            raise ValueError("each model must have a weight and a family")
        if (self.weights < 0).any() or abs(self.weights.sum() - 1) > 1e-6:
            raise ValueError("weights must be nonnegative and sum to 1")
        if not self.family_weights().all():
            raise ValueError("each family must have a positive weight")
        if len({model.width for model in self.models}) > 1:
            raise ValueError("the models must describe the same features")
        if self.work > MAX_WORK:
            raise ValueError(f"the models must take at most {MAX_WORK:g} multiplications for a row")
        if self.bounds is not None and len(self.bounds.lower) != self.width:
            raise ValueError(f"bounds must describe {self.width} features")


def disagreement(imputed: Array, mean: Array) -> Array:
    """Return the root mean square distance of several sets of values, over the first axis."""
    distance: Array = np.sqrt(np.mean((imputed - mean) ** 2, axis=0))
    return distance


def selection_loss(residuals: Array) -> float:
    """Return the geometric mean of mean absolute and root mean square error.

    By the first alone, guessing the most frequent value beats the mean; by the second alone, a few
    entries far off decide.
    """
    return float(np.sqrt(np.mean(np.abs(residuals)) * np.sqrt(np.mean(residuals**2))))


def stacking_weights(imputed: Array, truth: Array) -> Array:
    """Return the weights of c models from what they imputed for h held-out entries, h x c.

    Weights are nonnegative and sum to 1. If a stack gains nothing over the best model, that model
    has all the weight.
    """
    losses = [selection_loss(one - truth) for one in imputed.T]
    alone = np.eye(imputed.shape[1])[int(np.argmin(losses))]
    weights = alone
    for _ in range(ROUNDS):
        residual = np.abs(imputed @ weights - truth)
        trust = 1 / np.sqrt(np.maximum(residual, HUBER * residual.mean() + 1e-300))
        weights = _simplex_least_squares(imputed * trust[:, None], truth * trust)
    weights = np.where(weights < MIN_WEIGHT, 0, weights)
    weights = weights / weights.sum() if weights.any() else alone
    loss = selection_loss(imputed @ weights - truth)
    return weights if loss < MAX_RELATIVE_LOSS * min(losses) else alone


def _simplex_least_squares(A: Array, b: Array) -> Array:
    """Return the x >= 0 with sum 1 that minimizes |A x - b|."""
    heavy = 1e3 * max(float(np.abs(A).max()), 1e-300)
    try:
        x, _ = nnls(np.vstack([A, np.full(A.shape[1], heavy)]), np.append(b, heavy))
    except RuntimeError:  # nnls did not converge
        x = np.ones(A.shape[1])
    return x / x.sum() if x.sum() > 0 else np.full(len(x), 1 / len(x))
