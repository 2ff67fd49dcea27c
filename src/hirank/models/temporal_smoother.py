"""A smoother for rows in order of time: neighbors in time and other features impute a gap together.

From one row to the next all features change a little, and they change together. The model is a
random walk of whole samples: the change over a time h is normal with covariance h Q, Q is m x m.
With a diagonal Q its best estimate is the straight line between the ends of a gap; with the other
entries of Q, a missing feature moves when observed ones move. Two more terms limit it in long gaps:
rows stay near their mean as rows do (covariance C), and another completion of the table, the fill,
is a noisy measurement of every missing entry (variance s_j).
The completed table minimizes

    sum_t (x_t+1 - x_t)' Q^-1 (x_t+1 - x_t) / h_t + LEVEL sum_t (x_t - mean)' C^-1 (x_t - mean)
        + sum over missing (x_tj - fill_tj)^2 / s_j,

a quadratic with a sparse structure: time and memory are linear in the number of rows.

Inside, arrays are m x n, so that a feature's series is contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve_banded, cholesky_banded

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.masking import MaskingConfig
from hirank.models.gaps import check_times, interpolate
from hirank.models.mixture import check_covariance


@dataclass(frozen=True)
class SmootherConfig:
    """Constants of smoothing in time; measured in docs/notes/temporal.md."""

    level: float = 0.1  # weight of the distance to the mean; rows are alike, so each counts in part
    n_sweeps: int = 12  # of stochastic EM
    averaged_from: int = 4  # sweep from which covariances are averaged
    max_rows: int = 8000  # to fit to
    stretch: int = 500  # rows of the stretches that they are taken in
    min_change: float = 1e-5  # added to the diagonal of Q, in units of its mean
    min_spread: float = 1e-2  # added to the diagonal of C, in units of its mean
    shrinkage: float = 1 / 3  # part of oracle approximating shrinkage that is applied to Q
    min_error: float = 1e-8  # variance of the error of a fill, in units of the variance of rows
    # Weights of the fill that are compared. Its errors last for many rows: 1 is often too much.
    trust: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    max_relative_loss: float = 1.2  # times the lowest one: no larger weight is compared
    prior_entries: int = 20  # of a feature at which its own error counts as much as that of all
    tol: float = 3e-3  # relative error at which conjugate gradients end, for imputed values
    rough_tol: float = 0.1  # the same for fitting
    max_steps: int = 300  # of conjugate gradients


DEFAULTS = SmootherConfig()


@dataclass(frozen=True)
class TemporalSmoother:
    """How rows change with time, and how accurate another completion, the fill, is.

    Attributes
    ----------
    mean : m
    spread : m x m
        Covariance of samples.
    change : m x m
        Covariance of changes in one unit of time.
    unit : float
        The usual time between rows.
    fill_variance : m
        Variance at which a fill counts, feature by feature; infinite: not at all.
    """

    mean: Annotated[Array, Shape("m")]
    spread: Annotated[Array, Shape("m m")]
    change: Annotated[Array, Shape("m m")]
    unit: float
    fill_variance: Annotated[Array, Shape("m", finite=False)]

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not self.unit > 0 or not (self.fill_variance > 0).all():
            raise ValueError("unit and fill_variance must be positive")
        check_covariance(self.spread)
        check_covariance(self.change)

    def combine(
        self,
        X: Array,
        observed: BoolArray,
        times: ArrayLike | None = None,
        fill: Array | None = None,
        config: SmootherConfig = DEFAULTS,
    ) -> Array:
        """Impute the missing entries of a table in order of time, n x m.

        Parameters
        ----------
        X : n x m
            Values at missing entries are not used.
        observed : bool array, n x m
        times : n, optional
            Increasing; by default rows are evenly spaced.
        fill : n x m, optional
            Another completion; NaN where it has no value.
        config : SmootherConfig

        Returns
        -------
        completed : n x m
            Observed entries as they are.
        """
        times = check_times(times, len(X))
        if observed.all():
            return np.array(X, dtype=np.float64)
        rates = self.unit / np.diff(times)
        missing = ~observed.T
        goal, weight = np.zeros(missing.shape), np.zeros(missing.shape)
        if fill is not None:
            known = missing & np.isfinite(fill.T)
            goal = np.where(known, fill.T - self.mean[:, None], 0)
            weight = np.where(known, 1 / self.fill_variance[:, None], 0)
        start = interpolate(X - self.mean, observed, times).T
        precisions = _precisions(self.change, self.spread, config)
        problem = _Problem(missing, rates, *precisions, weight)
        completed = problem.solve(start, weight * goal, config.tol, config.max_steps).T + self.mean
        return np.where(observed, X, completed)


def fit_smoother(
    X: Array,
    observed: BoolArray,
    held_out: BoolArray,
    times: ArrayLike | None,
    fill: Array,
    rng: np.random.Generator,
    config: SmootherConfig = DEFAULTS,
) -> TemporalSmoother:
    """Fit how rows change with time, and from held-out entries how accurate the fill is.

    Parameters
    ----------
    X : n x m
        Values at missing entries are not used.
    observed : bool array, n x m
        The held-out entries included.
    held_out : bool array, n x m
        Observed entries that `fill` does not depend on. With fewer than 50 of them a fill counts
        as if it were no better than the mean, so it matters only far from neighbors in time.
    times : n, optional
        Increasing; None for evenly spaced rows.
    fill : n x m
        Another completion.
    rng : Generator
    config : SmootherConfig

    Returns
    -------
    smoother : TemporalSmoother
        Its ``combine`` imputes this table or others.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.temporal_smoother import fit_smoother
    >>> rng = np.random.default_rng(0)
    >>> walk = rng.normal(size=(300, 2)).cumsum(axis=0)
    >>> X = np.column_stack([walk, walk.sum(axis=1)])
    >>> observed = rng.random(X.shape) < 0.7
    >>> nothing = np.zeros_like(observed)
    >>> smoother = fit_smoother(X, observed, nothing, None, np.zeros_like(X), rng)
    >>> completed = smoother.combine(X, observed)
    >>> bool(np.abs(completed - X).max() < 3)
    True
    """
    blind = fit_changes(X, observed & ~held_out, times, rng, config)
    trusted = fit_fill_variance(blind, X, observed, held_out, times, fill, config)
    smoother = fit_changes(X, observed, times, rng, config) if held_out.any() else blind
    return replace(smoother, fill_variance=trusted.fill_variance)


def fit_changes(
    X: Array,
    observed: BoolArray,
    times: ArrayLike | None,
    rng: np.random.Generator,
    config: SmootherConfig = DEFAULTS,
) -> TemporalSmoother:
    """Fit how rows change with time; no fill is used yet.

    Imputed tables have smoother changes than true ones. So the table is not imputed but drawn from
    the current model; the covariances of the draws, averaged, are the next model (stochastic EM).
    A draw takes one solution with noise on the right-hand side.
    """
    times = check_times(times, len(X))
    unit = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    mean = np.array([x[o].mean() if o.any() else 0.0 for x, o in zip(X.T, observed.T, strict=True)])
    centered = np.where(observed, X - mean, 0)
    start = interpolate(centered, observed, times).T
    rates = unit / np.diff(times)
    rows = _stretches(len(X), config)
    rates = np.where(np.diff(rows) == 1, rates[rows[:-1]], 0)  # nothing links two stretches
    start, missing = np.ascontiguousarray(start[:, rows]), ~observed[rows].T
    known = float((~missing).sum() / len(missing))  # changes from one observed entry to the next
    change = _shrink(_changes(start, rates), known, config.shrinkage, least=0.5)
    spread = start @ start.T / start.shape[1]
    for sweep in range(config.n_sweeps):
        problem = _Problem(missing, rates, *_precisions(change, spread, config))
        drawn = problem.solve(start, problem.noise(rng), config.rough_tol, config.max_steps)
        averaged = sweep - config.averaged_from
        new = 1.0 if averaged < 0 else (averaged + 2) ** -0.3
        change = (1 - new) * change + new * _shrink(_changes(drawn, rates), known, config.shrinkage)
        spread = (1 - new) * spread + new * (drawn @ drawn.T / drawn.shape[1])
        if not missing.any():
            break
    return TemporalSmoother(mean, spread, change, unit, np.full(len(mean), np.inf))


def fit_fill_variance(
    smoother: TemporalSmoother,
    X: Array,
    observed: BoolArray,
    held_out: BoolArray,
    times: ArrayLike | None,
    fill: Array,
    config: SmootherConfig = DEFAULTS,
) -> TemporalSmoother:
    """Fit the variance of a fill on held-out entries that it does not depend on.

    The errors of the fill at the held-out entries of a feature give its variance relative to the
    other features; its weight relative to neighbors in time is compared. If in doubt, it is
    trusted less: it may be far off in gaps where nothing was held out, which neighbors in time
    hardly are.
    """
    held_out = held_out & observed & np.isfinite(fill)
    if held_out.sum() < MaskingConfig.min_masked:
        ridged = _add_ridge(smoother.spread, config.min_spread)
        return replace(smoother, fill_variance=ridged.diagonal().copy())
    squares = np.where(held_out, X - fill, 0) ** 2
    counts = held_out.sum(axis=0)
    prior = config.prior_entries
    error = (squares.sum(axis=0) + prior * squares.sum() / counts.sum()) / (counts + prior)
    error = np.maximum(error, config.min_error * _add_ridge(smoother.spread, 0).diagonal().mean())
    gap = _number_gaps(held_out)
    smoothers: list[TemporalSmoother] = []
    losses: list[Array] = []  # of each held-out gap
    for trust in config.trust:
        with np.errstate(divide="ignore"):
            smoothers.append(replace(smoother, fill_variance=error / trust))
        completed = smoothers[-1].combine(X, observed & ~held_out, times, fill, config)
        squares = (completed - X).T[held_out.T] ** 2
        losses.append(np.bincount(gap, squares).astype(np.float64))
        if losses[-1].sum() > config.max_relative_loss * min(loss.sum() for loss in losses):
            break
    return smoothers[_first_within_error(losses)]


def _first_within_error(losses: list[Array]) -> int:
    """Return the first whose loss is within one standard error of the lowest.

    Errors within a gap are correlated, so the gaps are the independent units.
    """
    lowest = min(losses, key=np.sum)
    for number, loss in enumerate(losses):
        excess = loss - lowest
        if excess.sum() <= np.sqrt(np.square(excess - excess.mean()).sum()):
            return number
    return len(losses) - 1


def _number_gaps(held_out: BoolArray) -> IntArray:
    """Return the number of the gap that each held-out entry lies in, feature by feature."""
    entries = np.pad(held_out.T, ((0, 0), (1, 0)))
    begins = entries[:, 1:] & ~entries[:, :-1]
    number: IntArray = np.cumsum(begins).reshape(begins.shape)[held_out.T] - 1
    return number


class _Problem:
    """The quadratic of a table with given missing entries, m x n."""

    def __init__(
        self,
        missing: BoolArray,
        rates: Array,
        of_changes: Array,
        of_levels: Array,
        weight: Array | float = 0.0,
    ) -> None:
        self.missing, self.rates, self.weight = missing, rates, weight
        self.of_changes, self.of_levels = of_changes, of_levels
        links = np.zeros(missing.shape[1])
        links[:-1] += rates
        links[1:] += rates
        # Each feature alone is a tridiagonal system, whose exact solution is the preconditioner.
        own = of_changes.diagonal()[:, None]
        diagonal = links * own + of_levels.diagonal()[:, None] + weight
        band = np.zeros((2, *missing.shape))
        band[1] = np.where(missing, diagonal, 1)
        band[0, :, 1:] = np.where(missing[:, 1:] & missing[:, :-1], -rates * own, 0)
        self.guide = cholesky_banded(band.reshape(2, -1), check_finite=False)

    def product(self, X: Array) -> Array:
        """Return the matrix of the quadratic times X, m x n, at missing entries."""
        out = self.of_changes @ _differences_back(np.diff(X, axis=1) * self.rates)
        out += self.of_levels @ X
        out += self.weight * X
        out *= self.missing
        return out

    def noise(self, rng: np.random.Generator) -> Array:
        """Return a right-hand side, m x n, that makes the solution a draw from the model."""
        m, n = self.missing.shape
        steps = np.linalg.cholesky(self.of_changes) @ rng.standard_normal((m, max(n - 1, 0)))
        levels = np.linalg.cholesky(self.of_levels) @ rng.standard_normal((m, n))
        return _differences_back(steps * np.sqrt(self.rates)) + levels

    def solve(self, start: Array, right: Array, tol: float, max_steps: int) -> Array:
        """Solve by conjugate gradients from `start`, m x n, whose observed entries stay."""
        X = start.copy()
        residual = np.where(self.missing, right, 0) - self.product(X)
        direction, last, first = np.zeros_like(X), np.inf, 0.0
        for step in range(max_steps):
            guided = cho_solve_banded((self.guide, False), residual.ravel(), check_finite=False)
            guided = guided.reshape(X.shape)
            size = float(np.vdot(residual, guided))
            first = first if step else size
            if size <= tol**2 * first:
                break
            direction = guided + size / last * direction
            moved = self.product(direction)
            length = size / float(np.vdot(direction, moved))
            X += length * direction
            residual -= length * moved
            last = size
        return X


def _differences_back(changes: Array) -> Array:
    """Apply the transpose of taking differences along the rows, m x (n - 1) -> m x n."""
    return -np.diff(changes, axis=1, prepend=0, append=0)


def _changes(X: Array, rates: Array) -> Array:
    """Return the covariance of changes in a unit of time, m x m, of X, m x n."""
    steps = np.diff(X, axis=1)
    return (steps * rates) @ steps.T / max(int(np.count_nonzero(rates)), 1)


def _precisions(change: Array, spread: Array, config: SmootherConfig) -> tuple[Array, Array]:
    """Return inverse covariances, with a ridge that keeps them from being singular."""
    of_changes = np.linalg.inv(_add_ridge(change, config.min_change))
    return of_changes, config.level * np.linalg.inv(_add_ridge(spread, config.min_spread))


def _add_ridge(covariance: Array, least: float) -> Array:
    added = least * covariance.diagonal().mean() + np.finfo(np.float64).tiny ** 0.5
    return covariance + added * np.eye(len(covariance))


def _shrink(covariance: Array, count: float, shrinkage: float, least: float = 0.0) -> Array:
    """Shrink correlations that rest on few changes (oracle approximating shrinkage)."""
    m = len(covariance)
    size = np.sqrt(np.maximum(covariance.diagonal(), np.finfo(np.float64).tiny))
    squares = float(np.square(covariance / size / size[:, None]).sum())
    beyond = (count + 1 - 2 / m) * (squares - m)
    part = shrinkage * ((1 - 2 / m) * squares + m**2) / beyond if beyond > 0 else 1.0
    part = min(max(part, least), 1.0)
    return (1 - part) * covariance + part * np.diag(covariance.diagonal())


def _stretches(n: int, config: SmootherConfig) -> IntArray:
    """Return the rows to fit to: all, or stretches from all over the table."""
    length = config.stretch
    if n <= config.max_rows:
        return np.arange(n)
    starts = np.linspace(0, n - length, config.max_rows // length).astype(np.intp)
    return np.unique(starts[:, None] + np.arange(length))
