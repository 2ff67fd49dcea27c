"""New rows with one dictionary: the rules of `PLANS` and the plain rounds that they replaced.

Trained on 300 samples (r = 120, 30 % missing), 300 new ones, ten seeds. "plain" takes 14 rounds
without curvature in every stage, in NumPy. Errors are geometric means, "ratio" is of errors with
and without the rules, times are CPU microseconds a row.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import CASES, QUICK, report, seeds, stream

from hirank import KFMC, _compiled
from hirank.core.threads import Workers
from hirank.datasets import uniform_missing
from hirank.metrics import missing_relative_error
from hirank.models.out_of_sample import MEMORY, PLAIN_ROUNDS, RowImputer
from hirank.optim.rows import RowRules, RowSolver

TRAIN, NEW, R = (100, 50, 30) if QUICK else (300, 300, 120)
MISSING = (0.3,) if QUICK else (0.2, 0.3, 0.5, 0.7)


class Run(NamedTuple):
    """What imputing some rows gave, and took."""

    error: float
    evaluations: float  # of a row
    microseconds: float  # of CPU, a row


class Plain(RowImputer):
    """All stages with the same rounds, without curvature."""

    @property
    def _steps(self) -> list[list[tuple[RowSolver, RowRules]]]:
        return [[(solver, RowRules(PLAIN_ROUNDS, MEMORY)) for solver in self.solvers]] * 3


def measure(imputer: RowImputer, X: np.ndarray, observed: np.ndarray, repeats: int = 2) -> Run:
    """Impute rows, n x v, several times; what is computed once is not part of the time."""
    evaluations, minimize = [], RowSolver.minimize

    def count(*args, **options):
        result = minimize(*args, **options)
        evaluations.append(result.evaluations.sum())
        return result

    with Workers(1) as workers:
        with patch.object(RowSolver, "minimize", count):
            filled = imputer.complete(np.where(observed, X, 0), observed, workers)
        seconds = cpu_time(lambda: imputer.complete(X, observed, workers), repeats)
    error = missing_relative_error(filled, X, observed)
    return Run(error, sum(evaluations) / len(X), 1e6 * seconds / len(X))


def cpu_time(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU seconds of several runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def rows(kernel: str, count: int) -> Iterator[dict]:
    for case in CASES:
        found: dict[float, dict[str, list[Run]]] = {}
        alone = []
        for seed in seeds(count):
            truth = stream(case, TRAIN + NEW, seed)
            observed = uniform_missing((TRAIN, truth.shape[1]), 0.3, random_state=seed + 1000)
            model = KFMC(R, kernel=kernel, random_state=seed)
            model.fit(np.where(observed, truth[:TRAIN], np.nan))
            fitted = model._fitted
            new = truth[TRAIN:]
            scaled = fitted.columns.scale(new, np.ones(new.shape, bool)).X
            parts = fitted.model.D, fitted.model.settings
            for missing in MISSING:
                seen = uniform_missing(new.shape, missing, random_state=seed + 77)
                seen[~seen.any(axis=1), 0] = True
                runs = found.setdefault(missing, {})
                with _compiled.using("off"):
                    runs.setdefault("plain", []).append(measure(Plain(*parts), scaled, seen, 1))
                    runs.setdefault("NumPy", []).append(
                        measure(RowImputer(*parts), scaled, seen, 1)
                    )
                runs.setdefault("compiled", []).append(measure(RowImputer(*parts), scaled, seen))
            one = np.where(seen, new, np.nan)[:1]
            with threadpool_limits(1):
                alone.append(cpu_time(lambda m=model, x=one: m.transform(x), 20))
        for missing, runs in found.items():
            plain, now = np.array(runs["plain"]), np.array(runs["compiled"])
            yield {
                "case": case,
                "kernel": kernel,
                "missing": missing,
                "plain error": geometric_mean(plain[:, 0]),
                "error": geometric_mean(now[:, 0]),
                "ratio": geometric_mean(now[:, 0] / plain[:, 0]),
                "plain evaluations": plain[:, 1].mean(),
                "evaluations": now[:, 1].mean(),
                "plain us": plain[:, 2].min(),
                "NumPy us": np.array(runs["NumPy"])[:, 2].min(),
                "us": now[:, 2].min(),
                "one row by transform us": 1e6 * min(alone),
            }


def geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def all_rows() -> Iterator[dict]:
    yield from rows("rbf", 10)
    yield from rows("poly", 4)


if __name__ == "__main__":
    report(all_rows())
