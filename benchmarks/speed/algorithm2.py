"""Algorithm 2 of the paper: one inner iteration against its bare products, and whole runs.

r = 60, 30 features. The products are D x, C k and D'q by BLAS, from a few lines of C that are
compiled for this measurement (bare_products.c). Seconds are those of the processor, for 10 passes
over the paper's synthetic cases; the authors' own code, under Octave, takes the seconds of the last
column (measured once, not in this run).
"""

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, QUICK, report, seeds, synthetic
from scipy.linalg import cython_blas

from hirank import _compiled
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.optim.algorithm2 import (
    BANDWIDTH,
    POLY_ALPHA,
    POLY_BETA,
    Algorithm2State,
    falling_betas,
    paper_pass,
)
from hirank.optim.path import Setting

R, PASSES, INNER = 60, 2 if QUICK else 10, 50
FIXED = 7e-3  # the best single beta with the RBF kernel
METHODS = {
    "rbf": (0.0, falling_betas(PASSES)),
    "rbf, fixed beta": (0.0, np.full(PASSES, FIXED)),
    "poly": (POLY_ALPHA, np.full(PASSES, POLY_BETA)),
}
AUTHORS = dict(zip(CASES, (57, 140, 214), strict=True))


def load_bare_products() -> Callable[[np.ndarray, np.ndarray, np.ndarray, int], None]:
    """Compile bare_products.c, and return it as a function of D, C, x and a count."""
    source = Path(__file__).with_name("bare_products.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "bare.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        function = ctypes.CDLL(str(library)).bare_products
    capsule = cython_blas.__pyx_capi__["dgemv"]
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    dgemv = ctypes.c_void_p(read(capsule, ctypes.pythonapi.PyCapsule_GetName(capsule)))

    def run(D: np.ndarray, C: np.ndarray, x: np.ndarray, count: int) -> None:
        r, m = D.shape
        out = [np.empty(r), np.empty(r), np.empty(m)]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (D, C, x, *out)]
        function(dgemv, *pointers, r, m, count)

    return run


def standardized(case: str, missing: float, seed: int) -> tuple[np.ndarray, ...]:
    """Truth, what is observed of it, and both halves of its scaling."""
    truth, observed = synthetic(case, missing, seed)
    known = np.where(observed, truth, np.nan)
    return truth, observed, np.nanmean(known, axis=0), np.nanstd(known, axis=0)


def inner_iterations() -> Iterator[dict]:
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    bare = load_bare_products()
    truth, observed, mean, deviation = standardized("three curved surfaces", 0.5, 0)
    X = np.where(observed, (truth - mean) / deviation, 0)
    D = np.random.default_rng(0).standard_normal((R, X.shape[1]))
    C = np.linalg.inv(D @ D.T + np.eye(R))
    kernels = {
        "rbf": Setting(RBF().resolve(X, BANDWIDTH), FIXED),
        "poly": Setting(Poly(), POLY_BETA, POLY_ALPHA),
    }
    for name, setting in kernels.items():
        for form in (*_compiled.available(), _compiled.OFF):

            def run(count: int, setting=setting) -> None:
                start, Z = Algorithm2State.start(D), np.zeros((1, R))
                paper_pass(X[:1], observed[:1], Z, start, setting, max_inner=count, tol=0.0)

            with _compiled.using(form):
                # In turns: what else runs on the machine then slows all of them down.
                times = [
                    [seconds(run, 1), seconds(run, 1001), seconds(partial(bare, D, C, X[0]), 1000)]
                    for _ in range(100)
                ]
            once, many, products = np.min(times, axis=0)
            yield {
                "kernel": name,
                "form": form,
                "products us": 1e6 * products / 1000,
                "iteration us": 1e6 * (many - once) / 1000,
                "ratio": (many - once) / products,
                "step of D us": 1e6 * once,
            }


def seconds(function: Callable[[int], None], count: int) -> float:
    """Seconds of the processor that a call takes."""
    began = time.process_time()
    function(count)
    return time.process_time() - began


def run_case(case: str, missing: float, seed: int, method: str) -> tuple[float, float]:
    """Error and seconds of ten passes."""
    truth, observed, mean, deviation = standardized(case, missing, seed)
    X = np.where(observed, (truth - mean) / deviation, 0)
    kernel = Poly() if method == "poly" else RBF().resolve(X, BANDWIDTH)
    alpha, betas = METHODS[method]
    rng = np.random.default_rng((seed, 1))  # the seed itself has made the table
    began = time.process_time()
    stream = Algorithm2State.start(rng.standard_normal((R, X.shape[1])))
    Z = np.zeros((len(X), R))
    for beta in betas:
        setting = Setting(kernel, beta, alpha)
        X, Z, stream, _ = paper_pass(X, observed, Z, stream.restart(), setting, max_inner=INNER)
    seconds = time.process_time() - began
    return missing_relative_error(X * deviation + mean, truth, observed), seconds


def cases() -> Iterator[dict]:
    for method in METHODS:
        for missing in (0.3, 0.5):
            for case in CASES:
                errors, seconds = zip(
                    *(run_case(case, missing, seed, method) for seed in seeds(5)), strict=True
                )
                yield {
                    "case": case,
                    "method": method,
                    "missing": missing,
                    "error": float(np.median(errors)),
                    "worst": max(errors),
                    "seconds": min(seconds),
                    "authors s": AUTHORS[case],
                }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["iterations", "cases"])
    known, rest = parser.parse_known_args()
    report(inner_iterations() if known.what == "iterations" else cases(), rest)
