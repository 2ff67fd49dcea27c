"""Rows in order of time: CMU motion capture 56_06, 3392 x 56, both patterns of the paper.

RMSE of standardized features over missing entries: linear interpolation in time, Imputer
without the times, and Imputer with them. A fit takes minutes.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report

from hirank import Imputer
from hirank.datasets import missing_gaps, uniform_missing
from hirank.models.gaps import interpolate
from reproduction.readers import load_mocap
from reproduction.readers.files import data_folder

DATA = data_folder()
PATTERNS = {"random": uniform_missing, "gaps": missing_gaps}
CONSTANT = 1e-6
"""Spread of the clavicles, which contain only rounding errors: see `load_mocap`."""


def mocap() -> np.ndarray:
    """Standardized features that vary."""
    table = load_mocap(DATA / "cmu_mocap_56_06.mat").X
    table = table[:, table.std(axis=0) > CONSTANT]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def rows(
    patterns: list[str], rates: list[float], every: int, seed: int, max_time: float | None
) -> Iterator[dict]:
    truth = mocap()[::every]
    for pattern, rate in itertools.product(patterns, rates):
        observed = PATTERNS[pattern](truth.shape, rate, random_state=seed)
        incomplete = np.where(observed, truth, np.nan)
        methods = {
            "linear": lambda X=incomplete, o=observed: interpolate(X, o),
            "Imputer": Imputer(random_state=seed, max_time=max_time).fit_transform,
            "with time": Imputer(time=True, random_state=seed, max_time=max_time).fit_transform,
        }
        row: dict = {"pattern": pattern, "missing": rate}
        for name, method in methods.items():
            began = time.perf_counter()
            error = (method(incomplete) - truth)[~observed]
            row |= {
                name: float(np.sqrt(np.mean(error**2))),
                f"{name} s": time.perf_counter() - began,
            }
        yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patterns", nargs="+", choices=list(PATTERNS), default=list(PATTERNS))
    parser.add_argument("--rates", nargs="+", type=float, default=[0.3, 0.5, 0.7])
    parser.add_argument("--every", type=int, default=1, help="keep one frame in so many: quicker")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-time", type=float, help="seconds for each search; none by default")
    known, rest = parser.parse_known_args()
    report(rows(known.patterns, known.rates, known.every, known.seed, known.max_time), rest)
