"""Rows and columns with too few observed entries for any method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from hirank._typing import BoolArray, IntArray


@dataclass(frozen=True)
class Counts:
    """What the pattern of missing values alone shows, of n rows and v columns."""

    sparse_rows: BoolArray  # n
    sparse_columns: BoolArray  # v
    groups: list[IntArray]  # columns of different groups are never observed together
    reachable: float | None  # share of the missing entries; None if nothing is missing


def count_observed(observed: BoolArray, row_needs: int, column_needs: int) -> Counts:
    """Find rows and columns of a table, n x v, with fewer observed entries than they need.

    A row with d latent variables has d unknowns and an equation for each observed entry: d of them
    determine it, and one more is the least that can show that it is wrong.

    A column combines as many functions of the latent variables as the rank of the table (Lemma 1:
    the monomials); each row where it is observed is an equation for their weights.

    A missing entry is out of reach if its row or its column has too few observed entries, or if no
    chain of rows connects it with a column that is observed in its row.
    """
    n, v = observed.shape
    sparse_rows = observed.sum(axis=1) < min(row_needs, v)
    sparse_columns = observed.sum(axis=0) < min(column_needs, n)
    together = observed.T.astype(np.float64) @ observed
    n_groups, label = connected_components(together > 0, directed=False)
    members = np.eye(n_groups)[label]  # v x groups
    related = (observed @ members) @ members.T > 0
    lost = ~related | sparse_rows[:, None] | sparse_columns
    missing = ~observed
    reachable = float(1 - lost[missing].mean()) if missing.any() else None
    groups = [np.flatnonzero(label == number) for number in range(n_groups)]
    return Counts(sparse_rows, sparse_columns, groups if n_groups > 1 else [], reachable)
