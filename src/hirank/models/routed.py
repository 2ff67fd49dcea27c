"""Routed dictionaries: a mixture of Gaussians assigns rows to small dictionaries.

Where a table consists of many pieces, one dictionary needs many points, and each row is explained
by points of other pieces too. A mixture of Gaussians separates the pieces but is flat within each.
So the mixture routes each row to the components that it may belong to, and each component has a
dictionary of its own. What a row has in common with a piece is seen best once it is imputed: among
the dictionaries that are likely, those count that also explain the imputed row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.objective import codes_and_residuals
from hirank.models.dictionary import Dictionary
from hirank.models.mixture import Mixture
from hirank.optim.rows import ROWS_PER_BLOCK

MAX_ROUTES = 3
"""Dictionaries that impute a row; a fourth changed nothing (docs/notes/routed.md)."""
MIN_SHARE = 1e-3
"""Posterior probability of a component below which its dictionary does not impute a row."""
MIN_RESIDUAL = 1e-14
"""Residuals are differences of numbers near 1, and smaller ones are rounding."""


@dataclass(frozen=True)
class RoutedDictionaries:
    """Imputes rows by the dictionaries of the components they may belong to: a `RowModel`."""

    router: Mixture  # K components
    dictionaries: tuple[Dictionary, ...]  # one per component
    residuals: Annotated[Array, Shape("K")]  # median residual of the rows of each component

    def __len__(self) -> int:
        return len(self.dictionaries)

    @property
    def width(self) -> int:
        """The number of features v."""
        return self.router.width

    @property
    def work(self) -> float:
        """The multiplications of a block of rows, of which each may have a route of its own."""
        return self.router.work + sum(one.work for one in self.dictionaries)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        n, v = X.shape
        shares = self.router.shares(X, observed)
        routes = likely_components(shares)
        filled = np.zeros((*routes.shape, v))
        residuals = np.ones(routes.shape)
        for k, dictionary in enumerate(self.dictionaries):
            rows, rank = np.nonzero(routes == k)
            if len(rows):
                imputed = dictionary.complete(X[rows], observed[rows])
                filled[rows, rank] = imputed
                residuals[rows, rank] = measure_residuals(dictionary, imputed) / self.residuals[k]
        likely = shares[np.arange(n)[:, None], routes]
        weights = np.where(routes < 0, 0, likely / residuals)
        weights /= weights.sum(axis=1, keepdims=True)
        mean = sum(weights[:, j, None] * filled[:, j] for j in range(routes.shape[1]))
        return np.where(observed, X, mean)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        K = len(self.router)
        if len(self.dictionaries) != K or len(self.residuals) != K:
            raise ValueError(
                f"there must be a dictionary and a residual for each of {K} components"
            )
        if any(one.width != self.width for one in self.dictionaries):
            raise ValueError(f"the dictionaries must describe {self.width} features")
        if not all(one.settings for one in self.dictionaries):
            raise ValueError("each dictionary must have settings")
        if not (self.residuals >= MIN_RESIDUAL).all():
            raise ValueError(f"residuals must be at least {MIN_RESIDUAL:g}")


def likely_components(shares: Array) -> IntArray:
    """Return the components that rows may belong to, n x at most 3, the likeliest first; else -1.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.routed import likely_components
    >>> likely_components(np.array([[0.3, 0.7, 0.0, 0.0], [0.2, 0.1, 0.3, 0.4]])).tolist()
    [[1, 0, -1], [3, 2, 0]]
    """
    routes = np.argsort(-shares, axis=1, kind="stable")[:, :MAX_ROUTES]
    unlikely = np.take_along_axis(shares, routes, axis=1) < MIN_SHARE
    unlikely[:, 0] = False
    return np.where(unlikely, -1, routes)


def measure_residuals(dictionary: Dictionary, X: Array) -> Array:
    """Return how far completed rows, n x v, are from the span of a dictionary, n.

    In blocks of a fixed number of rows, since products round differently for different shapes.
    """
    basis = dictionary.settings[-1].basis(dictionary.D)
    x = np.pad(X, ((0, -len(X) % ROWS_PER_BLOCK), (0, 0)))
    residuals = codes_and_residuals(x.reshape(-1, ROWS_PER_BLOCK, X.shape[1]), basis)[2]
    return np.maximum(residuals.ravel()[: len(X)], MIN_RESIDUAL)
