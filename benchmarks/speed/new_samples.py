"""transform: trained on 600 samples (r = 150), 1000 new ones, 50 % missing, five seeds."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, QUICK, best_time, report, seeds, stream

from hirank import KFMC
from hirank.datasets import uniform_missing
from hirank.metrics import missing_relative_error
from hirank.models.out_of_sample import ROUNDS

TRAIN, NEW, R = (100, 50, 30) if QUICK else (600, 1000, 150)


def bare_products(m: int, evaluations: int) -> float:
    """Seconds of X D', P D and K A^-1 for all new samples, once per evaluation."""
    rng = np.random.default_rng(0)
    X, D = rng.random((NEW, m)), rng.random((R, m))
    K, A = rng.random((NEW, R)), rng.random((R, R))

    def once() -> None:
        _ = X @ D.T, K @ D, K @ A

    return evaluations * best_time(once, 20)


def rows() -> Iterator[dict]:
    for case in CASES:
        errors, own, seconds, single = [], [], [], []
        for seed in seeds(5):
            truth = stream(case, TRAIN + NEW, seed)
            observed = uniform_missing(truth.shape, 0.5, random_state=seed + 1000)
            incomplete = np.where(observed, truth, np.nan)
            model = KFMC(R, random_state=seed)
            filled = model.fit_transform(incomplete[:TRAIN])
            own.append(missing_relative_error(filled, truth[:TRAIN], observed[:TRAIN]))
            new = incomplete[TRAIN:]
            errors.append(
                missing_relative_error(model.transform(new), truth[TRAIN:], observed[TRAIN:])
            )
            with threadpool_limits(1):
                seconds.append(best_time(lambda m=model, x=new: m.transform(x), 3))
                single.append(best_time(lambda m=model, x=new: m.transform(x[:1]), 3))
        evaluations = len(model._fitted.model.settings) * (ROUNDS + 1)
        with threadpool_limits(1):
            bare = bare_products(truth.shape[1], evaluations)
        yield {
            "case": case,
            "error": float(np.median(errors)),
            "training error": float(np.median(own)),
            "ms/row": 1e3 * min(seconds) / NEW,
            "rows/s": NEW / min(seconds),
            "one row ms": 1e3 * min(single),
            "ratio to products": min(seconds) / bare,
        }


if __name__ == "__main__":
    report(rows())
