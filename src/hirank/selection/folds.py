"""Observed entries that are hidden so that candidates can be judged by them."""

from __future__ import annotations

import numpy as np

from hirank._typing import BoolArray

PARTS, FEWER_PARTS = 10, 5
"""The observed entries of each feature are dealt out to so many parts; a fold hides one."""
FEW = 100
"""Hidden entries below which parts are made larger."""
ENOUGH = 400
"""Hidden entries that make a judgment; a small table needs several folds for that."""
MOST_FOLDS = 5
FEWEST = 50
"""Observed entries below which nothing can be judged."""
FEWEST_IN_HOLES = 30
"""Observed entries of features with holes below which all features are judged by."""


def folds(observed: BoolArray, rng: np.random.Generator) -> list[BoolArray]:
    """Sets of entries to hide, n x v each, disjoint, with the same part of each feature in each.

    Only features with holes are judged by, unless nothing is missing or they are too thin: how well
    others could be filled is nobody's concern. Every row keeps an observed entry and every column
    two. One fold if the table is large, none if it is too small.
    """
    n, v = observed.shape
    if observed.sum() < FEWEST:
        return []
    judged = np.any(~observed, axis=0)
    if observed[:, judged].sum() < FEWEST_IN_HOLES:
        judged[:] = True
    known_there = int(observed[:, judged].sum())
    parts = PARTS if known_there * MOST_FOLDS >= FEW * PARTS else FEWER_PARTS
    part = np.full((n, v), parts)
    for j in np.flatnonzero(judged):
        known = rng.permutation(np.flatnonzero(observed[:, j]))
        first = rng.integers(parts)  # else small features would all be in the same parts
        part[known, j] = (first + np.arange(len(known))) % parts
    found: list[BoolArray] = []
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
