"""Ordered rows: CMU motion capture 56_06, 3392 frames x 56 features, both patterns of the paper.

RMSE of standardized features over missing entries: straight lines in time, KFMC that knows nothing
of time, how samples change with time alone, and both together. A fit takes minutes.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report

from hirank.datasets import load_mocap, missing_gaps, uniform_missing
from hirank.kernels import RBF
from hirank.model.scaling import Scaling
from hirank.model.workers import Workers
from hirank.solvers.gaps import interpolate
from hirank.solvers.loop import Options
from hirank.solvers.ordered import learn_changes
from hirank.solvers.path import default_path
from hirank.solvers.table import Task, complete_ordered_table, complete_table

DATA = Path(os.environ.get("HIRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))
PATTERNS = {"random": uniform_missing, "gaps": missing_gaps}
CONSTANT = 1e-6
"""Spread of the clavicles, which hold nothing but rounding errors: see `load_mocap`."""


def mocap() -> np.ndarray:
    """Standardized features that vary."""
    table = load_mocap(DATA / "cmu_mocap_56_06.mat").X
    table = table[:, table.std(axis=0) > CONSTANT]
    return (table - table.mean(axis=0)) / table.std(axis=0)


def rows(
    patterns: list[str], rates: list[float], components: int, max_iter: int, seed: int
) -> Iterator[dict]:
    truth = mocap()
    for pattern, rate in itertools.product(patterns, rates):
        observed = PATTERNS[pattern](truth.shape, rate, random_state=seed)
        scaling = Scaling.measure(truth, observed, scale=True)
        X = np.where(observed, scaling.forward(truth), 0)
        options = Options(max_iter=max_iter, tol=1e-3)
        task = Task(X, observed, components, RBF(), default_path(), options)

        def rng() -> np.random.Generator:
            return np.random.default_rng(seed)

        def alone(X=X, observed=observed) -> np.ndarray:
            return learn_changes(X, observed, None, rng()).combine(X, observed)

        row: dict = {"pattern": pattern, "missing": rate}
        with Workers() as workers:
            methods = {
                "linear": lambda X=X, observed=observed: interpolate(X, observed),
                "KFMC": lambda t=task, w=workers: complete_table(t, w, rng()).X,
                "changes": alone,
                "ordered": lambda t=task, w=workers: complete_ordered_table(t, None, w, rng())[0].X,
            }
            for name, method in methods.items():
                began = time.perf_counter()
                filled = method()
                seconds = time.perf_counter() - began
                error = (scaling.backward(filled) - truth)[~observed]
                row |= {name: float(np.sqrt(np.mean(error**2))), f"{name} s": seconds}
        yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patterns", nargs="+", choices=list(PATTERNS), default=list(PATTERNS))
    parser.add_argument("--rates", nargs="+", type=float, default=[0.3, 0.5, 0.7])
    parser.add_argument("--components", type=int, default=400)
    parser.add_argument("--max-iter", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    known, rest = parser.parse_known_args()
    settings = (known.components, known.max_iter, known.seed)
    report(rows(known.patterns, known.rates, *settings), rest)
