"""Hopkins155: clustering error of SSC after each completion, 0 to 70 % missing, as in the paper.

Entries go missing uniformly. Twelve numbers a point are few: at 70 % one point in seventy would
lose all of them and could not be assigned to a cluster, so every point keeps at least one.
"best" is the lowest error over ALPHAS, selected with the truth as the paper does; "default" is the
error with the default alpha. A method is a line in METHODS: a name and a function that gives an
estimator with fit_transform.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report

from hirank import KFMC, Imputer
from hirank.baselines import (
    DLSR,
    GROUSE,
    LRF,
    NLMC,
    NNM,
    SFMC,
    VMC,
    GroupSparse,
    OnlineLRF,
    SoftImpute,
)
from hirank.cluster import SSC
from hirank.datasets import uniform_missing
from hirank.metrics import clustering_error, missing_relative_error
from reproduction.readers import load_hopkins

SEQUENCES = ("1R2RC", "1R2TCR")
ALPHAS = (20.0, 100.0, 800.0)
"""For the best result. The paper takes three values as well, of a parameter it does not define."""


METHODS: dict[str, Callable[[int], Any]] = {
    "mean": lambda seed: SimpleImputer(),
    "Imputer": lambda seed: Imputer(random_state=seed),
    "KFMC": lambda seed: KFMC(random_state=seed),
    "KFMC poly": lambda seed: KFMC(kernel="poly", random_state=seed),
    "VMC": lambda seed: VMC(random_state=seed),
    "NLMC": lambda seed: NLMC(random_state=seed),
    "LRF": lambda seed: LRF(random_state=seed),
    "NNM": lambda seed: NNM(),
    "SoftImpute": lambda seed: SoftImpute(random_state=seed),
    "SFMC": lambda seed: SFMC(random_state=seed),
    "GroupSparse": lambda seed: GroupSparse(random_state=seed),
    "DLSR": lambda seed: DLSR(random_state=seed),
    "OnlineLRF": lambda seed: OnlineLRF(random_state=seed),
    "GROUSE": lambda seed: GROUSE(random_state=seed),
}


def errors(X: np.ndarray, labels: np.ndarray, seed: int) -> dict[float, float]:
    """Clustering error for each alpha."""
    k = len(np.unique(labels))
    return {
        alpha: clustering_error(labels, SSC(k, alpha=alpha, random_state=seed).fit_predict(X))
        for alpha in ALPHAS
    }


def complete_rows(names: list[str], frames: list[int]) -> Iterator[dict]:
    """Nothing missing."""
    for name in names:
        for count in frames:
            X, labels = load_hopkins(name, frames=count)
            began = time.perf_counter()
            found = errors(X, labels, 0)
            yield {
                "data": f"{name}, {count} frames",
                "method": "complete",
                "missing": 0.0,
                "best": min(found.values()),
                "default": found[800.0],
                "recovery": 0.0,
                "seconds": 0.0,
                "SSC s": (time.perf_counter() - began) / len(ALPHAS),
            }


def trial(name: str, method: str, missing: float, seed: int) -> tuple[float, ...]:
    X, labels = load_hopkins(name)
    observed = uniform_missing(X.shape, missing, keep_one=True, random_state=seed)
    began = time.perf_counter()
    filled = METHODS[method](seed).fit_transform(np.where(observed, X, np.nan))
    completed = time.perf_counter()
    found = errors(filled, labels, seed)
    return (
        min(found.values()),
        found[800.0],
        missing_relative_error(filled, X, observed),
        completed - began,
        (time.perf_counter() - completed) / len(ALPHAS),
    )


def rows(names: list[str], methods: list[str], missing: list[float], trials: int) -> Iterator[dict]:
    yield from complete_rows(names, [6])
    columns = ("best", "default", "recovery", "seconds", "SSC s")
    for name in names:
        for method in methods:
            for rate in missing:
                found = [trial(name, method, rate, seed) for seed in range(trials)]
                medians = np.median(found, axis=0).tolist()
                yield {
                    "data": f"{name}, 6 frames",
                    "method": method,
                    "missing": rate,
                    **dict(zip(columns, medians, strict=True)),
                }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", nargs="+", default=list(SEQUENCES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    rates = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    parser.add_argument("--missing", nargs="+", type=float, default=rates)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--frames", nargs="+", type=int, help="only complete data, these frames")
    known, rest = parser.parse_known_args()
    if known.frames:
        report(complete_rows(known.sequences, known.frames), rest)
    else:
        report(rows(known.sequences, known.methods, known.missing, known.trials), rest)
