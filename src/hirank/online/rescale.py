"""The scale of a window's features: measured, measured again, and when that is due."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.scaling import Scaling
from hirank.online.buffer import Memory, Model
from hirank.online.config import Plan

SHIFT = 1.0
"""Standard deviations by which a mean may move before the features are scaled again."""
STRETCH = 2.0
"""Factor by which a standard deviation may change before that."""


def scaled(rows: Array, nonempty: BoolArray, scaling: Scaling) -> tuple[Array, BoolArray]:
    """Rows, n x m, as the solvers want them, n x v, and which entries are known."""
    known = ~np.isnan(rows)
    X = scaling.forward(np.where(known, rows, 0)[:, nonempty])
    return X, known[:, nonempty][:, scaling.varying]


def deviation(rows: Array) -> Array:
    """Standard deviation of each feature of rows, n x m; 0 for one that does not vary."""
    return Scaling.measure(rows, ~np.isnan(rows), scale="standard").spread


def _varies_now(memory: Memory) -> BoolArray:
    """Which features have two different values in the window, m."""
    low = np.where(np.isnan(memory.rows), np.inf, memory.rows).min(axis=0)
    high = np.where(np.isnan(memory.rows), -np.inf, memory.rows).max(axis=0)
    varies: BoolArray = low < high
    return varies


def came_alive(memory: Memory, model: Model) -> bool:
    """Whether a feature varies now that did not when the model was started."""
    known = np.zeros(len(model.means), bool)
    known[model.columns] = True
    new = _varies_now(memory) & ~known
    if not new.any():
        return False
    return bool((deviation(memory.rows[:, new]) > 0).any())


def with_late_means(model: Model, memory: Memory) -> Model:
    """With the means of features that had no value when the model was started."""
    late = ~model.fitted.nonempty & ~np.isnan(memory.rows).all(axis=0)
    if not late.any():
        return model
    means = model.means.copy()
    means[late] = np.nanmean(memory.rows[:, late], axis=0)
    return replace(model, means=means)


def measured_again(memory: Memory, model: Model, plan: Plan) -> Scaling:
    """Scaling of the model's features on the window; as before for those that have gone quiet."""
    fitted = model.fitted
    rows, old = memory.typical()[:, fitted.nonempty], fitted.scaling
    center, spread, mean = old.center.copy(), old.spread.copy(), old.mean.copy()
    alive = (~np.isnan(rows)).sum(axis=0) > 0
    new = Scaling.measure(
        rows[:, alive], ~np.isnan(rows[:, alive]), scale=plan.scale and "standard"
    )
    mean[alive] = new.mean
    take = old.varying & alive
    take[alive] &= new.varying
    center[take], spread[take] = new.center[take[alive]], new.spread[take[alive]]
    constant = alive & ~old.varying
    center[constant] = new.mean[constant[alive]]
    return Scaling(center, spread, mean)


def scale_change(memory: Memory, model: Model, plan: Plan) -> float:
    """How far means and standard deviations of features are from those in use; below 1 is fine."""
    old, new = model.fitted.scaling, measured_again(memory, model, plan)
    v = old.varying
    if not plan.scale or not v.any():
        return 0.0
    shift = np.abs(new.center - old.center)[v] / (SHIFT * old.spread[v])
    ratio = new.spread[v] / old.spread[v]
    return float(np.max([shift, ratio / STRETCH, 1 / (STRETCH * ratio)]))
