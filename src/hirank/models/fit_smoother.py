"""The fit of a smoother: models of change, how far they trust a fill, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.masking import MaskingConfig, mask_gaps
from hirank.core.missingness import columns_missing_together
from hirank.models.dynamics import Dynamics
from hirank.models.fit_dynamics import DynamicsConfig, Kind, fit_dynamics
from hirank.models.gaps import interpolate
from hirank.models.smoothing import MIN_SPREAD, add_ridge
from hirank.models.temporal_smoother import (
    GapTable,
    Smoother,
    SmootherConfig,
    TemporalSmoother,
    Times,
)
from hirank.models.time_mix import distance_classes, mix_weights
from hirank.models.timeline import Timeline


@dataclass(frozen=True)
class SmootherFitConfig:
    """Constants of the fit of a smoother; measured in docs/notes/temporal.md."""

    # Models of change, and the weight of the distance to the mean. Rows are alike, so each of them
    # counts in part. The first model imputes alone where too few entries are held out.
    models: tuple[tuple[Kind, float], ...] = (
        (Kind.WALK, 0.1),
        (Kind.COUPLED, 0.1),
        (Kind.SMOOTH, 0.1),
        (Kind.COUPLED, 0.01),
    )
    # Rows times squared features from which on so many models are fitted, with fewer draws.
    large: float = 1e7
    n_large: int = 2
    large_dynamics: DynamicsConfig = field(
        default_factory=lambda: DynamicsConfig(n_sweeps=10, max_steps=15)
    )
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    smoother: SmootherConfig = field(default_factory=SmootherConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    enough_held_out: int = 600  # with fewer entries, more gaps are held out, without the fill,
    max_folds: int = 5  # so many times at most
    min_error: float = 1e-8  # variance of the error of a fill, in units of the variance of rows
    # Weights of the fill that are compared. Its errors last for many rows: 1 is often too much.
    trust: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    max_relative_loss: float = 1.2  # times the lowest one: no larger weight is compared
    prior_entries: int = 20  # of a feature at which its own error counts as much as that of all
    # Power of the squared distance between fill and model at missing entries over that at held-out
    # ones, by which the error of a fill is multiplied that is less accurate than the model.
    caution: float = 2.0


DEFAULTS = SmootherFitConfig()


class Judged(NamedTuple):
    """Errors of c models at h held-out entries."""

    errors: Array  # h x c
    features: IntArray  # h
    classes: IntArray  # h, of the distance to the nearest observed entry


def fit_smoother(
    X: Array,
    observed: BoolArray,
    held_out: BoolArray,
    times: Times,
    fill: Array,
    rng: np.random.Generator,
    config: SmootherFitConfig = DEFAULTS,
) -> TemporalSmoother:
    """Fit how rows change with time, and from held-out entries the weights of models and fill.

    Parameters
    ----------
    X : n x m
        Values at missing entries are not used.
    observed : bool array, n x m
        The held-out entries included.
    held_out : bool array, n x m
        Observed entries that `fill` does not depend on. With fewer than 50 of them the first model
        imputes alone, and a fill counts as if it were no better than the mean, so it matters only
        far from neighbors in time.
    times : n or Timeline, optional
        Increasing; None for evenly spaced rows.
    fill : n x m
        Another completion.
    rng : Generator
    config : SmootherFitConfig

    Returns
    -------
    smoother : TemporalSmoother
        Its ``combine`` imputes this table or others.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.models.fit_smoother import fit_smoother
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
    if X.size * X.shape[1] >= config.large:
        few = config.models[: config.n_large]
        config = replace(config, models=few, dynamics=config.large_dynamics)
    timeline = Timeline.sorted(times, len(X))
    held_out = held_out & observed & np.isfinite(fill)
    table = _Series(X, observed, timeline, rng, config)
    if held_out.sum() < config.masking.min_masked:
        walk = table.fit_models(observed, np.arange(len(config.models)) == 0)[0]
        variance = add_ridge(walk.spread, MIN_SPREAD).diagonal().copy()
        weights = np.ones((len(config.smoother.mix.edges) + 1, X.shape[1], 1))
        smoothers: tuple[Smoother, ...] = (Smoother(walk, variance),)
    else:
        variances, judged = _judge(table, held_out, fill)
        weights = mix_weights(*judged, X.shape[1], config.smoother.mix)
        used: BoolArray = np.any(weights, axis=(0, 1))
        models = table.fit_models(observed, used)
        smoothers = tuple(
            map(Smoother, models, [v for v, u in zip(variances, used, strict=True) if u])
        )
        weights = weights[..., used]
    return TemporalSmoother(table.means(observed), timeline.unit, smoothers, weights)


class _Series(NamedTuple):
    """A table in order of time, and what every fit to it needs."""

    X: Array  # n x m
    observed: BoolArray  # n x m
    timeline: Timeline
    rng: np.random.Generator
    config: SmootherFitConfig

    def means(self, observed: BoolArray) -> Array:
        """Return the means of some observed entries, m."""
        columns = zip(self.X.T, observed.T, strict=True)
        return np.array([x[seen].mean() if seen.any() else 0.0 for x, seen in columns])

    def fit_models(self, observed: BoolArray, used: BoolArray) -> list[Dynamics]:
        """Fit some of the models of change to some observed entries."""
        centered = np.where(observed, self.X - self.means(observed), 0)
        start = np.ascontiguousarray(interpolate(centered, observed, self.timeline).T)
        seen = np.ascontiguousarray(observed.T)
        return [
            fit_dynamics(kind, level, start, seen, self.timeline, self.rng, self.config.dynamics)
            for (kind, level), needed in zip(self.config.models, used, strict=True)
            if needed
        ]

    def gaps(self, observed: BoolArray, fill: Array | None) -> GapTable:
        """Return the table with some observed entries, and a fill of the others."""
        means = self.means(observed)
        return GapTable(self.X, observed, self.timeline, means, self.timeline.unit, fill)


def _judge(table: _Series, held_out: BoolArray, fill: Array) -> tuple[list[Array], Judged]:
    """Return the variance of the fill for each model, and the errors of the models.

    Further gaps are held out if entries are few; the fill depends on these, so it is not used.
    """
    config, variances, parts = table.config, [], []
    for number, mask in enumerate(_more_gaps(table, held_out)):
        training = table.observed & ~mask
        models = table.fit_models(training, np.ones(len(config.models), bool))
        gaps = table.gaps(training, None if number else fill)
        errors = np.empty((int(mask.sum()), len(models)))
        for model, dynamics in enumerate(models):
            if number:
                imputed = gaps.impute(Smoother.alone(dynamics), config.smoother)
            else:
                variance, imputed = _fit_fill_variance(dynamics, gaps, mask, fill, config)
                variances.append(variance)
            errors[:, model] = (imputed - table.X)[mask]
        unit, mix = table.timeline.unit, config.smoother.mix
        classes = distance_classes(training, table.timeline, unit, mix)[mask]
        parts.append(Judged(errors, np.nonzero(mask)[1], classes))
    return variances, Judged(*map(np.concatenate, zip(*parts, strict=True)))


def _more_gaps(table: _Series, held_out: BoolArray) -> list[BoolArray]:
    """Return the entries that are held out, and further ones if these are few."""
    config, masks = table.config, [held_out]
    groups = columns_missing_together(table.observed, config.masking)
    while sum(map(np.sum, masks)) < config.enough_held_out and len(masks) < config.max_folds:
        more = mask_gaps(table.observed, table.rng, groups=groups, config=config.masking)
        if not more.any():
            break
        masks.append(more)
    return masks


def _fit_fill_variance(
    dynamics: Dynamics, table: GapTable, held_out: BoolArray, fill: Array, config: SmootherFitConfig
) -> tuple[Array, Array]:
    """Fit the variance of a fill on held-out entries; also return the table with that variance.

    The errors of the fill at the held-out entries of a feature give its variance relative to the
    other features; its weight relative to neighbors in time is compared. If in doubt, it is
    trusted less: it may be far off in gaps where nothing was held out, which neighbors in time
    hardly are.
    """
    squares = np.where(held_out, table.X - fill, 0) ** 2
    counts, prior = held_out.sum(axis=0), config.prior_entries
    error = (squares.sum(axis=0) + prior * squares.sum() / counts.sum()) / (counts + prior)
    error = np.maximum(error, config.min_error * add_ridge(dynamics.spread, 0).diagonal().mean())
    error *= _caution(dynamics, table, held_out, fill, config)
    gap = _number_gaps(held_out)
    variances: list[Array] = []
    tables: list[Array] = []
    losses: list[Array] = []  # of each held-out gap
    for trust in config.trust:
        with np.errstate(divide="ignore"):
            variances.append(error / trust)
        tables.append(table.impute(Smoother(dynamics, variances[-1]), config.smoother))
        squares = (tables[-1] - table.X).T[held_out.T] ** 2
        losses.append(np.bincount(gap, squares).astype(np.float64))
        if losses[-1].sum() > config.max_relative_loss * min(loss.sum() for loss in losses):
            break
    best = _first_within_error(losses)
    return variances[best], tables[best]


def _caution(
    dynamics: Dynamics, table: GapTable, held_out: BoolArray, fill: Array, config: SmootherFitConfig
) -> float:
    """Return the factor of the error of a fill that is worse than neighbors in time alone.

    It is above 1 if the two are further apart at missing entries than at held-out ones.
    """
    alone = table.impute(Smoother.alone(dynamics), config.smoother)
    truth, missing = table.X[held_out], ~table.observed & ~held_out & np.isfinite(fill)
    of_fill, of_model = (np.sum((one[held_out] - truth) ** 2) for one in (fill, alone))
    if of_fill <= of_model or not missing.any():
        return 1.0
    apart = np.square(fill - alone)
    return float(max(1.0, apart[missing].mean() / apart[held_out].mean()) ** config.caution)


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
