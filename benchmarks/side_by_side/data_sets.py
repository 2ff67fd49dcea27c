"""The tables: complete, numeric, in their own units, without features that do not vary.

SETS maps a name to a function of the seed; only synthetic tables depend on it. Files are looked
for in the folder HIRANK_DATA, by default `data` in the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).parents[1]))
from accuracy.real import DATA, TABLES
from common import CASES

from hirank.datasets import (
    polynomial_manifolds,
    uniform_missing,
    value_dependent_missing,
)
from reproduction.readers import load_hopkins

PATTERNS = ("uniform", "value-dependent")
RATES = (0.2, 0.5)


def real(name: str, step: int, seed: int) -> np.ndarray:
    return TABLES[name]()[::step]


def hopkins(name: str, seed: int) -> np.ndarray:
    return load_hopkins(DATA / name).X


def bundled(name: str, rows: int | None, seed: int) -> np.ndarray:
    """A table that comes with scikit-learn; without the labels."""
    return getattr(datasets, f"load_{name}")().data[:rows]


def synthetic(case: str, seed: int) -> np.ndarray:
    return polynomial_manifolds(**CASES[case], random_state=seed)


SETS: dict[str, Callable[[int], np.ndarray]] = {
    "iris": partial(bundled, "iris", None),
    "wine": partial(bundled, "wine", None),
    "diabetes": partial(bundled, "diabetes", None),
    "breast cancer": partial(bundled, "breast_cancer", None),
    "digits": partial(bundled, "digits", 400),
    "air quality": partial(real, "air quality", 1),
    "oil flow": partial(real, "oil flow", 1),
    "white wine": partial(real, "white wine", 4),
    "chlorine": partial(real, "chlorine", 1),
    "gas drift": partial(real, "gas drift", 1),
    "mocap": partial(real, "mocap", 4),  # of every second frame: every eighth
    "1R2RC": partial(hopkins, "1R2RC"),
    "1R2TCR": partial(hopkins, "1R2TCR"),
    **{case: partial(synthetic, case) for case in CASES},
}


def load(table: Callable[[int], np.ndarray], seed: int) -> np.ndarray:
    """The complete table; features that are constant up to rounding are left out."""
    truth = np.asarray(table(seed), dtype=float)
    return truth[:, truth.std(axis=0) > 1e-9 * np.abs(truth).max()]


def observe(truth: np.ndarray, pattern: str, rate: float, seed: int) -> np.ndarray:
    """What is observed: bool, n x m. At least one entry of every row and every column is."""
    state = seed + 1000  # not the one that drew the table
    if pattern == "uniform":
        return uniform_missing(truth.shape, rate, keep_one=True, random_state=state)
    if pattern == "value-dependent":
        return value_dependent_missing(truth, rate, keep_one=True, random_state=state)
    raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}; got {pattern!r}.")
