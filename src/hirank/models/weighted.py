"""A model of features in other units than those of the scaled table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, Shape
from hirank.models.dictionary import Dictionary

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""Far beyond what any fit takes."""


@dataclass(frozen=True)
class WeightedModel:
    """Imputes rows by a model of features that are multiplied by weights."""

    weights: Annotated[Array, Shape("v")]
    model: Dictionary

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.model.width

    @property
    def work(self) -> float:
        """The multiplications of a block of rows."""
        return self.model.work

    def complete(self, X: Array, observed: BoolArray) -> Array:
        filled = self.model.complete(X * self.weights, observed) / self.weights
        return np.where(observed, X, filled)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self.weights) != self.width:
            raise ValueError(f"there must be a weight for each of {self.width} features")
        if self.weights.size and not (
            self.weights.min() >= MIN_WEIGHT and self.weights.max() <= MAX_WEIGHT
        ):
            raise ValueError(f"weights must be between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}")
