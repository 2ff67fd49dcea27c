"""Empirical cost and error of an online method against the number of samples seen.

One pass over a stream. Each sample is evaluated as it was imputed on arrival, with the dictionary
of that moment. Algorithm 2 imputes a sample, then updates D; sigma is measured on the whole table
before, as in the authors' code. A window has no such cost, since its kernel and ridge change with
each refit; its samples before the first model are imputed with means.

Options: `data`, options of the table; `every`, the number of samples between two points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from hirank import OnlineImputer, OnlineKFMC
from hirank._typing import Array
from hirank.core.objective import sample_gradient
from reproduction.cells import Cell, Measurement
from reproduction.evaluate import make_masked_table, split_rows
from reproduction.methods import make_estimator
from reproduction.tasks.passes import is_algorithm_2, make_stream


def run(cell: Cell) -> Iterator[Measurement]:
    """Yield "empirical cost" (of Algorithm 2) and "empirical error"."""
    table, model = make_masked_table(cell), make_estimator(cell.method, cell.seed)
    if not isinstance(model, OnlineImputer | OnlineKFMC):
        raise ValueError(
            f"online_cost requires OnlineImputer or OnlineKFMC; got {cell.method.estimator!r}."
        )
    if is_algorithm_2(model):
        filled, losses = run_algorithm_2(model, table.X)
        yield from _running_means("empirical cost", losses, cell)
    else:
        filled = complete_on_arrival(model, table.X)
    size = np.linalg.norm(table.truth, axis=1)
    errors = np.linalg.norm(filled - table.truth, axis=1) / size
    yield from _running_means("empirical error", errors, cell)


def _running_means(measure: str, values: Array, cell: Cell) -> Iterator[Measurement]:
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    every = int(cell.options.get("every", 1))
    for at in range(every, len(values) + 1, every):
        yield Measurement(measure, float(means[at - 1]), at)


def run_algorithm_2(model: OnlineKFMC, X: Array) -> tuple[Array, Array]:
    """Impute samples, n x m, one after the other; return them and the loss of each, n.

    The loss is l([x], D) = k(x, x) / 2 - k(x, D) C k(D, x) / 2 + alpha / 2n tr k(D, D), with the
    optimal code, and D as it was before the sample.
    """
    model._check_params()
    config = model._config()
    stream = make_stream(model, X.shape[1]).start(X, config)
    filled, losses = X.copy(), np.zeros(len(X))
    for i, row in enumerate(X):
        before = stream.model
        assert before is not None
        stream, done = stream.append(row[None], config, impute=True)
        assert done is not None
        filled[i] = done[0]
        basis = before.setting.basis(before.D)
        trace = float(basis.kernel.diag(before.D).sum())
        loss = sample_gradient(before.scale(done)[0], basis)[0]
        losses[i] = float(loss[0]) + before.setting.alpha * trace / (2 * len(X))
    return filled, losses


def complete_on_arrival(model: OnlineImputer, X: Array) -> Array:
    """Impute samples, n x m, as they arrive."""
    with warnings.catch_warnings():  # about means, before there is a model
        warnings.simplefilter("ignore", UserWarning)
        return np.concatenate([model.partial_fit_transform(part) for part in split_rows(X)])
