"""Time per step and peak memory of a fit as the number of samples grows: 20 features, r = 100."""

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report

from hirank import KFMC
from hirank.datasets import polynomial_manifolds

FEATURES, COMPONENTS, STEPS = 20, 100, 2


def measure(n: int, pipe) -> None:
    X = polynomial_manifolds(n, FEATURES, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    model = KFMC(COMPONENTS, max_iter=STEPS, tol=0, random_state=0)
    began = time.perf_counter()
    model.fit(X)
    whole = time.perf_counter() - began
    steps = np.diff(model.trace_["seconds"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pipe.send((float(np.min(steps)), whole, model.n_iter_, peak))


def rows() -> Iterator[dict]:
    for n in (1_000, 5_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(n, theirs))
        process.start()
        step, whole, count, peak = ours.recv()
        process.join()
        yield {
            "samples": n,
            "step ms": 1e3 * step,
            "us/sample": 1e6 * step / n,
            "fit s": whole,
            "steps": count,
            "peak GB": peak,
        }


if __name__ == "__main__":
    report(rows())
