"""One stage of a dictionary fit, and of a low-rank kernel matrix: start and step, compiled or not.

The times are of the CPU: of the process, whatever else the machine does.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import QUICK, report

from hirank import _compiled
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly
from hirank.models.fit_schatten import SchattenPath
from hirank.optim.irls import IRLS
from hirank.optim.lbfgs import LBFGS
from hirank.optim.path import PathPoint, Stage, resolve_stage

SIZES = [(100, 30, 60)] if QUICK else [(150, 4, 77), (100, 30, 60), (300, 30, 120), (3392, 62, 248)]
N_STEPS = 5 if QUICK else 20


def surface(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a curved surface, n x m, and which entries are observed."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, (n, 3))
    X = np.hstack([t, t**2, t[:, :1] * t[:, 1:]]) @ rng.standard_normal((8, m))
    return (X - X.mean(axis=0)) / X.std(axis=0), rng.random((n, m)) < 0.6


def measure(solver: LBFGS, start: PathPoint) -> tuple[float, float]:
    """Return milliseconds of the start and of a step."""
    began = time.process_time()
    state = solver.init(start)
    middle = time.process_time()
    for _ in range(N_STEPS):
        state = solver.step(state)
    return 1e3 * (middle - began), 1e3 * (time.process_time() - middle) / N_STEPS


def rows() -> Iterator[dict]:
    forms = ["off", *_compiled.available()]
    for n, m, r in SIZES:
        X, observed = surface(n, m)
        for kernel in (RBF(), Poly()):
            setting = resolve_stage(Stage(1.5, 1e-4, 0.1), kernel, X, X)
            landmarks = SchattenPath(kernel).landmarks(X, setting)
            size = n if landmarks is None else len(landmarks)
            with Workers(1) as workers:
                solvers = {
                    "dictionary": (LBFGS(observed, workers), X[:r].copy()),
                    "kernel matrix": (IRLS(observed, workers, landmarks=landmarks), X),
                }
                for model, (solver, D) in solvers.items():
                    times = {}
                    for form in forms:
                        with _compiled.using(form):
                            times[form] = measure(solver, PathPoint(setting, X, D))
                    for form, (start, step) in times.items():
                        yield {
                            "n": n,
                            "m": m,
                            "r": r if model == "dictionary" else size,
                            "model": model,
                            "kernel": type(kernel).__name__,
                            "core": form,
                            "start ms": start,
                            "step ms": step,
                            "ratio": times["off"][1] / step,
                        }


if __name__ == "__main__":
    report(rows())
