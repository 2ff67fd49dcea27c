"""Every baseline on the paper's synthetic cases: missing-entry error and seconds, medians.

All methods run with their defaults. `authors` is what the code of the paper's authors, or of the
authors of VMC, gave on one seed, where known.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, MAX_TIME, report, synthetic

from hirank import KFMC, Imputer, baselines
from hirank.metrics import missing_relative_error

AUTHORS = {
    "NNM": ((0.0609, 0.1293), (0.2925, 0.4218), (0.5226, 0.6483)),
    "VMC": ((0.087, 0.099), (0.091, 0.129), (0.056, 0.078)),
    "KFMC": ((0.0217, 0.0441), (0.0440, 0.0731), (0.0245, 0.0468)),
}
RATES = (0.3, 0.5)


def model(method: str, seed: int) -> BaseEstimator:
    name, _, unscaled = method.partition(", ")
    if name == "Imputer":
        return Imputer(max_time=MAX_TIME, random_state=seed)
    new = KFMC() if name == "KFMC" else getattr(baselines, name)()
    if unscaled:
        new.set_params(scale=False)
    return new.set_params(random_state=seed) if "random_state" in new.get_params() else new


def rows(methods: list[str], seeds: int) -> Iterator[dict]:
    for number, case in enumerate(CASES):
        for column, missing in enumerate(RATES):
            for method in methods:
                errors, seconds = [], []
                for seed in range(seeds):
                    truth, observed = synthetic(case, missing, seed)
                    began = time.perf_counter()
                    filled = model(method, seed).fit_transform(np.where(observed, truth, np.nan))
                    seconds.append(time.perf_counter() - began)
                    errors.append(missing_relative_error(filled, truth, observed))
                known = AUTHORS.get(method.split(",")[0])
                yield {
                    "case": case,
                    "missing": missing,
                    "method": method,
                    "median": float(np.median(errors)),
                    "least": min(errors),
                    "most": max(errors),
                    "authors": known[number][column] if known else "",
                    "seconds": float(np.median(seconds)),
                }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    every = ["Imputer", "KFMC", *baselines.__all__, "NNM, unscaled"]
    parser.add_argument("--methods", help="names between semicolons, of " + "; ".join(every))
    parser.add_argument("--seeds", type=int, default=3)
    known, rest = parser.parse_known_args()
    methods = known.methods.split(";") if known.methods else every
    report(rows([method.strip() for method in methods], known.seeds), rest)
