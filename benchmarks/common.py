"""What the benchmarks share: timing, tables of results, the paper's synthetic cases.

With --quick, tables are small and there is one seed: it shows that a program runs, nothing else.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hirank.datasets import polynomial_manifolds, uniform_missing

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `reproduction`

QUICK = "--quick" in sys.argv
MAX_TIME = 1.0 if QUICK else None  # seconds of each search
EACH = 12 if QUICK else 100
CASES: dict[str, dict[str, int]] = {
    "one curved surface": {"n_samples": 4 * EACH if QUICK else EACH, "manifolds": 1, "degree": 3},
    "three curved surfaces": {"n_samples": EACH, "manifolds": 3, "degree": 3},
    "ten linear subspaces": {"n_samples": EACH, "manifolds": 10, "degree": 1},
}


def seeds(count: int) -> range:
    """Return the seeds 0, 1, ..., of which --quick takes the first."""
    return range(1 if QUICK else count)


def synthetic(case: str, missing: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one of the paper's tables and what is observed of it."""
    truth = polynomial_manifolds(**CASES[case], random_state=seed)
    observed = uniform_missing(truth.shape, missing, random_state=seed + 1000)
    return truth, observed


def stream(case: str, n: int, seed: int) -> np.ndarray:
    """Return n samples of a case in mixed order."""
    shape = CASES[case]
    each = -(-n // shape["manifolds"])
    return polynomial_manifolds(**{**shape, "n_samples": each}, shuffle=True, random_state=seed)[:n]


def best_time(work: Callable[[], Any], repeats: int = 20) -> float:
    """Return the shortest of several runs, in seconds."""
    best = np.inf
    for _ in range(2 if QUICK else repeats):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return float(best)


def report(rows: Iterable[dict[str, Any]], argv: list[str] | None = None) -> None:
    """Print rows as they come, and write them to --csv FILE."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--quick", action="store_true", help="small tables, one seed")
    path = parser.parse_args(argv).csv
    kept = list(_printed(rows))
    if path and kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(kept[0]))
            writer.writeheader()
            writer.writerows(kept)


def _printed(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    header: list[str] = []
    for row in rows:
        if not header:
            header = list(row)
            print("  ".join(f"{name:>{_width(name)}s}" for name in header))
        print("  ".join(f"{_text(row[name]):>{_width(name)}s}" for name in header))
        sys.stdout.flush()
        yield row


def _width(name: str) -> int:
    return max(len(name), 22 if name in ("case", "data", "method") else 9)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
