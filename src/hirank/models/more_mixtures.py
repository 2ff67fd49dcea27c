"""More mixtures like one that was grown, whose imputed values are averaged with its own.

What a mixture imputes depends on how its components were split on the way. Splits in random
directions lead to other mixtures that are about as good, and the mean of several is better than
each of them (docs/notes/selection.md).
"""

from __future__ import annotations

import numpy as np

from hirank.core.threads import Workers
from hirank.models.em import (
    EMConfig,
    EMFit,
    IncompleteTable,
    fit_mixture,
    independent_gaussian,
    split_components,
)
from hirank.optim.trace import Monitor


def growth_cost(table: IncompleteTable, size: int, config: EMConfig) -> float:
    """Return the multiplications that it takes to grow a mixture of so many components."""
    return 2.0 * config.max_iter * table.cost * size


def grow_another(
    table: IncompleteTable,
    like: EMFit,
    rng: np.random.Generator,
    *,
    config: EMConfig,
    workers: Workers,
    monitor: Monitor,
) -> EMFit:
    """Fit a mixture with as many components as another one, split in random directions."""
    size, n_rows = len(like.model), len(table.X)
    mixture = independent_gaussian(table.X, table.observed, config)
    for _ in range(size.bit_length() + 1):  # components without rows are dropped on the way
        fit = fit_mixture(
            mixture, like.noise, table, workers=workers, monitor=monitor, config=config
        )
        mixture = split_components(fit.model, n_rows, size, config.min_rows, rng)
        if len(mixture) <= len(fit.model) or monitor.stopped:
            break
    return fit
