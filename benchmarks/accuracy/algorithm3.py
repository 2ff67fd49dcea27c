"""Algorithm 3 of the paper beside L-BFGS: new rows with one dictionary, which Algorithm 1 fitted.

Trained on 300 complete samples (r = 60), 300 new ones, 30 % missing, three seeds. Rules:
`objective` ends a row when its part of the objective stalls (KFMC), `change` when nothing moves by
1e-5 (OnlineKFMC and the authors' code), `published` is `change` with the relaxation of the authors'
code, `long` ends below 1e-10, `L-BFGS` starts from the nearest points, all else the same.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, QUICK, best_time, report, seeds, stream

from hirank import KFMC
from hirank.core.threads import Workers
from hirank.datasets import uniform_missing
from hirank.metrics import missing_relative_error
from hirank.models.out_of_sample import RowImputer, complete_by_algorithm3
from hirank.optim.algorithm3 import Algorithm3Config

TRAIN, NEW, R = (60, 50, 20) if QUICK else (300, 300, 60)
PUBLISHED = {"rbf": 1.1, "poly": 1.0}


def rows() -> Iterator[dict]:
    for case in CASES:
        for kernel in ("rbf", "poly"):
            errors: dict[str, list[float]] = {}
            seconds: dict[str, list[float]] = {}
            for seed in seeds(3):
                truth = stream(case, TRAIN + NEW, seed)
                truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
                observed = uniform_missing((NEW, truth.shape[1]), 0.3, random_state=seed)
                model = KFMC(R, solver="newton", kernel=kernel, scale=False, random_state=seed)
                fitted, new = model.fit(truth[:TRAIN])._fitted.model, truth[TRAIN:]
                known, basis = np.where(observed, new, 0), fitted.settings[0].basis(fitted.D)
                with Workers(1) as workers:
                    by_steps = partial(complete_by_algorithm3, known, observed, basis)
                    change = {"max_iter": 250, "tol_change": 1e-5}
                    methods = {
                        "objective": partial(by_steps, fitted.config, workers),
                        "change": partial(by_steps, Algorithm3Config(**change), workers),
                        "published": partial(
                            by_steps,
                            Algorithm3Config(relaxation=PUBLISHED[kernel], **change),
                            workers,
                        ),
                        "long": partial(
                            by_steps, Algorithm3Config(max_iter=2000, tol_change=1e-10), workers
                        ),
                        "L-BFGS": partial(
                            RowImputer(fitted.D, fitted.settings).complete,
                            known,
                            observed,
                            workers,
                        ),
                    }
                    for name, complete in methods.items():
                        error = missing_relative_error(complete(), new, observed)
                        errors.setdefault(name, []).append(error)
                        seconds.setdefault(name, []).append(best_time(complete, 2))
            for name, found in errors.items():
                yield {
                    "case": case,
                    "kernel": kernel,
                    "rule": name,
                    "error": float(np.median(found)),
                    "ms/row": 1e3 * min(seconds[name]) / NEW,
                }


if __name__ == "__main__":
    report(rows())
