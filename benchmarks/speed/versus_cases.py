"""What hirank is compared with version 0.1 on: each line of the issue's table, and more tables.

A case makes a table and says how it is measured (versus_worker.py); a line is one number of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "side_by_side"))
import data_sets
from accuracy.real import TABLES
from common import stream
from data_sets import load, observe

from hirank.datasets import polynomial_manifolds, polynomial_stream
from hirank.datasets.latent import Monomials

__all__ = ["CASES", "GROUPS", "Case", "load", "observe"]


@dataclass(frozen=True)
class Case:
    """A table, the share of it that is missing, and the target of each line that is measured."""

    table: Callable[[int], np.ndarray] | None  # of a seed; None: versus_worker.py makes one
    missing: float
    targets: dict[str, float] = field(default_factory=dict)  # "": of the case's only line
    measure: str = "fit"
    n_train: int = 0  # rows to fit; the others are imputed with the fitted model
    unit: str = "s"
    finishes: bool = True  # whether version 0.1 does


def cubic_surface(n: int, m: int, seed: int, *, rank: int = 0) -> np.ndarray:
    """Return a noisy cubic surface, n x m; optionally beside a linear part of so high a rank.

    All monomials up to degree 3 of three latent variables in [-1, 1], with random normal loadings,
    columns scaled to standard deviation 1, and noise of standard deviation 0.1.
    """
    rng = np.random.default_rng(seed)
    features = Monomials.make(3, 3)(rng.uniform(-1, 1, (n, 3)))
    X = features @ rng.standard_normal((features.shape[1], m))
    X /= X.std(axis=0)
    if rank:
        X += rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m)) / np.sqrt(rank)
        X /= X.std(axis=0)
    return X + 0.1 * rng.standard_normal((n, m))


def digits(seed: int) -> np.ndarray:
    return TABLES["digits"]()


def many_surfaces(manifolds: int, n: int, seed: int) -> np.ndarray:
    """Return n rows on so many surfaces, 20 columns, as for routed dictionaries."""
    return polynomial_manifolds(n // manifolds, 20, manifolds=manifolds, random_state=seed)


def paper(name: str) -> Callable[[int], np.ndarray]:
    return data_sets.SETS[name]


def arriving(seed: int) -> np.ndarray:
    return polynomial_stream(20, latent=2, random_state=seed).take(800)


def fit(table: Callable[[int], np.ndarray], missing: float, target: float, **more: bool) -> Case:
    return Case(table, missing, {"": target}, **more)


ISSUE: dict[str, Case] = {
    "iris 20 %": fit(paper("iris"), 0.2, 0.3),
    "wine 20 %": fit(paper("wine"), 0.2, 0.3),
    "breast cancer 20 %": fit(paper("breast cancer"), 0.2, 1.0),
    "air quality 20 %": fit(paper("air quality"), 0.2, 2.5),
    "one surface 30 %": fit(paper("one curved surface"), 0.3, 2.0),
    "one surface 50 %": fit(paper("one curved surface"), 0.5, 2.5),
    "three surfaces 30 %": fit(paper("three curved surfaces"), 0.3, 5.0),
    "three surfaces 50 %": fit(paper("three curved surfaces"), 0.5, 6.0),
    "ten subspaces 30 %": fit(paper("ten linear subspaces"), 0.3, 8.0),
    "ten subspaces 50 %": fit(paper("ten linear subspaces"), 0.5, 10.0),
    "digits 40 %": fit(digits, 0.4, 8.0),
    "cubic 2000 x 100": fit(partial(cubic_surface, 2000, 100), 0.2, 7.0),
    "cubic 10000 x 20": fit(partial(cubic_surface, 10_000, 20), 0.2, 12.0),
    "cubic 5000 x 30": fit(partial(cubic_surface, 5000, 30), 0.2, 20.0),
    "cubic 20000 x 50": fit(partial(cubic_surface, 20_000, 50), 0.2, 60.0),
    "cubic 500 x 300": fit(partial(cubic_surface, 500, 300), 0.2, 10.0),
    "wide 500 x 2000": fit(partial(cubic_surface, 500, 2000, rank=20), 0.2, 300, finishes=False),
    "wide 2000 x 2900": fit(partial(cubic_surface, 2000, 2900, rank=20), 0.2, 300, finishes=False),
    "wide 500 x 10000": fit(partial(cubic_surface, 500, 10_000, rank=20), 0.2, 300, finishes=False),
    "transform": Case(
        partial(stream, "three curved surfaces", 1300),
        0.3,
        {"per row": 60, "one row": 800},
        "transform",
        n_train=300,
        unit="us",
    ),
    "online": Case(arriving, 0.3, {"median row": 0.8, "slowest row": 200}, "online", unit="ms"),
    "apply": Case(None, 0.1, {"CSV": 1e6 / 30_000, "Parquet": 1e6 / 60_000}, "apply", unit="us"),
    "Algorithm 2": Case(None, 0.5, {"rbf": 1.2, "poly": 1.2}, "algorithm2", unit="x"),
}

SIDES: dict[str, Case] = {
    f"{name} {100 * share:g} %": Case(table, share)
    for share in data_sets.RATES
    for name, table in data_sets.SETS.items()
}
SURFACES: dict[str, Case] = {
    "10 surfaces 20 %": Case(partial(many_surfaces, 10, 3200), 0.2),
    "50 surfaces 20 %": Case(partial(many_surfaces, 50, 5000), 0.2),
}
GROUPS = {"issue": ISSUE, "side_by_side": SIDES, "surfaces": SURFACES}
CASES = SURFACES | SIDES | ISSUE
