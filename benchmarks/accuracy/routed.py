"""Routed dictionaries on many curved surfaces: `Imputer` with and without the family.

Surfaces have 3 latent variables, degree 3 and 20 columns, of which a fifth is missing. Errors are
of standardized features, at the missing entries of the table and of 2000 fresh rows. "seconds" are
of CPU, for the fit. --surfaces and --rows select the table, --seed the first seed.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import MAX_TIME, QUICK, report

from hirank import Imputer
from hirank.datasets import polynomial_manifolds, uniform_missing
from hirank.models.em import EMConfig
from hirank.selection import search
from hirank.selection.config import SearchConfig
from hirank.selection.routed import Routed

FRESH = 200 if QUICK else 2000
CONFIG = SearchConfig(mixture=EMConfig(max_components=64))


def make_table(n_surfaces: int, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a standardized table with fresh rows at its end, and what is observed of it."""
    each = -(-(n_rows + FRESH) // n_surfaces)
    X = polynomial_manifolds(each, 20, manifolds=n_surfaces, shuffle=True, random_state=seed)
    X = X[: n_rows + FRESH]
    return (X - X.mean(axis=0)) / X.std(axis=0), uniform_missing(
        X.shape, 0.2, random_state=seed + 1000
    )


def errors(filled: np.ndarray, X: np.ndarray, observed: np.ndarray) -> tuple[float, float]:
    """Return the root mean square and the median absolute error of missing entries."""
    error = (filled - X)[~observed]
    return float(np.sqrt(np.mean(error**2))), float(np.median(np.abs(error)))


def rows(n_surfaces: int, n_rows: int, seeds: range, methods: list[str]) -> Iterator[dict]:
    without = tuple(one for one in search.CANDIDATES if not isinstance(one, Routed))
    for seed in seeds:
        X, observed = make_table(n_surfaces, n_rows, seed)
        incomplete = np.where(observed, X, np.nan)
        table, fresh = slice(0, n_rows), slice(n_rows, None)
        for method in methods:
            candidates = without if method == "without" else search.CANDIDATES
            settings = {**search.search.__kwdefaults__, "candidates": candidates}
            model = Imputer(max_time=MAX_TIME, random_state=0)
            with (
                mock.patch.object(search.search, "__kwdefaults__", settings),
                mock.patch.object(Imputer, "_config", CONFIG),
            ):
                began = time.process_time()
                filled = model.fit_transform(incomplete[table])
                seconds = time.process_time() - began
            rmse, median = errors(filled, X[table], observed[table])
            fresh_rmse, fresh_median = errors(
                model.transform(incomplete[fresh]), X[fresh], observed[fresh]
            )
            results = model.search_results_
            routed = results["family"] == Routed.family
            yield {
                "method": method,
                "seed": seed,
                "RMSE": rmse,
                "median": median,
                "fresh": fresh_rmse,
                "fresh med": fresh_median,
                "seconds": seconds,
                "of routed": float(results["seconds"][routed].sum()),
                "weight": float(results["weight"][routed].sum()),
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--surfaces", type=int, default=3 if QUICK else 10)
    parser.add_argument("--rows", type=int, default=600 if QUICK else 3200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1 if QUICK else 5)
    parser.add_argument("--methods", nargs="+", default=["with", "without"])
    options, rest = parser.parse_known_args()
    seeds = range(options.seed, options.seed + options.seeds)
    report(rows(options.surfaces, options.rows, seeds, options.methods), rest)
