"""One trial: a table, holes in it, a method that fills them, and how far off it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from hirank import OnlineKFMC
from hirank._typing import Array, BoolArray, IntArray
from hirank.metrics import missing_relative_error, relative_error, standardized_rmse
from reproduction.cells import Cell, Measurement
from reproduction.data import holes, table
from reproduction.methods import make

ROUNDING = 1e-6
"""Features that vary by less than this part of the table hold nothing but rounding errors."""
BLOCK = 50
"""Rows of a stream that come together."""


class Trial(NamedTuple):
    """A complete table and what a method may see of it."""

    truth: Array  # n x m
    observed: BoolArray  # n x m, True = known
    labels: IntArray | None  # n, which group a row belongs to

    @property
    def given(self) -> Array:
        """The table with NaN in its holes, n x m."""
        return np.where(self.observed, self.truth, np.nan)


def trial_of(cell: Cell, **more: Any) -> Trial:
    """The table and the holes of a cell; `more` counts over its options["data"]."""
    truth, labels = table(cell.data, cell.seed, **{**cell.options.get("data", {}), **more})
    return Trial(truth, holes(truth, cell.pattern, cell.rate, cell.seed), labels)


class Fit(NamedTuple):
    """A fitted estimator, the table as it filled it, and the CPU time that took."""

    model: Any
    filled: Array  # n x m
    seconds: float


def fitted(cell: Cell, X: Array, **more: Any) -> Fit:
    """Fit the method of a cell to X, n x m with NaN in its holes; `more` are further settings.

    A model with a window is given the rows as a stream, others the whole table.
    """
    model = make(cell.method, cell.seed, **more)
    if isinstance(model, OnlineKFMC):
        compile_once()
    began = process_time()
    if isinstance(model, OnlineKFMC) and model.mode == "window":
        filled = np.concatenate(list(stream(model, X)))
    else:
        filled = np.asarray(model.fit_transform(X))
    return Fit(model, filled, process_time() - began)


def stream(model: OnlineKFMC, X: Array) -> Iterator[Array]:
    """Rows of X, n x m, completed as they come, each before it is learned from.

    The first ones come together, so that a model can start from them. This is what a model with a
    window is for: at the end of a table it no longer knows the beginning.
    """
    for part in blocks(X, model.n_start):
        yield np.asarray(model.partial_fit_transform(part))


def blocks(X: Array, first: int = 0) -> list[Array]:
    """Rows of X, n x m, cut into blocks, of which the first has `first` rows if that is more."""
    return np.split(X, range(max(first, BLOCK), len(X), BLOCK))


@cache
def compile_once() -> None:
    """Let Numba load what it compiles, so that no clock runs meanwhile."""
    tiny = np.random.default_rng(0).normal(size=(6, 3))
    tiny[0, 0] = np.nan
    for kernel in ("rbf", "poly"):
        OnlineKFMC(2, mode="paper", kernel=kernel, random_state=0).fit(tiny)


def errors(filled: Array, trial: Trial, at: float = 0.0) -> Iterator[Measurement]:
    """How far off a filled table is, n x m: the paper's error, and two over missing entries."""
    truth, observed, _ = trial
    spread = truth.std(axis=0)
    varies = spread > ROUNDING * spread.max()
    standardized = standardized_rmse(filled[:, varies], truth[:, varies], observed[:, varies])
    yield Measurement("relative error", relative_error(filled, truth), at)
    yield Measurement("missing error", missing_relative_error(filled, truth, observed), at)
    yield Measurement("standardized error", standardized, at)
