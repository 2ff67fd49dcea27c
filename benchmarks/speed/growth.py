"""Growth with the number of samples: one evaluation from 1e3 to 1e6, and whole fits with memory.

20 features, half of the entries missing, r = 100.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import QUICK, best_time, report

from hirank import KFMC
from hirank.core.objective import Basis, reduced_gradient
from hirank.core.threads import Workers
from hirank.datasets import polynomial_manifolds
from hirank.kernels import RBF

FEATURES, COMPONENTS = 20, 100


def evaluations() -> Iterator[dict]:
    sizes = (1_000, 3_000, 10_000, 20_000, 100_000, 200_000, 1_000_000)
    for n in sizes[:2] if QUICK else sizes:
        X = polynomial_manifolds(n, FEATURES, random_state=0)
        basis = Basis(RBF(5.0), X[:COMPONENTS].copy(), 1e-6)
        with Workers() as workers:
            seconds = best_time(
                lambda X=X, basis=basis, w=workers: reduced_gradient(X, basis, w),
                3 if n > 50_000 else 10,
            )
        yield {"samples": n, "evaluation ms": 1e3 * seconds, "us/sample": 1e6 * seconds / n}


def fit(n: int, pipe) -> None:
    X = polynomial_manifolds(n, FEATURES, random_state=0)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = np.nan
    model = KFMC(COMPONENTS, max_iter=10, tol=0, random_state=0)
    began = time.perf_counter()
    model.fit(X)
    whole = time.perf_counter() - began
    step = np.median(np.diff(model.trace_["seconds"]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pipe.send((float(step), whole, model.n_iter_, peak))


def fits() -> Iterator[dict]:
    for n in (1_000,) if QUICK else (20_000, 200_000):
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=fit, args=(n, theirs))
        process.start()
        step, whole, count, peak = ours.recv()
        process.join()
        yield {
            "samples": n,
            "steps": count,
            "ms/step": 1e3 * step,
            "us/step/sample": 1e6 * step / n,
            "fit s": whole,
            "peak GB": peak,
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["evaluations", "fits"])
    known, rest = parser.parse_known_args()
    report(evaluations() if known.what == "evaluations" else fits(), rest)
