"""What the automatic choice may try for KFMC, and what it found, in words and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.core.bounds import Bounds
from hirank.estimators.validation import components_of, kernel_of, stages_of
from hirank.kernels import RBF, Kernel, Poly
from hirank.models.row_models import Dictionary
from hirank.optim.path import FIRST_BETA, LAST_BETA, SolverConfig, Stage, default_path
from hirank.optim.trace import Monitor, RunInfo, describe_stop
from hirank.selection.candidates import Tried
from hirank.selection.dictionary_path import Recipe
from hirank.selection.results import Chosen, Plan

SMALL, SMALLEST = 1 / 3, 15
"""Part of the usual number of points that the search begins with, and the least."""
LARGE, LARGEST = 2, 800
"""Times the usual number to which it may go, and the most."""
SMOOTH = (2.0, 2.0, 2.0, 2.0, 3.0, 5.0, 8.0)
"""Bandwidths of a second path, for noisy tables; beta falls from ten times as much."""
COLUMNS = ("candidate", "kernel", "n_components", "bandwidth", "beta", "noise", "ridge")
"""Of the table of results, before error, seconds and weight."""


def is_automatic(model: Any) -> bool:
    """Whether there is anything to choose, or to average."""
    if model.solver == "newton":
        return False
    asked = "auto" in (model.n_components, model.bandwidth) or model.kernel == "auto"
    return bool(asked or model.mix or model.order is not None or model.n_starts not in ("auto", 1))


def plan_of(model: Any, n: int, options: SolverConfig, bounds: Bounds | None) -> Plan:
    """What may be tried for n samples."""
    usual = components_of(model, n)
    small = most = usual
    if model.n_components == "auto":
        small = min(usual, max(SMALLEST, round(SMALL * usual)))
        most = min(n, LARGEST, LARGE * usual)
    recipes = [Recipe(*path, small) for path in _paths(model)]
    n_starts = None if model.n_starts == "auto" else int(model.n_starts)
    return Plan(recipes, most, model.mix, n_starts, options, bounds)


def _paths(model: Any) -> list[tuple[str, Kernel, tuple[Stage, ...]]]:
    """Kernels and their paths, the usual one first."""
    if isinstance(model.kernel, Kernel):
        return [(repr(model.kernel), model.kernel, stages_of(model))]
    end = LAST_BETA if model.beta is None else float(model.beta)
    paths: list[tuple[str, Kernel, tuple[Stage, ...]]] = []
    if model.kernel in ("auto", "rbf"):
        paths.append(("rbf", RBF(), stages_of(model)))
        if model.bandwidth == "auto":
            paths.append(("rbf", RBF(), default_path(SMOOTH, end, 10 * FIRST_BETA)))
    if model.kernel in ("auto", "poly"):
        kernel = Poly(model.degree, model.offset) if model.kernel == "auto" else kernel_of(model)
        paths.append(("poly", kernel, stages_of(model)))
    return paths


def table_of(results: Sequence[tuple[Tried, float]]) -> dict[str, NDArray[Any]]:
    """All candidates in columns, like ``cv_results_``; NaN or "" where a setting has no meaning."""
    rows = [{"candidate": one.name, **one.settings} for one, _ in results]
    texts = ("candidate", "kernel")
    table: dict[str, NDArray[Any]] = {
        name: np.array([row.get(name, "" if name in texts else np.nan) for row in rows])
        for name in COLUMNS
    }
    table["error"] = np.array([one.error for one, _ in results])
    table["seconds"] = np.array([one.seconds for one, _ in results])
    table["weight"] = np.array([weight for _, weight in results])
    table["failure"] = np.array([one.failure for one, _ in results], dtype=object)
    return table


def sentence_of(chosen: Chosen) -> str:
    """What was chosen, and by what."""
    used = [(one, weight) for one, weight in chosen.results if weight]
    names = [f"{round(100 * weight)} % {one}" for one, weight in used]
    what = names[0].partition(" % ")[2] if len(names) == 1 else " + ".join(names)
    if chosen.held_out is None:
        return f"Taken without a trial: {what}."
    return f"Chosen on {len(chosen.held_out.truth)} hidden entries: {what}."


@dataclass(frozen=True)
class Learned:
    """What a fit of KFMC leaves behind."""

    X: Array  # n x v
    objective: float
    n_iter: int
    stop_reason: str
    trace: NDArray[np.void]
    dictionary: Dictionary
    results: dict[str, NDArray[Any]]  # of the search, in columns
    notes: Chosen | None  # None if nothing was chosen

    @classmethod
    def plain(cls, X: Array, run: RunInfo, dictionary: Dictionary) -> Learned:
        """Of one dictionary with given settings."""
        return cls(
            X,
            run.objective,
            run.n_iter,
            run.stop_reason,
            run.trace,
            dictionary,
            table_of([]),
            None,
        )

    @classmethod
    def chosen(cls, chosen: Chosen, record: Monitor) -> Learned:
        """Of the automatic choice."""
        reason = sentence_of(chosen)
        if record.reason is not None:
            stop = describe_stop(record.reason, steps=record.steps, max_time=record.max_time)
            reason = f"{stop} {reason}"
        return cls(
            chosen.X,
            chosen.objective,
            record.steps,
            reason,
            record.trace,
            chosen.dictionary,
            table_of(chosen.results),
            replace(chosen, X=chosen.X[:0]),  # the table itself is not kept
        )
