"""The automatic choice for a whole table: large ones, and rows in order of time, included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.threads import Workers
from hirank.models.temporal_smoother import Drift
from hirank.optim.trace import Monitor, Phase, PhaseStarted
from hirank.selection.results import Chosen, Plan
from hirank.selection.search import search
from hirank.selection.temporal import InTime

MOST_ROWS = 10_000
"""Rows that models are chosen and learned from. More would cost time, and hardly help: a dictionary
has at most some hundred points, and the other rows are completed as new samples are."""


def choose(
    X: Array,
    observed: BoolArray,
    plan: Plan,
    record: Monitor,
    rng: np.random.Generator,
    times: Array | None = None,
) -> tuple[Chosen, Drift | None]:
    """Choose models for a table, n x v, and complete it; and how it changes with time, if it does.

    Its fills, `Chosen.X`, are those of the models: neighbors in time have not been asked yet.
    """
    n = len(X)
    order = np.arange(n) if times is None else np.argsort(times, kind="stable")
    most = max(MOST_ROWS, 2 * plan.recipes[0].n_components)
    at = order[_part(n, most, rng, in_order=times is not None)]
    x, seen = X[at], observed[at]
    in_time = None if times is None else InTime(times[at])
    with Workers() as workers:
        hidden = None if in_time is None else in_time.hidden(seen, rng)
        chosen = search(x, seen, plan, workers, record, rng, hidden)
    drift = None
    if in_time is not None:
        drift, chosen = in_time.learn(x, seen, chosen, rng)
    filled = np.where(observed, X, 0)
    filled[at] = chosen.X
    rest = np.any(~observed, axis=1)
    rest[at] = False
    if rest.any():
        count = int(rest.sum())
        record.notify(PhaseStarted(Phase.OUT_OF_SAMPLE, record.seconds, count))
        filled[rest] = chosen.blend.complete(filled[rest], observed[rest])
    held_out = chosen.held_out
    if held_out is not None:
        held_out = replace(held_out, rows=at[held_out.rows])
    nothing = (observed[:0], X[:0])
    return replace(chosen, X=filled, held_out=held_out, first_fold=nothing), drift


def _part(n: int, most: int, rng: np.random.Generator, *, in_order: bool) -> IntArray:
    """Rows to learn from, of n: all, or some at random, or a stretch from the middle."""
    if n <= most:
        return np.arange(n)
    if in_order:
        return np.arange((n - most) // 2, (n - most) // 2 + most)
    return np.sort(rng.choice(n, most, replace=False))
