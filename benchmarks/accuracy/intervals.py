"""Intervals: coverage and width at missing entries, against intervals of constant width.

Entries go missing uniformly. Widths are in standard deviations of features. "constant" is the
coverage of the interval of constant width that is calibrated on the same held-out entries; "width",
"per feature" and "score" compare mean widths and interval scores (Winkler's: width plus 2 / (1 - c)
times the distance to a truth outside) with a constant width, and one for each feature, at equal
coverage: all are stretched to cover c of the missing entries exactly. "worst" is the lowest
coverage over fifths of the entries, from short intervals to long ones, and "worst constant" the
one of the constant width.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, MAX_TIME, QUICK, report, synthetic
from real import TABLES

from hirank import Imputer
from hirank.datasets import uniform_missing
from reproduction.readers import load_hopkins

SMALL: dict[str, Callable[[], np.ndarray]] = {
    **TABLES,
    "white wine": lambda: TABLES["white wine"]()[::4],
    "mocap": lambda: TABLES["mocap"]()[::4],
    "digits": lambda: _varying(datasets.load_digits().data[:400]),
    "iris": lambda: datasets.load_iris().data,
    "wine": lambda: datasets.load_wine().data,
    "breast cancer": lambda: datasets.load_breast_cancer().data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "1R2RC": lambda: load_hopkins("1R2RC").X,
    "1R2TCR": lambda: load_hopkins("1R2TCR").X,
}


def model(X: np.ndarray, observed: np.ndarray, seed: int):
    """Return imputed values, half-widths by coverage, and absolute errors at held-out entries."""
    incomplete = np.where(observed, X, np.nan)
    fitted = Imputer(max_time=MAX_TIME, random_state=seed).fit(incomplete)
    imputed = fitted.transform(incomplete)

    def half_width(coverage: float) -> np.ndarray:
        lower, upper = fitted.interval(incomplete, coverage)
        return (upper - lower)[~observed] / 2

    held_out = fitted.held_out_
    return imputed, half_width, np.abs(held_out["imputed"] - held_out["truth"])


def rows(tables: list[str], seeds: int, coverage: float) -> Iterator[dict]:
    for name in tables:
        for missing in (0.2, 0.5):
            for seed in range(seeds):
                truth, observed = table(name, missing, seed)
                began = time.perf_counter()
                X = np.where(observed, truth, 0)
                imputed, half_width, errors = model(X, observed, seed)
                seconds = time.perf_counter() - began
                error, features = np.abs(imputed - truth)[~observed], np.nonzero(~observed)[1]
                line = {"data": name, "missing": missing, "seed": seed, "held out": len(errors)}
                line |= scores(error, features, half_width(coverage), errors, coverage)
                yield line | {"seconds": seconds}


def scores(error, features, width, errors, c) -> dict[str, float]:
    rank = min(int(np.ceil(c * (len(errors) + 1))), len(errors))
    constant = np.sort(errors)[rank - 1]
    stretched = width * np.quantile(error / width, c)
    level = np.full(len(error), np.quantile(error, c))
    per_feature = np.empty(len(error))
    for j in np.unique(features):
        per_feature[features == j] = np.quantile(error[features == j], c)
    fifth = np.digitize(width, np.quantile(width, [0.2, 0.4, 0.6, 0.8]))

    def score(half):
        return np.mean(half + np.maximum(error - half, 0) / (1 - c))

    def worst(half):
        return min(np.mean((error <= half)[fifth == k]) for k in np.unique(fifth))

    return {
        "coverage": float(np.mean(error <= width)),
        "constant": float(np.mean(error <= constant)),
        "width": float(stretched.mean() / level.mean()),
        "per feature": float(stretched.mean() / per_feature.mean()),
        "score": float(score(stretched) / score(level)),
        "worst": float(worst(stretched)),
        "worst constant": float(worst(level)),
    }


def table(name: str, missing: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if name in CASES:
        truth, observed = synthetic(name, missing, seed)
    else:
        truth = _varying(SMALL[name]()[:80]) if QUICK else SMALL[name]()
        observed = uniform_missing(truth.shape, missing, random_state=seed)
    observed[~observed.any(axis=1), 0] = True
    return (truth - truth.mean(axis=0)) / truth.std(axis=0), observed


def _varying(X: np.ndarray) -> np.ndarray:
    return X[:, X.std(axis=0) > 0]


if __name__ == "__main__":
    names = [*SMALL, *CASES]
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--coverage", type=float, default=0.9)
    known, rest = parser.parse_known_args()
    warnings.simplefilter("ignore")
    report(rows(known.tables, known.seeds, known.coverage), rest)
