"""VMC and NLMC on the paper's synthetic cases: missing-entry relative error and seconds of CPU.

"authors" are the numbers of the authors' own code of VMC (one seed). "plain steps" repeats their
algorithm: one gradient step of length gamma^(1 - p/2) for each set of weights, gamma 1 % smaller
each time, 500 steps from zeros, rows scaled to a mean squared length of 1.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, report, synthetic

from hirank.baselines import NLMC, VMC
from hirank.kernels import RBF, Kernel, Poly
from hirank.metrics import missing_relative_error

AUTHORS = dict(zip(CASES, ((0.087, 0.099), (0.091, 0.129), (0.056, 0.078)), strict=True))
AUTHORS_SECONDS = dict(zip(CASES, (0.7, 11.0, 130.0), strict=True))


def plain_steps(incomplete: np.ndarray, kernel: Kernel, bandwidth: float = 1.0) -> np.ndarray:
    observed = ~np.isnan(incomplete)
    size = np.sqrt(incomplete.shape[1] * np.nanmean(incomplete**2))
    X = np.where(observed, incomplete / size, 0)
    kernel, gamma = kernel.resolve(X, bandwidth), None
    length = kernel.sigma**2 if isinstance(kernel, RBF) else 1 / kernel.degree
    for _ in range(500):
        bound = kernel.bind(X)
        K, slope = bound.rows(X)
        values, U = np.linalg.eigh(K)
        gamma = 0.1 * values[-1] if gamma is None else gamma / 1.01
        weights = (1 + np.maximum(values, 0) / gamma) ** (0.5 / 2 - 1)  # times gamma^(1 - p/2)
        step = length * bound.pull_rows((U * weights) @ U.T * slope, X)
        X = np.where(observed, X, X - step)
    return X * size


METHODS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "VMC": lambda X, seed: VMC(random_state=seed).fit_transform(X),
    "VMC to 1e-8": lambda X, seed: VMC(smoothing=1e-8).fit_transform(X),
    "VMC raw": lambda X, seed: VMC(smoothing=1e-8, scale=False).fit_transform(X),
    "VMC quick": lambda X, seed: VMC(smoothing=1e-4, tol=1e-2, random_state=seed).fit_transform(X),
    "NLMC": lambda X, seed: NLMC(random_state=seed).fit_transform(X),
    "NLMC raw": lambda X, seed: NLMC(scale=False, random_state=seed).fit_transform(X),
    "VMC plain steps": lambda X, seed: plain_steps(X, Poly(2, 1.0)),
    "NLMC plain steps": lambda X, seed: plain_steps(X, RBF(), 1.0),
}


def rows(methods: list[str], cases: list[str], seeds: int) -> Iterator[dict]:
    for case in cases:
        for column, missing in enumerate((0.3, 0.5)):
            for method in methods:
                errors, seconds = [], []
                for seed in range(seeds):
                    truth, observed = synthetic(case, missing, seed)
                    began = time.process_time()
                    filled = METHODS[method](np.where(observed, truth, np.nan), seed)
                    seconds.append(time.process_time() - began)
                    errors.append(missing_relative_error(filled, truth, observed))
                yield {
                    "case": case,
                    "missing": missing,
                    "method": method,
                    "median": float(np.median(errors)),
                    "worst": max(errors),
                    "authors": AUTHORS[case][column],
                    "cpu s": float(np.median(seconds)),
                    "authors s": AUTHORS_SECONDS[case],
                }


def mocap_rows(methods: list[str]) -> Iterator[dict]:
    """CMU 56_06, every second frame: RMSE of standardized features."""
    from real import mocap

    truth = StandardScaler().fit_transform(mocap())
    for missing in (0.3, 0.5):
        observed = np.random.default_rng(0).random(truth.shape) >= missing
        for method in methods:
            began = time.process_time()
            filled = METHODS[method](np.where(observed, truth, np.nan), 0)
            yield {
                "data": "mocap",
                "missing": missing,
                "method": method,
                "rmse": float(np.sqrt(np.mean((filled - truth)[~observed] ** 2))),
                "cpu s": time.process_time() - began,
            }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", default=["VMC", "NLMC"], choices=list(METHODS))
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--mocap", action="store_true", help="the motion capture data instead")
    known, rest = parser.parse_known_args()
    if known.mocap:
        report(mocap_rows(known.methods), rest)
    else:
        report(rows(known.methods, known.cases, known.seeds), rest)
