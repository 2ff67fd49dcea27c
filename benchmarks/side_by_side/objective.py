"""What is measured: errors over missing entries, and what they cost.

rmse, mae     over missing entries, every feature in units of its standard deviation in the
              complete truth: filling in the true means scores an rmse of about 1
seconds       wall clock of the solver alone: no imports, no reading, no scoring
cpu_seconds   user and system time of the process meanwhile, all threads together
peak_mb       most resident memory of the process, ever; base_mb of it were there before the
              solver began: Python, the libraries, the table
failure       why there is no result; empty if there is one
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from hirank.metrics import standardized_rmse

MEASURES = ["rmse", "mae", "seconds", "cpu_seconds", "peak_mb", "base_mb", "failure"]


def errors(filled: np.ndarray, truth: np.ndarray, observed: np.ndarray) -> dict[str, float]:
    """Root mean square and mean absolute error, standardized; all n x m."""
    if filled.shape != truth.shape:
        raise ValueError(f"a table of shape {truth.shape} came back as {filled.shape}")
    left = int((~np.isfinite(filled[~observed])).sum())
    if left:
        raise ValueError(f"{left} of {int((~observed).sum())} entries came back not finite")
    off = np.abs(filled - truth) / truth.std(axis=0)
    return {
        "rmse": standardized_rmse(filled, truth, observed),
        "mae": float(off[~observed].mean()),
    }


def measure(impute: Callable[[], np.ndarray]) -> tuple[np.ndarray, dict[str, float]]:
    """The filled table and its costs, in this process."""
    base, cpu, began = peak_mb(), cpu_seconds(), time.perf_counter()
    filled = impute()
    return filled, {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": cpu_seconds() - cpu,
        "peak_mb": peak_mb(),
        "base_mb": base,
    }


def cpu_seconds() -> float:
    """User and system time of this process and those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # kilobytes everywhere but there
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
