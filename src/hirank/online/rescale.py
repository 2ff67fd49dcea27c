"""The scale of a window's features: measured again, and when that is necessary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hirank._typing import Array
from hirank.core.scaling import Scaling
from hirank.online.buffer import Buffer, WindowModel, column_means
from hirank.online.config import WindowConfig


def deviation(rows: Array) -> Array:
    """Return the standard deviation of each feature of rows, n x m; 0 if it is constant."""
    return Scaling.measure(rows, ~np.isnan(rows), scale="standard").spread


def has_new_feature(buffer: Buffer, model: WindowModel) -> bool:
    """Return whether a feature varies now that did not when the model was started."""
    low = np.where(np.isnan(buffer.rows), np.inf, buffer.rows).min(axis=0)
    high = np.where(np.isnan(buffer.rows), -np.inf, buffer.rows).max(axis=0)
    new = (low < high) & ~model.columns.varying
    return bool(new.any()) and bool((deviation(buffer.rows[:, new]) > 0).any())


def update_means(model: WindowModel, buffer: Buffer) -> WindowModel:
    """Return the model with the means of features that had no value when it was started."""
    late = ~model.columns.has_values & ~np.isnan(buffer.rows).all(axis=0)
    if not late.any():
        return model
    means = model.means.copy()
    means[late] = column_means(buffer.rows[:, late])
    return replace(model, means=means)


def measure_again(buffer: Buffer, model: WindowModel, config: WindowConfig) -> Scaling:
    """Return the scaling of the model's features in the window; as before without new values."""
    rows, old = buffer.inliers()[:, model.columns.has_values], model.columns.scaling
    center, spread, mean = old.center.copy(), old.spread.copy(), old.mean.copy()
    alive = (~np.isnan(rows)).sum(axis=0) > 0
    scale = config.scale and "standard"
    new = Scaling.measure(rows[:, alive], ~np.isnan(rows[:, alive]), scale=scale)
    mean[alive] = new.mean
    take = old.varying & alive
    take[alive] &= new.varying
    center[take], spread[take] = new.center[take[alive]], new.spread[take[alive]]
    constant = alive & ~old.varying
    center[constant] = new.mean[constant[alive]]
    return Scaling(center, spread, mean)


def scale_change(buffer: Buffer, model: WindowModel, config: WindowConfig) -> float:
    """Return how far means and deviations are from those in use; up to 1 is acceptable."""
    old, new = model.columns.scaling, measure_again(buffer, model, config)
    v = old.varying
    if not config.scale or not v.any():
        return 0.0
    shift = np.abs(new.center - old.center)[v] / (config.max_shift * old.spread[v])
    ratio = new.spread[v] / old.spread[v]
    return float(np.max([shift, ratio / config.max_stretch, 1 / (config.max_stretch * ratio)]))
