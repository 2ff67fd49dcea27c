"""Observed entries that are hidden so that candidates can be judged by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hirank.kernels import Array

PARTS = 10
"""The observed entries of each feature are dealt out to so many parts; a fold hides one."""
ENOUGH = 400
"""Hidden entries that make a judgment; a small table needs several folds for that."""
MOST_FOLDS = 5
FEWEST = 50
"""Observed entries below which nothing can be judged."""


def folds(observed: NDArray[np.bool_], rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Sets of entries to hide, n x v each, disjoint, with the same part of every feature in each.

    Every row keeps an observed entry and every column two. One fold if the table is large, none if
    it is too small.
    """
    n, v = observed.shape
    if observed.sum() < FEWEST:
        return []
    part = np.full((n, v), PARTS)
    for j in range(v):
        known = rng.permutation(np.flatnonzero(observed[:, j]))
        first = rng.integers(PARTS)  # else small features would all be in the same parts
        part[known, j] = (first + np.arange(len(known))) % PARTS
    found: list[NDArray[np.bool_]] = []
    for number in range(MOST_FOLDS):
        hidden = (part == number) & observed
        left = observed & ~hidden
        hidden[~left.any(axis=1)] = False
        hidden[:, left.sum(axis=0) < 2] = False
        if hidden.any():
            found.append(hidden)
        if sum(int(one.sum()) for one in found) >= ENOUGH:
            break
    return found


def typical(residuals: Array) -> float:
    """The geometric mean of mean absolute and root mean square.

    By the first alone, guessing the most frequent value beats the mean; by the second alone, a few
    entries far off decide.
    """
    return float(np.sqrt(np.mean(np.abs(residuals)) * np.sqrt(np.mean(residuals**2))))
