"""One evaluation of the objective and both gradients against its five bare matrix products."""

import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import QUICK, best_time, report

from hirank.core.objective import Basis, reduced_gradient
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly

SIZES = [(300, 30, 60)] if QUICK else [(3392, 62, 248), (1000, 30, 240), (300, 30, 60)]


def bare_products(X: np.ndarray, D: np.ndarray) -> None:
    """X D', P D, P'X, K A^-1 and Z'Z, with K, P and Z all of their shape."""
    K, A = _operands(len(X), len(D), X.dtype)
    _ = X @ D.T, K @ D, K.T @ X, K @ A, K.T @ K


_CACHE: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}


def _operands(n: int, r: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    key = (n, r, dtype)
    if key not in _CACHE:
        rng = np.random.default_rng(0)
        _CACHE[key] = rng.random((n, r)).astype(dtype), rng.random((r, r)).astype(dtype)
    return _CACHE[key]


def spin() -> None:
    while True:
        pass


def rows(busy: bool = False) -> Iterator[dict]:
    for n, m, r in SIZES:
        for dtype in (np.float64, np.float32):
            X = np.random.default_rng(1).standard_normal((n, m)).astype(dtype)
            D = X[:r].copy()
            for kernel in (RBF(10.0), Poly()):
                for threads in (1, 2):
                    repeats = 40 if n > 1000 else 200
                    with threadpool_limits(threads):
                        bare = best_time(lambda X=X, D=D: bare_products(X, D), repeats)
                    with Workers(threads) as workers:
                        ours = best_time(
                            lambda X=X, D=D, k=kernel, w=workers: reduced_gradient(
                                X, Basis(k, D, 1e-3), w
                            ),
                            repeats,
                        )
                    yield {
                        "n": n,
                        "m": m,
                        "r": r,
                        "kernel": type(kernel).__name__,
                        "dtype": np.dtype(dtype).name,
                        "threads": threads,
                        "busy core": busy,
                        "products ms": 1e3 * bare,
                        "ours ms": 1e3 * ours,
                        "ratio": ours / bare,
                    }


def all_rows() -> Iterator[dict]:
    yield from rows()
    neighbor = multiprocessing.Process(target=spin, daemon=True)
    neighbor.start()
    yield from (row for row in rows(busy=True) if row["threads"] == 2)
    neighbor.terminate()


if __name__ == "__main__":
    report(all_rows())
