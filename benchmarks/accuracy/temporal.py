"""Rows in order of time: RMSE of standardized features over missing entries.

Motion capture, air quality, chlorine, gas drift and smooth synthetic series, 800 to 1000 rows and
at most 60 features; entries are missing at random or in gaps as long as the paper's, 68 * rate
rows. Methods: curves through each column, a Kalman smoother of each column, soft-impute on lags,
Imputer without the times, and Imputer with them. A smoother alone (`--methods smoother`) needs no
search and takes seconds.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from accuracy import interpolators
from accuracy.real import TABLES
from common import report

from hirank import Imputer
from hirank.datasets import missing_gaps, uniform_missing
from hirank.models.fit_smoother import fit_smoother
from reproduction.readers import load_mocap
from reproduction.readers.files import data_folder

MAX_ROWS, MAX_FEATURES = 1000, 60
CONSTANT = 1e-6
"""Spread of features that contain only rounding errors: see `load_mocap`."""
REAL: dict[str, Callable[[], np.ndarray]] = {
    "mocap 56_06": lambda: load_mocap(data_folder() / "cmu_mocap_56_06.mat").X[1196:2196],
    "mocap 02_01": lambda: load_mocap(data_folder() / "cmu_mocap_02_01.amc").X,
    "air quality": lambda: TABLES["air quality"](),
    "chlorine": lambda: TABLES["chlorine"](),
    "gas drift": lambda: TABLES["gas drift"](),
}
SYNTHETIC = ("sines", "random walk", "integrated walk", "Gaussian process", "noisy levels")
PATTERNS = {
    "random": lambda shape, rate, seed: uniform_missing(shape, rate, random_state=seed),
    "gaps": lambda shape, rate, seed: missing_gaps(
        shape, rate, gaps=max(1, round(shape[0] / 68)), random_state=seed
    ),
}


def synthetic(name: str, seed: int, n: int = 800) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "sines":
        waves = 2 * np.pi * rng.uniform(0.005, 0.05, 4) * np.arange(n)[:, None]
        signals = np.sin(waves + rng.uniform(0, 6, 4)) @ rng.normal(size=(4, 8))
        return signals + 0.01 * rng.normal(size=(n, 8)).cumsum(axis=0)
    if name == "random walk":
        return rng.normal(size=(n, 8)).cumsum(axis=0) @ _mixing(rng, 8)
    if name == "integrated walk":
        return _levels(rng.normal(size=(n, 6)), 0.98).cumsum(axis=0) @ _mixing(rng, 6)
    if name == "noisy levels":
        levels = _levels(rng.normal(size=(n, 6)) @ _mixing(rng, 6), 0.9)
        return levels + 0.3 * rng.normal(size=(n, 6))
    spectrum = np.exp(-0.5 * (60 * np.fft.rfftfreq(n)) ** 2)[:, None]  # very smooth
    paths = np.fft.irfft(np.fft.rfft(rng.normal(size=(n, 4)), axis=0) * spectrum, n, axis=0)
    return paths @ rng.normal(size=(4, 6))


def _mixing(rng: np.random.Generator, m: int) -> np.ndarray:
    return np.eye(m) + 0.5 * rng.normal(size=(m, m))


def _levels(X: np.ndarray, a: float) -> np.ndarray:
    for before, row in itertools.pairwise(X):
        row += a * before
    return X


def load(name: str, seed: int) -> np.ndarray:
    """Return the standardized features of a table that vary."""
    table = REAL[name]()[:MAX_ROWS] if name in REAL else synthetic(name, seed)
    table = table[:, table.std(axis=0) > CONSTANT * np.maximum(1, np.abs(table).max(axis=0))]
    if table.shape[1] > MAX_FEATURES:
        table = table[:, np.linspace(0, table.shape[1] - 1, MAX_FEATURES).astype(int)]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def smoother(X: np.ndarray, seed: int) -> np.ndarray:
    """Impute with the walk alone, as where too few entries are held out."""
    observed = ~np.isnan(X)
    fill, nothing = np.full(X.shape, np.nan), np.zeros(X.shape, bool)
    X = np.where(observed, X, 0)
    fitted = fit_smoother(X, observed, nothing, None, fill, np.random.default_rng(seed))
    return fitted.combine(X, observed)


def methods(seed: int, max_time: float | None) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    curves = ("lines", "pchip", "akima", "splines", "kalman", "soft_impute_on_lags")
    return {
        **{name: getattr(interpolators, name) for name in curves},
        "smoother": lambda X: smoother(X, seed),
        "Imputer": Imputer(random_state=seed, max_time=max_time).fit_transform,
        "with time": Imputer(time=True, random_state=seed, max_time=max_time).fit_transform,
    }


def rows(options: argparse.Namespace) -> Iterator[dict]:
    cells = itertools.product(options.tables, options.patterns, options.rates, options.seeds)
    for name, pattern, rate, seed in cells:
        truth = load(name, seed)
        observed = PATTERNS[pattern](truth.shape, rate, seed)
        incomplete = np.where(observed, truth, np.nan)
        row: dict = {"table": name, "pattern": pattern, "missing": rate, "seed": seed}
        for method, impute in methods(seed, options.max_time).items():
            if method not in options.methods:
                continue
            began = time.process_time()
            error = (impute(incomplete) - truth)[~observed]
            row |= {
                method: float(np.sqrt(np.mean(error**2))),
                f"{method} s": time.process_time() - began,
            }
        yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    names = list(methods(0, None))
    parser.add_argument("--tables", nargs="+", default=[*REAL, *SYNTHETIC])
    parser.add_argument("--patterns", nargs="+", choices=list(PATTERNS), default=list(PATTERNS))
    parser.add_argument("--rates", nargs="+", type=float, default=[0.3, 0.5, 0.7])
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--max-time", type=float, default=12, help="seconds for each search")
    known, rest = parser.parse_known_args()
    report(rows(known), rest)
