"""Nothing non-finite and nothing worse than the column mean, whatever the setting.

3 cases x 10/30/50/70 % missing x 10 seeds x both kernels x n_components 15, 60, 0.9 n. Takes about
three hours on two cores, most of them for the dictionaries of 900 points; see --seeds, --sizes.
"""

import argparse
import os
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, report, synthetic

from hirank import KFMC
from hirank.exceptions import EmptyRowsWarning
from hirank.metrics import missing_relative_error

SIZES = ("15", "60", "0.9 n")


def measure(case: str, missing: float, kernel: str, size: str, seeds: int) -> dict:
    ratios, finite = [], True
    for seed in range(seeds):
        truth, observed = synthetic(case, missing, seed)
        incomplete = np.where(observed, truth, np.nan)
        r = int(0.9 * len(truth)) if size == "0.9 n" else int(size)
        with warnings.catch_warnings():
            # At 70 % missing a row may have no observed entry left.
            warnings.simplefilter("ignore", EmptyRowsWarning)
            model = KFMC(r, kernel=kernel, random_state=seed)
            filled = model.fit_transform(incomplete)
        finite &= bool(np.isfinite(filled).all())
        mean = np.where(observed, truth, np.nanmean(incomplete, axis=0))
        ratios.append(
            missing_relative_error(filled, truth, observed)
            / missing_relative_error(mean, truth, observed)
        )
    return {
        "case": case,
        "missing": missing,
        "kernel": kernel,
        "r": size,
        "finite": finite,
        "median / mean": float(np.median(ratios)),
        "worst / mean": max(ratios),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--missing", nargs="+", type=float, default=[0.1, 0.3, 0.5, 0.7])
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    known, rest = parser.parse_known_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    grid = product(known.cases, known.missing, ("rbf", "poly"), known.sizes)
    jobs = (delayed(measure)(*cell, known.seeds) for cell in grid)
    report(Parallel(n_jobs=known.jobs, return_as="generator")(jobs), rest)
