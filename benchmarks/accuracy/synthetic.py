"""The paper's three synthetic cases: missing-entry relative error, medians of five seeds.

One dictionary of r points, ``KFMC(r)``, and ``Imputer()`` without arguments beside it.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, MAX_TIME, QUICK, report, seeds, synthetic

from hirank import KFMC, Imputer
from hirank.metrics import missing_relative_error

COMPONENTS = dict(zip(CASES, (20, 20, 40) if QUICK else (60, 120, 240), strict=True))
BARS = dict(zip(CASES, ((0.005, 0.020), (0.010, 0.020), (0.002, 0.004)), strict=True))
AUTHORS = dict(zip(CASES, ((0.0217, 0.0441), (0.0440, 0.0731), (0.0245, 0.0468)), strict=True))


def measure(case: str, missing: float, model: Any) -> tuple[list[float], list[float]]:
    """Return the errors and seconds of all seeds."""
    errors, seconds = [], []
    for seed in seeds(5):
        truth, observed = synthetic(case, missing, seed)
        began = time.perf_counter()
        model = model.set_params(random_state=seed)
        filled = model.fit_transform(np.where(observed, truth, np.nan))
        seconds.append(time.perf_counter() - began)
        errors.append(missing_relative_error(filled, truth, observed))
    return errors, seconds


def rows() -> Iterator[dict]:
    for column, missing in enumerate((0.3, 0.5)):
        for case, r in COMPONENTS.items():
            errors, seconds = measure(case, missing, KFMC(r))
            selected, longer = measure(case, missing, Imputer(max_time=MAX_TIME))
            yield {
                "case": case,
                "missing": missing,
                "r": r,
                "median": float(np.median(errors)),
                "worst": max(errors),
                "at most": BARS[case][column],
                "authors": AUTHORS[case][column],
                "seconds": float(np.median(seconds)),
                "Imputer": float(np.median(selected)),
                "its worst": max(selected),
                "its seconds": float(np.median(longer)),
            }


if __name__ == "__main__":
    report(rows())
