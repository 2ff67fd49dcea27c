"""Rows in order of time: error on arrival of OnlineImputer with filters and without.

Errors are root mean squares over missing entries from row 200 on, in standard deviations of their
features; features that are constant from there are left out. `rows` is cut from the beginning of
each stream. Entries are missing at random or in sequences that follow each other (`missing_gaps`).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from arrivals import FIRST
from peers import LastValue, RunningMean
from streams import real

from hirank import OnlineImputer
from hirank.datasets import missing_gaps, uniform_missing

STREAMS = ("mocap", "air quality", "chlorine", "gas drift")
PATTERNS = {
    "random 30 %": lambda shape, seed: uniform_missing(shape, 0.3, random_state=seed),
    "random 50 %": lambda shape, seed: uniform_missing(shape, 0.5, random_state=seed),
    "gaps 30 %": lambda shape, seed: gaps(shape, 0.3, seed),
    "gaps 50 %": lambda shape, seed: gaps(shape, 0.5, seed),
}
METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    'time="auto"': lambda X, seed: by_hirank(X, seed, "auto"),
    "time=None": lambda X, seed: by_hirank(X, seed, None),
    "last value": lambda X, seed: one_by_one(LastValue(), X),
    "running mean": lambda X, seed: one_by_one(RunningMean(), X),
}


def gaps(shape: tuple[int, int], rate: float, seed: int) -> np.ndarray:
    """Return gaps as long as those of the paper's motion capture stream, 68 * rate rows."""
    return missing_gaps(shape, rate, gaps=max(1, round(shape[0] / 68)), random_state=seed)


def by_hirank(X: np.ndarray, seed: int, order: str | None) -> np.ndarray:
    return OnlineImputer(time=order, random_state=seed).partial_fit_transform(X)


def one_by_one(method: LastValue | RunningMean, X: np.ndarray) -> np.ndarray:
    method.start(X[:FIRST])
    return np.concatenate([X[:FIRST], *(method.arrive(row[None]) for row in X[FIRST:])])


def error(filled: np.ndarray, truth: np.ndarray, observed: np.ndarray) -> float:
    filled, truth, missing = filled[FIRST:], truth[FIRST:], ~observed[FIRST:]
    spread = truth.std(axis=0)
    varying = spread > 1e-9 * np.abs(truth).max(axis=0)
    scaled = (filled - truth)[:, varying] / spread[varying]
    return float(np.sqrt(np.mean(scaled[missing[:, varying]] ** 2)))


def measure(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """Yield the lines of a table of medians over seeds, and milliseconds per row."""
    yield ("stream", "missing", *METHODS, "ms a row")
    for name in options.streams:
        truth = real(name)[: options.rows]
        for pattern in options.patterns:
            errors: dict[str, list[float]] = {method: [] for method in METHODS}
            seconds = 0.0
            for seed in range(options.seeds):
                observed = PATTERNS[pattern](truth.shape, seed)
                for method, impute in METHODS.items():
                    began = time.process_time()
                    filled = impute(np.where(observed, truth, np.nan), seed)
                    seconds += (time.process_time() - began) * (method == 'time="auto"')
                    errors[method].append(error(filled, truth, observed))
            medians = (f"{np.median(found):.3f}" for found in errors.values())
            each = 1000 * seconds / (options.seeds * len(truth))
            yield (name, pattern, *medians, f"{each:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--streams", type=lambda text: text.split(","), default=STREAMS)
    parser.add_argument("--patterns", type=lambda text: text.split(","), default=PATTERNS)
    for line in measure(parser.parse_args()):
        print("| " + " | ".join(line) + " |", flush=True)
