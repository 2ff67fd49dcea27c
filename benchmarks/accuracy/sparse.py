"""DLSR, SFMC and GroupSparse on the paper's synthetic cases: missing-entry error and seconds.

`defaults` are medians over the seeds. `best` is the best of a small grid, selected with the truth,
separately for each case, which no user can do.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, report, synthetic

from hirank.baselines import DLSR, SFMC, GroupSparse
from hirank.metrics import missing_relative_error

GRIDS = {
    DLSR: {"n_components": [30, 90], "l1": [0.001, 0.01], "scale": [False, True]},
    SFMC: {"n_components": [30, 90], "l1": [0.001, 0.03], "scale": [False, True]},
    GroupSparse: {"l1": [0.0015, 0.015], "scale": [False, True]},
}


def measured(model: BaseEstimator, case: str, missing: float, seeds: int) -> tuple[float, float]:
    """Median error and seconds."""
    errors, seconds = [], []
    for seed in range(seeds):
        truth, observed = synthetic(case, missing, seed)
        began = time.perf_counter()
        incomplete = np.where(observed, truth, np.nan)
        filled = model.set_params(random_state=seed).fit_transform(incomplete)
        seconds.append(time.perf_counter() - began)
        errors.append(missing_relative_error(filled, truth, observed))
    return float(np.median(errors)), float(np.median(seconds))


def rows(methods: list[str], cases: list[str], seeds: int, best: bool) -> Iterator[dict]:
    for case, missing in itertools.product(cases, (0.3, 0.5)):
        for kind, grid in GRIDS.items():
            if kind.__name__ not in methods:
                continue
            error, seconds = measured(kind(), case, missing, seeds)
            row = {"case": case, "missing": missing, "method": kind.__name__}
            row |= {"defaults": error, "seconds": seconds}
            if best:
                settings = [
                    dict(zip(grid, values, strict=True))
                    for values in itertools.product(*grid.values())
                ]
                found = [measured(kind(**s), case, missing, seeds)[0] for s in settings]
                row |= {"best": min(found), "with": settings[int(np.argmin(found))]}
            yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    names = [kind.__name__ for kind in GRIDS]
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--best", action="store_true", help="the grids as well")
    known, rest = parser.parse_known_args()
    report(rows(known.methods, known.cases, known.seeds, known.best), rest)
