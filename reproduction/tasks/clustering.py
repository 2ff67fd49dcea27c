"""Cluster the rows of a table after imputation, by sparse subspace clustering."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank.cluster import SSC
from hirank.metrics import clustering_error
from reproduction.cells import Cell, Measurement
from reproduction.evaluate import fit_cell, make_masked_table, measure_fit

ALPHAS = (20.0, 100.0, 800.0)
"""Weights of SSC. The paper uses three as well, of a parameter that it does not define."""


def run(cell: Cell) -> Iterator[Measurement]:
    """Impute the table of a cell, and cluster its rows.

    "clustering error" is the lowest over options["alphas"], selected with the truth as in the
    paper; "clustering error, default" is that with the default of SSC.
    """
    table = make_masked_table(cell)
    if table.labels is None:
        raise ValueError(f"clustering requires a table with labels; got {cell.data!r}.")
    fit = fit_cell(cell, table.X)
    yield from measure_fit(fit, table)
    n_groups = len(np.unique(table.labels))
    default = SSC().alpha
    errors = {
        alpha: clustering_error(
            table.labels, SSC(n_groups, alpha=alpha, random_state=cell.seed).fit_predict(fit.filled)
        )
        for alpha in {default, *map(float, cell.options.get("alphas", ALPHAS))}
    }
    yield Measurement("clustering error", min(errors.values()))
    yield Measurement("clustering error, default", errors[default])
