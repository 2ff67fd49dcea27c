"""Where entries are missing: the holes of a pattern, feature by feature.

Nothing but the shape of the table matters, and the method does not either.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.cells import Cell, Measurement
from reproduction.data import holes, table


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "hole", the length of a run of missing entries; at = its start, item = feature."""
    observed = holes(table(cell.data, cell.seed).X, cell.pattern, cell.rate, cell.seed)
    for feature, known in enumerate(observed.T):
        edges = np.diff(np.concatenate([[False], ~known, [False]]).astype(int))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield Measurement("hole", end - start, start, feature)
