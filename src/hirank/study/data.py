"""Tables that experiments name, complete, and the holes that are made in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank.datasets import (
    load_hopkins,
    load_mocap,
    missing_gaps,
    missing_per_sample,
    polynomial_manifolds,
    twisted_cubic,
    uniform_missing,
)
from hirank.kernels import Array

FOLDER = Path("../shared/data")
"""Where real data is looked for if HIRANK_DATA does not say."""


class NoData(Exception):
    """A file with real data was not found; the message says how to get it."""


class Table(NamedTuple):
    """A complete table."""

    X: Array  # n x m
    labels: NDArray[np.intp] | None = None  # n, which group a row belongs to


def _surfaces(seed: int, *, manifolds: int, degree: int, shuffle: bool = False) -> Table:
    return Table(
        polynomial_manifolds(
            100, manifolds=manifolds, degree=degree, shuffle=shuffle, random_state=seed
        )
    )


def _hopkins(name: str, seed: int) -> Table:
    return Table(*load_hopkins(name))


def _mocap(seed: int) -> Table:
    return Table(load_mocap().X)


TABLES: dict[str, Callable[..., Table]] = {
    "one curved surface": partial(_surfaces, manifolds=1, degree=3),
    "three curved surfaces": partial(_surfaces, manifolds=3, degree=3),
    "ten linear subspaces": partial(_surfaces, manifolds=10, degree=1),
    "twisted cubic": lambda seed: Table(twisted_cubic(100, random_state=seed)),
    "1R2RC": partial(_hopkins, "1R2RC"),
    "1R2TCR": partial(_hopkins, "1R2TCR"),
    "mocap": _mocap,
}


def table(name: str, seed: int, **options: Any) -> Table:
    """A complete table, n x m; the same for the same seed."""
    with _real_data():
        try:
            return TABLES[name](seed, **options)
        except FileNotFoundError as error:
            raise NoData(str(error)) from error


PATTERNS: dict[str, Callable[[Array, float, int], NDArray[np.bool_]]] = {
    "none": lambda X, rate, seed: np.ones(X.shape, bool),
    "random": lambda X, rate, seed: uniform_missing(
        X.shape, rate, keep_one=True, random_state=seed
    ),
    "gaps": lambda X, rate, seed: missing_gaps(X.shape, rate, random_state=seed),
    "per sample": lambda X, rate, seed: missing_per_sample(
        X.shape, round(rate * X.shape[1]), random_state=seed
    ),
}


def holes(X: Array, pattern: str, rate: float, seed: int) -> NDArray[np.bool_]:
    """What is observed of a table: bool, n x m, True = known."""
    return PATTERNS[pattern](X, rate, seed + 1000)  # not the seed that drew the table


@contextmanager
def _real_data() -> Iterator[None]:
    """Real data is found beside the repository, if HIRANK_DATA does not say where."""
    if "HIRANK_DATA" in os.environ or not FOLDER.is_dir():
        yield
        return
    os.environ["HIRANK_DATA"] = str(FOLDER)
    try:
        yield
    finally:
        del os.environ["HIRANK_DATA"]
