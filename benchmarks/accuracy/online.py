"""Online baselines: exact on a stream of low rank after some passes, inaccurate on high rank.

1200 samples x 30 features, 50 % missing. `passes` is the error after `fit` (at most 20 passes),
`arrival` that of the second half of a stream on arrival, in batches of 50.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, QUICK, report, seeds, stream

from hirank import OnlineImputer
from hirank.baselines import DLSR, GROUSE, OnlineLRF
from hirank.datasets import uniform_missing
from hirank.metrics import missing_relative_error

SAMPLES = 900 if QUICK else 1200
METHODS = {
    "GROUSE": lambda seed: GROUSE(random_state=seed),
    "GROUSE, 5, unscaled": lambda seed: GROUSE(5, scale=False, random_state=seed),
    "OnlineLRF": lambda seed: OnlineLRF(random_state=seed),
    "DLSR": lambda seed: DLSR(random_state=seed),
    "DLSR, 20 atoms": lambda seed: DLSR(20, 1e-3, random_state=seed),
    "OnlineImputer": lambda seed: OnlineImputer(random_state=seed),
}


def low_rank(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((SAMPLES, 5)) @ rng.standard_normal((5, 30))


def arrivals(model: object, incomplete: np.ndarray) -> np.ndarray:
    """Return the second half, imputed batch by batch on arrival."""
    half = len(incomplete) // 2
    model.partial_fit(incomplete[:half])
    batches = [incomplete[i : i + 50] for i in range(half, len(incomplete), 50)]
    return np.concatenate([model.partial_fit_transform(batch) for batch in batches])


def rows() -> Iterator[dict]:
    streams = {"rank 5": low_rank} | {
        case: lambda seed, case=case: stream(case, SAMPLES, seed)
        for case in ([] if QUICK else CASES)
    }
    for name, make in streams.items():
        for method, new in METHODS.items():
            errors, seconds = [], []
            for seed in seeds(3):
                truth = make(seed)
                observed = uniform_missing(truth.shape, 0.5, random_state=seed + 1000)
                incomplete, half = np.where(observed, truth, np.nan), len(truth) // 2
                began = time.perf_counter()
                filled = new(seed).fit_transform(incomplete)
                seconds.append(time.perf_counter() - began)
                later = arrivals(new(seed), incomplete)
                errors.append(
                    (
                        missing_relative_error(filled, truth, observed),
                        missing_relative_error(later, truth[half:], observed[half:]),
                    )
                )
            passes, arrival = np.median(errors, axis=0).tolist()
            yield {
                "case": name,
                "method": method,
                "passes": passes,
                "arrival": arrival,
                "seconds": float(np.median(seconds)),
            }


if __name__ == "__main__":
    report(rows())
