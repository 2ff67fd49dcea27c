"""Where entries are missing: the gaps of a pattern in each feature.

Nothing is imputed; only the shape of the table matters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.cells import Cell, Measurement
from reproduction.data import draw_observed, load_table


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield "gap", the length of each run of missing entries; at = first sample, item = feature."""
    observed = draw_observed(load_table(cell.data, cell.seed).X, cell.pattern, cell.rate, cell.seed)
    for feature, known in enumerate(observed.T):
        edges = np.diff(np.concatenate([[False], ~known, [False]]).astype(int))
        starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield Measurement("gap", end - start, start, feature)
