"""The fit of dynamics to a table with missing entries, by stochastic expectation-maximization.

Imputed tables are smoother than true ones. So the table is not imputed but drawn from the current
model; what is estimated from the draws, averaged, is the next model (docs/notes/temporal.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.models.dynamics import MAX_DAMPING, Dynamics, Operator
from hirank.models.smoothing import Quadratic
from hirank.models.timeline import Steps, Timeline, shift


class Kind(Enum):
    """What is fitted beside the covariances."""

    WALK = "random walk"  # nothing
    SMOOTH = "integrated random walk"  # nothing: steps persist
    COUPLED = "coupled"  # damping and coupling


@dataclass(frozen=True)
class DynamicsConfig:
    """Constants of the fit; measured in docs/notes/temporal.md."""

    n_sweeps: int = 20
    averaged_from: int = 4  # sweep from which estimates are averaged,
    fading: float = 0.7  # the k-th of them with a weight of k ** -fading
    coupled_from: int = 2  # sweep from which coupling is fitted
    ridge: float = 3.0  # of coupling, times the features over the observed rows
    max_rows: int = 8000  # to fit to
    max_size: float = 2e7  # of rows times squared features, to fit to
    stretch: int = 500  # rows of the stretches that they are taken in
    shrinkage: float = 1 / 3  # part of oracle approximating shrinkage that is applied to Q
    tol: float = 0.1  # relative error at which conjugate gradients end
    max_steps: int = 60  # of conjugate gradients


def fit_dynamics(
    kind: Kind,
    level: float,
    start: Array,
    observed: BoolArray,
    timeline: Timeline,
    rng: np.random.Generator,
    config: DynamicsConfig,
) -> Dynamics:
    """Fit dynamics to a table in order of time.

    Parameters
    ----------
    kind : Kind
    level : float
        Weight of the distance to the mean.
    start : m x n
        Deviations from the mean, interpolated.
    observed : bool array, m x n
    timeline : Timeline
        In order.
    rng : Generator
    config : DynamicsConfig
    """
    m, n = start.shape
    rows = _rows(n, m, config)
    steps = timeline.stretches(rows).steps(timeline.unit)
    start, missing = np.ascontiguousarray(start[:, rows]), ~observed[:, rows]
    known = float((~missing).sum() / m)  # changes from one observed entry to the next
    damping = np.full(m, MAX_DAMPING if kind is Kind.SMOOTH else 0.0)
    new = Dynamics(damping, np.zeros((m, 0)), np.zeros((m, m)), _covariance(start), level)
    new = replace(new, noise=_noise(new, start, steps, known, config.shrinkage, least=0.5))
    dynamics = new
    for sweep in range(config.n_sweeps):
        quadratic = Quadratic(missing, dynamics, steps)
        drawn = quadratic.solve(start, quadratic.noise(rng), config.tol, config.max_steps)
        if kind is Kind.COUPLED:
            new = _couple(new, drawn, steps, known, config, alone=sweep < config.coupled_from)
        noise = _noise(new, drawn, steps, known, config.shrinkage)
        new = replace(new, noise=noise, spread=_covariance(drawn))
        averaged = sweep - config.averaged_from
        share = 1.0 if averaged < 0 else (averaged + 2) ** -config.fading
        dynamics = _average(dynamics, new, share)
        if not missing.any() and kind is not Kind.COUPLED:
            break
    return dynamics


def _couple(
    dynamics: Dynamics,
    X: Array,
    steps: Steps,
    known: float,
    config: DynamicsConfig,
    *,
    alone: bool,
) -> Dynamics:
    """Estimate damping, and coupling unless features stand alone, from rows, m x n."""
    m, used = len(X), steps.typical if steps.typical.any() else steps.twice
    speed = (X - shift(X)) / steps.length
    now, last, level = speed[:, used], shift(speed)[:, used], shift(X)[:, used]
    tiny = np.finfo(np.float64).tiny
    damping = np.sum(now * last, axis=1) / np.maximum(np.sum(last**2, axis=1), tiny)
    damping = np.clip(np.nan_to_num(damping), 0, MAX_DAMPING)
    if alone or not used.any():
        return replace(dynamics, damping=damping)
    causes = np.vstack([level, last])
    size = np.sqrt(np.mean(causes**2, axis=1)) + tiny**0.5
    causes = causes / size[:, None]
    ridge = config.ridge * causes.shape[1] * m / max(known, 1)
    left = now - damping[:, None] * last
    moments = causes @ causes.T
    moments[np.diag_indices(2 * m)] += ridge
    coupling = np.linalg.solve(moments, causes @ left.T).T / size
    return replace(dynamics, damping=damping, coupling=coupling)


def _noise(
    dynamics: Dynamics,
    X: Array,
    steps: Steps,
    known: float,
    shrinkage: float,
    least: float = 0.0,
) -> Array:
    """Return the covariance of what dynamics leave unexplained of rows, m x n, shrunk."""
    operator = Operator(dynamics.damping, dynamics.coupling, steps)
    e = operator.residuals(X)
    return _shrink(e @ e.T / max(operator.count, 1), known, shrinkage, least)


def _average(old: Dynamics, new: Dynamics, share: float) -> Dynamics:
    if share == 1 or old.coupling.shape != new.coupling.shape:
        return new
    parts = ("damping", "coupling", "noise", "spread")
    mixed = {p: (1 - share) * getattr(old, p) + share * getattr(new, p) for p in parts}
    return replace(new, **mixed)


def _covariance(X: Array) -> Array:
    return X @ X.T / X.shape[1]


def _shrink(covariance: Array, count: float, shrinkage: float, least: float) -> Array:
    """Shrink correlations that rest on few changes (oracle approximating shrinkage)."""
    m = len(covariance)
    size = np.sqrt(np.maximum(covariance.diagonal(), np.finfo(np.float64).tiny))
    squares = float(np.square(covariance / size / size[:, None]).sum())
    beyond = (count + 1 - 2 / m) * (squares - m)
    part = shrinkage * ((1 - 2 / m) * squares + m**2) / beyond if beyond > 0 else 1.0
    part = min(max(part, least), 1.0)
    return (1 - part) * covariance + part * np.diag(covariance.diagonal())


def _rows(n: int, m: int, config: DynamicsConfig) -> IntArray:
    """Return the rows to fit to: all, or stretches from all over the table."""
    length = config.stretch
    most = int(min(config.max_rows, max(config.max_size / m**2, 2 * length)))
    if n <= most:
        return np.arange(n)
    starts = np.linspace(0, n - length, most // length).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(length))
