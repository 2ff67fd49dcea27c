"""Intervals: coverage and width at missing entries, against intervals of constant width.

Entries go missing uniformly. Widths are in standard deviations of features. "constant" is the
coverage of the interval of constant width that is calibrated on the same hidden entries; "width",
"per feature" and "score" compare mean widths and interval scores (Winkler's: width plus 2 / (1 - c)
times the distance to a truth outside) with a constant width, and one for each feature, at equal
coverage: all are stretched to cover c of the missing entries exactly. "worst" is the lowest
coverage over fifths of the entries, from short intervals to long ones, and "worst constant" the
one of the constant width.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, report, synthetic
from real import DATA, TABLES

from hirank import KFMC
from hirank.baselines import LRF
from hirank.datasets import load_hopkins, uniform_missing
from hirank.model.workers import Workers
from hirank.solvers.intervals import Calibration, Covariates
from hirank.solvers.mixture import Mixture
from hirank.solvers.mixture_fit import Learner
from hirank.solvers.record import Recorder

os.environ.setdefault("HIRANK_DATA", str(DATA))
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
ENOUGH, MOST_FOLDS = 400, 10
"""Hidden entries after which no further fold is hidden, and folds at most."""
DICTIONARY = 20_000
"""Entries of a table up to which a KFMC dictionary is among the candidates: it takes a while."""


class Fitted(NamedTuple):
    """The tables that the candidates give, and the mixture that tells deviations."""

    fills: np.ndarray  # K x n x v
    mixture: Mixture


def grown(X: np.ndarray, observed: np.ndarray, hidden: np.ndarray) -> dict[tuple, tuple]:
    """Mixtures that do not know the hidden entries, by size and noise, with sums of errors."""
    with Workers() as workers:

        def error(fill):
            return float(np.abs(fill - X)[hidden].sum())

        levels = Learner(X, observed & ~hidden, workers, Recorder()).grow(error)
        return {(len(x.mixture.weights), x.noise): (error(x.X), x) for x in levels}


def fitted(X: np.ndarray, observed: np.ndarray, levels: list) -> Fitted:
    """Two mixtures, given; a low-rank factorization; a small KFMC dictionary for small tables."""
    holes = np.where(observed, X, np.nan)
    fills = [*(level.X for level in levels), LRF(random_state=0).fit_transform(holes)]
    if X.size <= DICTIONARY:
        fills.append(KFMC(40, max_iter=100, random_state=0).fit_transform(holes))
    return Fitted(np.array(fills), levels[0].mixture)


def model(X: np.ndarray, observed: np.ndarray, part: float, seed: int):
    """Fill and half-widths (a function of coverage) of missing entries; errors at hidden ones."""
    folds = list(hide(observed, part, np.random.default_rng(seed)))
    mixtures = [grown(X, observed, hidden) for hidden in folds]
    # One choice for all folds: the best of each on its own hidden entries would look too good.
    sums = {
        key: sum(each[key][0] for each in mixtures)
        for key in mixtures[0]
        if all(key in each for each in mixtures)
    }
    best, single = min(sums, key=sums.get), min((k for k in sums if k[0] == 1), key=sums.get)
    fits = [
        fitted(X, observed & ~hidden, [each[best][1], each[single][1]])
        for hidden, each in zip(folds, mixtures, strict=True)
    ]
    pairs = list(zip(fits, folds, strict=True))
    fills = np.concatenate([fit.fills[:, hidden] for fit, hidden in pairs], axis=1)
    truth = np.concatenate([X[hidden] for hidden in folds])
    weights = nnls(fills.T, truth)[0]
    weights /= weights.sum()

    def covariates(which, seen, fit):
        fill = np.tensordot(weights, fit.fills, 1)
        return Covariates.of(which, fill, seen, fit.fills, fit.mixture)

    residuals = weights @ fills - truth
    known = Covariates.join([covariates(hidden, observed & ~hidden, fit) for fit, hidden in pairs])
    calibration = Calibration.learn(residuals, known, X.shape[1])
    with Workers() as workers:
        learner = Learner(X, observed, workers, Recorder())
        refit = [learner.settle(mixtures[0][k][1].mixture, k[1]) for k in (best, single)]
    final = fitted(X, observed, refit)
    at = covariates(~observed, observed, final)
    fill = np.tensordot(weights, final.fills, 1)
    return fill, lambda coverage: calibration.half_width(at, coverage), np.abs(residuals)


def hide(observed: np.ndarray, part: float, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Disjoint folds, each a part of the observed entries of every feature."""
    every = round(1 / part)
    number = np.full(observed.shape, -1)
    for j in range(observed.shape[1]):
        rows = rng.permutation(np.flatnonzero(observed[:, j]))
        number[rows, j] = (np.arange(len(rows)) + rng.integers(every)) % every
    count = 0
    for fold in range(min(MOST_FOLDS, every)):
        hidden = number == fold
        hidden[(observed & ~hidden).sum(axis=1) < 1] = False
        hidden[:, (observed & ~hidden).sum(axis=0) < 2] = False
        count += int(hidden.sum())
        yield hidden
        if count >= ENOUGH:
            return


def rows(tables: list[str], seeds: int, part: float, coverage: float) -> Iterator[dict]:
    for name in tables:
        for missing in (0.2, 0.5):
            for seed in range(seeds):
                truth, observed = table(name, missing, seed)
                began = time.perf_counter()
                X = np.where(observed, truth, 0)
                fill, half_width, errors = model(X, observed, part, seed)
                seconds = time.perf_counter() - began
                error, features = np.abs(fill - truth)[~observed], np.nonzero(~observed)[1]
                line = {"data": name, "missing": missing, "seed": seed, "hidden": len(errors)}
                line |= judged(error, features, half_width(coverage), errors, coverage)
                yield line | {"seconds": seconds}


def judged(error, features, width, errors, c) -> dict[str, float]:
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
        truth = SMALL[name]()
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
    parser.add_argument("--part", type=float, default=0.05, help="hidden in each fold")
    parser.add_argument("--coverage", type=float, default=0.9)
    known, rest = parser.parse_known_args()
    warnings.simplefilter("ignore")
    report(rows(known.tables, known.seeds, known.part, known.coverage), rest)
