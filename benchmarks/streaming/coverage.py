"""Intervals on arrival: coverage over any 1000 rows, and widths.

Coverage of 90 % intervals is pooled over the missing entries of features that vary; windows of 1000
rows begin at row 200, 250, 300, ... Widths are in standard deviations, beside those of intervals of
one width for all entries that would cover 90 % of them (with the truth).

    python benchmarks/streaming/coverage.py --streams walk "air quality" --patterns "gaps 50 %"
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from ordered import PATTERNS
from streams import changing, real

from hirank import OnlineImputer

FIRST, WINDOW = 200, 1000


def walk(n: int) -> np.ndarray:
    """Three random walks seen through eight features, four times as wild in the second half."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(n, 3))
    steps[n // 2 :] *= 4
    return np.cumsum(steps, axis=0) @ rng.normal(size=(3, 8))


def swapped(n: int) -> np.ndarray:
    """Motion capture whose features change places in the middle."""
    X = real("mocap")[:n].copy()
    X[n // 2 :] = X[n // 2 :, ::-1]
    return X


def shuffled(n: int) -> np.ndarray:
    X = real("air quality")
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


STREAMS = {
    "walk": walk,
    "mocap, swapped": swapped,
    "abrupt change": lambda n: changing((n // 2, n // 2), 0)[:n],
    "air quality": lambda n: real("air quality")[:n],
    "air quality, shuffled": shuffled,
    "chlorine": lambda n: real("chlorine")[:n],
    "gas drift": lambda n: real("gas drift")[:n],
}


def measure(name: str, pattern: str, n: int, coverage: float, order: str | None) -> tuple[str, ...]:
    """Return a line of the table."""
    truth = STREAMS[name](n)
    observed = PATTERNS[pattern](truth.shape, 0)
    began = time.process_time()
    filled, lower, upper = OnlineImputer(random_state=0, time=order).partial_fit_interval(
        np.where(observed, truth, np.nan), coverage
    )
    seconds = time.process_time() - began
    spread = truth.std(axis=0)
    varying = spread > 1e-9 * np.abs(truth).max(axis=0)
    missing, unit = ~observed & varying, np.where(varying, spread, 1)
    inside = (lower <= truth) & (truth <= upper)
    starts = range(FIRST, max(len(truth) - WINDOW, FIRST) + 1, 50)
    shares = [inside[i : i + WINDOW][missing[i : i + WINDOW]].mean() for i in starts]
    errors = (np.abs(filled - truth) / unit)[FIRST:][missing[FIRST:]]
    width = np.nanmean(((upper - lower) / unit)[FIRST:][missing[FIRST:]])
    constant = 2 * np.quantile(errors, coverage)
    each = 1000 * seconds / len(truth)
    numbers = (min(shares), max(shares), width, constant)
    return (name, pattern, *(f"{number:.3f}" for number in numbers), f"{each:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS))
    parser.add_argument("--patterns", nargs="+", default=["random 30 %", "gaps 50 %"])
    parser.add_argument("--rows", type=int, default=2200)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--unordered", action="store_true", help="time=None")
    args = parser.parse_args()
    print("| stream | missing | lowest | highest | width | one width | ms a row |")
    for name in args.streams:
        for pattern in args.patterns:
            order = None if args.unordered else "auto"
            line = measure(name, pattern, args.rows, args.coverage, order)
            print("| " + " | ".join(line) + " |", flush=True)
