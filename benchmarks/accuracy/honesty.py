"""Reported errors and intervals where values are missing in blocks, beside the true errors."""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).parents[1]))
from accuracy.real import DATA, TABLES
from common import MAX_TIME, QUICK, report, seeds

from hirank import Imputer
from hirank.datasets import missing_gaps, uniform_missing

Pattern = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def own(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Patterns of the incomplete rows of air quality."""
    table = np.genfromtxt(DATA / "air_quality.csv", delimiter=",", skip_header=1)
    table = table[:, np.isfinite(table).any(axis=0)]
    observed = np.isfinite(table) & (table != -200)
    observed = observed[~observed.all(axis=1) & observed.any(axis=1)]
    chosen = observed[rng.integers(len(observed), size=len(truth))]
    chosen[rng.random(len(truth)) < 0.5] = True  # half of the rows are complete
    return chosen


def blocks(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each of four groups of columns fails in a fifth of the rows."""
    n, m = truth.shape
    fails = rng.random((n, 4)) < 0.2
    fails[fails.all(axis=1), 0] = False
    return ~fails[:, np.arange(m) * 4 // m]


def monotone(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half of the rows end at a random column."""
    n, m = truth.shape
    last = np.where(rng.random(n) < 0.5, rng.integers(1, m, size=n), m)
    return np.arange(m) < last[:, None]


def stretches(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Groups of columns fail together for 5 to 40 rows."""
    n, m = truth.shape
    fails = np.zeros((n, 4), bool)
    for group in range(4):
        while fails[:, group].mean() < 0.2:
            first = rng.integers(n)
            fails[first : first + rng.integers(5, 41), group] = True
    fails[fails.all(axis=1), 0] = False
    return ~fails[:, np.arange(m) * 4 // m]


def gaps(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each column has gaps of its own."""
    return missing_gaps(truth.shape, 0.2, gaps=max(len(truth) // 60, 2), random_state=rng)


def uniform(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Single entries at random."""
    return uniform_missing(truth.shape, 0.2, keep_one=True, random_state=rng)


def heavy(seed: int) -> np.ndarray:
    """A curved surface with heavy tails."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_t(3, size=(400, 3))
    X = np.tanh(Z @ rng.normal(size=(3, 10))) + Z @ rng.normal(size=(3, 10))
    return np.exp(X / 2 + 0.1 * rng.standard_t(3, size=X.shape))


def rows_of(name: str, n: int) -> Callable[[int], np.ndarray]:
    def draw(seed: int) -> np.ndarray:
        table = TABLES[name]()
        return table[np.random.default_rng(seed).choice(len(table), min(n, len(table)), False)]

    return draw


CASES: dict[str, tuple[Callable[[int], np.ndarray], Pattern, bool]] = {
    "air quality, own patterns": (rows_of("air quality", 800), own, False),
    "breast cancer, blocks": (lambda _: datasets.load_breast_cancer().data, blocks, False),
    "oil flow, blocks": (rows_of("oil flow", 600), blocks, False),
    "white wine, monotone": (rows_of("white wine", 800), monotone, False),
    "oil flow, monotone": (rows_of("oil flow", 600), monotone, False),
    "air quality in time, stretches": (lambda _: TABLES["air quality"]()[:800], stretches, True),
    "air quality in time, gaps": (lambda _: TABLES["air quality"]()[:800], gaps, True),
    "wine, uniform": (lambda _: datasets.load_wine().data, uniform, False),
    "breast cancer, uniform": (lambda _: datasets.load_breast_cancer().data, uniform, False),
    "air quality, uniform": (rows_of("air quality", 600), uniform, False),
    "heavy tails, uniform": (heavy, uniform, False),
}


def measure(case: str, seed: int) -> dict:
    table, pattern, in_time = CASES[case]
    truth = table(seed)[: 120 if QUICK else None]
    observed = pattern(truth, np.random.default_rng(seed))
    model = Imputer(time=in_time or None, max_time=MAX_TIME, random_state=seed)
    X = np.where(observed, truth, np.nan)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled = model.fit_transform(X)
        seconds = time.process_time() - began
        lower, upper = model.interval(X, 0.9)
    missing, spread = ~observed, truth.std(axis=0)
    means = np.broadcast_to(np.nanmean(X, axis=0), X.shape)

    def rms(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean(((values - truth) / spread)[missing] ** 2)))

    error = rms(filled) / rms(means)
    return {
        "case": case,
        "seed": seed,
        "reported": model.summary().get("error", np.nan),
        "true": error,
        "reported/true": model.summary().get("error", np.nan) / error,
        "coverage": float(((lower <= truth) & (truth <= upper))[missing].mean()),
        "standardized": rms(filled),
        "CPU s": seconds,
    }


def rows(cases: list[str], n_seeds: int) -> Iterator[dict]:
    for case in cases:
        results = []
        for seed in seeds(n_seeds):
            results.append(measure(case, seed))
            yield results[-1]
        yield {
            key: f"{case}: median" if key == "case" else float(np.median([r[key] for r in results]))
            for key in results[0]
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    known, rest = parser.parse_known_args()
    report(rows(known.cases, known.seeds), rest)
