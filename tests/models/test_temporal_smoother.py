from dataclasses import replace

import numpy as np
import pytest

from hirank.models.dynamics import Dynamics, Operator
from hirank.models.fit_dynamics import DynamicsConfig
from hirank.models.fit_smoother import SmootherFitConfig, fit_smoother
from hirank.models.gaps import interpolate
from hirank.models.smoothing import MIN_NOISE, MIN_SPREAD, add_ridge
from hirank.models.temporal_smoother import Smoother, SmootherConfig, TemporalSmoother
from hirank.models.time_mix import MixConfig
from hirank.models.timeline import Timeline

N_CLASSES = len(MixConfig.edges) + 1
QUICK = SmootherFitConfig(dynamics=DynamicsConfig(n_sweeps=5), max_folds=1)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def error(filled, truth, entries):
    return float(np.sqrt(np.mean((filled - truth)[entries] ** 2)))


@pytest.fixture
def series(rng):
    """Eight features that follow three random walks: truth, observed, held_out, times."""
    steps = rng.exponential(1, size=600) + 0.05
    paths = np.cumsum(rng.normal(size=(600, 3)) * np.sqrt(steps)[:, None], axis=0)
    truth = paths @ rng.normal(size=(3, 8))
    truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    observed = rng.random(truth.shape) < 0.6
    held_out = observed & (rng.random(truth.shape) < 0.05)
    return truth, observed, held_out, np.cumsum(steps)


def walk(noise, spread, level=0.1):
    m = len(noise)
    return Dynamics(np.zeros(m), np.zeros((m, 0)), noise, spread, level)


def alone(mean, unit, smoother):
    """A smoother with one model of change."""
    return TemporalSmoother(mean, unit, (smoother,), np.ones((N_CLASSES, len(mean), 1)))


def exact(smoother, X, observed, timeline, fill):
    """The minimum by dense algebra: every term written out as in the docstring of `smoothing`."""
    (one,), (n, m) = smoother.smoothers, X.shape
    dynamics = one.dynamics
    of_noise = np.linalg.inv(add_ridge(dynamics.noise, MIN_NOISE))
    of_level = dynamics.level * np.linalg.inv(add_ridge(dynamics.spread, MIN_SPREAD))
    operator = Operator(dynamics.damping, dynamics.coupling, timeline.steps(smoother.unit))
    unit_rows = np.eye(n * m).reshape(n * m, n, m)
    L = np.stack([operator.residuals(rows.T).T.ravel() for rows in unit_rows], axis=1)
    weight = np.where(observed, 0, 1 / one.fill_variance)
    H = L.T @ np.kron(np.eye(n), of_noise) @ L + np.kron(np.eye(n), of_level)
    H += np.diag(weight.ravel())
    b = (weight * (fill - smoother.mean)).ravel()
    x, free = (X - smoother.mean).ravel(), ~observed.ravel()
    x[free] = np.linalg.solve(H[np.ix_(free, free)], b[free] - H[np.ix_(free, ~free)] @ x[~free])
    return x.reshape(n, m) + smoother.mean


@pytest.mark.parametrize("coupled", [False, True])
def test_conjugate_gradients_find_the_minimum(coupled, rng):
    X, fill = rng.normal(size=(2, 25, 4))
    observed = rng.random(X.shape) < 0.4
    root = rng.normal(size=(2, 4, 6))
    dynamics = walk(root[0] @ root[0].T, root[1] @ root[1].T)
    if coupled:
        coupling = rng.normal(size=(4, 8)) / 10
        dynamics = replace(dynamics, damping=rng.uniform(0, 0.9, 4), coupling=coupling)
    smoother = alone(rng.normal(size=4), 0.7, Smoother(dynamics, rng.uniform(0.1, 2, 4)))
    times = np.cumsum(rng.exponential(size=25) + 0.1)
    timeline = Timeline(times, np.repeat([0, 1], [15, 10]))

    found = smoother.combine(X, observed, timeline, fill, SmootherConfig(tol=1e-10))

    expected = exact(smoother, X, observed, timeline, fill)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_unrelated_features_are_interpolated_in_uneven_time(rng):
    times = np.cumsum(rng.exponential(size=80) + 0.2)
    X = rng.normal(size=(80, 3))
    observed = rng.random(X.shape) < 0.5
    dynamics = walk(np.diag([1.0, 2, 3]), np.eye(3), level=1e-12)
    smoother = alone(np.zeros(3), 1.0, Smoother.alone(dynamics))

    filled = smoother.combine(X, observed, times, config=SmootherConfig(tol=1e-10))

    np.testing.assert_allclose(filled, interpolate(X, observed, times), atol=1e-6)


def test_models_are_mixed_by_feature_and_distance(rng):
    X = rng.normal(size=(40, 2))
    observed = np.ones(X.shape, bool)
    observed[10:20] = False
    spreads = (np.eye(2), 1e-4 * np.eye(2))  # the second stays at the mean
    smoothers = tuple(Smoother.alone(walk(np.eye(2), spread, level=1.0)) for spread in spreads)
    weights = np.zeros((N_CLASSES, 2, 2))
    weights[:, 0, 0] = weights[:2, 1, 0] = weights[2:, 1, 1] = 1  # near: the first one

    mixed = TemporalSmoother(np.zeros(2), 1.0, smoothers, weights).combine(X, observed)

    first, second = (alone(np.zeros(2), 1.0, one).combine(X, observed) for one in smoothers)
    np.testing.assert_allclose(mixed[:, 0], first[:, 0])
    near = np.r_[10:12, 18:20]
    np.testing.assert_allclose(mixed[near, 1], first[near, 1])
    np.testing.assert_allclose(mixed[12:18, 1], second[12:18, 1])


def test_observed_entries_come_back_bit_for_bit(series, rng):
    truth, observed, held_out, times = series
    smoother = fit_smoother(truth, observed, held_out, times, np.zeros_like(truth), rng, QUICK)
    filled = smoother.combine(truth, observed, times, np.zeros_like(truth))
    np.testing.assert_array_equal(filled[observed], truth[observed])
    np.testing.assert_array_equal(smoother.combine(truth, np.ones_like(observed), times), truth)


def test_a_fill_may_have_missing_values(series, rng):
    truth, observed, held_out, times = series
    smoother = fit_smoother(truth, observed, held_out, times, truth + 0.01, rng, QUICK)
    nothing = np.full_like(truth, np.nan)
    unused = tuple(Smoother.alone(one.dynamics) for one in smoother.smoothers)
    np.testing.assert_array_equal(
        smoother.combine(truth, observed, times, nothing),
        replace(smoother, smoothers=unused).combine(truth, observed, times, truth),
    )


def test_tables_of_other_lengths_are_imputed(series, rng):
    truth, observed, held_out, times = series
    smoother = fit_smoother(
        truth[:400], observed[:400], held_out[:400], times[:400], np.zeros((400, 8)), rng, QUICK
    )
    filled = smoother.combine(truth[400:], observed[400:], times[400:])
    line = interpolate(truth[400:], observed[400:], times[400:])
    missing = ~observed[400:]
    assert error(filled, truth[400:], missing) < 0.4 * error(line, truth[400:], missing)


def test_rows_in_any_order_are_imputed_alike(series, rng):
    truth, observed, held_out, times = series
    fill = np.tanh(truth)
    smoother = fit_smoother(truth, observed, held_out, times, fill, rng, QUICK)
    order = rng.permutation(600)

    moved = smoother.combine_rows(
        truth[order], observed[order], Timeline(times[order]), fill[order]
    )

    np.testing.assert_array_equal(moved, smoother.combine(truth, observed, times, fill)[order])
