"""Empirical cost and empirical error of an online method against the samples it has seen.

One pass over a stream; each sample counts as it was completed on arrival, with the dictionary of
that moment. Algorithm 2 completes a sample, then takes a step of D; sigma is measured on the whole
table before, as its authors do. The window has no cost of this kind: its kernel and ridge change
whenever it walks its path. Its samples before the first model are filled with means.

Options: `data`, options of the table; `every`, how many samples lie between two points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from hirank import OnlineKFMC
from hirank._typing import Array
from hirank.core.objective import sample_gradient
from hirank.estimators.online_validation import check_online, plan_of
from reproduction.cells import Cell, Measurement
from reproduction.methods import make
from reproduction.tasks.passes import empty, is_algorithm_2
from reproduction.trial import blocks, trial_of

Numbers = Array


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "empirical cost" (of the paper's algorithm) and "empirical error"."""
    trial, model = trial_of(cell), make(cell.method, cell.seed)
    if not isinstance(model, OnlineKFMC):
        raise ValueError(f"online_cost is for OnlineKFMC; got {cell.method.estimator!r}.")
    if is_algorithm_2(model):
        filled, losses = algorithm_2(model, trial.given)
        yield from _curve("empirical cost", losses, cell)
    else:
        filled = on_arrival(model, trial.given)
    size = np.linalg.norm(trial.truth, axis=1)
    errors = np.linalg.norm(filled - trial.truth, axis=1) / size
    yield from _curve("empirical error", errors, cell)


def _curve(measure: str, values: Numbers, cell: Cell) -> Iterator[Measurement]:
    """Running means of values, one a sample."""
    means = np.cumsum(values) / np.arange(1, len(values) + 1)
    every = int(cell.options.get("every", 1))
    for at in range(every, len(values) + 1, every):
        yield Measurement(measure, float(means[at - 1]), at)


def algorithm_2(model: OnlineKFMC, X: Array) -> tuple[Array, Numbers]:
    """Samples, n x m, as completed one after the other, and the loss of each, n.

    The loss is l([x], D) = k(x, x) / 2 - k(x, D) C k(D, x) / 2 + alpha / 2n tr k(D, D), with the
    best code put in, and D as it was before the sample.
    """
    check_online(model)
    plan = plan_of(model)
    stream = empty(model, X.shape[1]).begin(X, plan)
    filled, losses = X.copy(), np.zeros(len(X))
    for i, row in enumerate(X):
        before = stream.model
        assert before is not None
        stream, done = stream.take(row[None], plan, answer=True)
        assert done is not None
        filled[i] = done[0]
        basis = before.setting.basis(before.D)
        own = float(basis.kernel.diag(before.D).sum())
        loss = sample_gradient(before.scaled(done)[0], basis)[0]
        losses[i] = float(loss[0]) + before.setting.alpha * own / (2 * len(X))
    return filled, losses


def on_arrival(model: OnlineKFMC, X: Array) -> Array:
    """Samples, n x m, as completed when they come."""
    with warnings.catch_warnings():  # of means, before there is a model
        warnings.simplefilter("ignore", UserWarning)
        return np.concatenate([model.partial_fit_transform(part) for part in blocks(X)])
