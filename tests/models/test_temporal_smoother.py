from dataclasses import replace

import numpy as np
import pytest

from hirank.models.gaps import interpolate
from hirank.models.temporal_smoother import (
    SmootherConfig,
    TemporalSmoother,
    _add_ridge,
    fit_changes,
    fit_fill_variance,
    fit_smoother,
)


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


def exact(smoother, X, observed, times, fill):
    """The minimum by dense algebra: every term written out as in the module's docstring."""
    n, m = X.shape
    config = SmootherConfig()
    Q = _add_ridge(smoother.change, config.min_change)
    C = _add_ridge(smoother.spread, config.min_spread)
    H, b = np.zeros((n * m, n * m)), np.zeros(n * m)
    step = np.diff(times) / smoother.unit
    for t in range(n):
        rows = slice(t * m, t * m + m)
        H[rows, rows] += config.level * np.linalg.inv(C)
        b[rows] += config.level * np.linalg.solve(C, smoother.mean)
        H[rows, rows] += np.diag(~observed[t] / smoother.fill_variance)
        b[rows] += np.where(observed[t], 0, fill[t] / smoother.fill_variance)
        if t:
            both = slice(t * m - m, t * m + m)
            H[both, both] += np.kron([[1, -1], [-1, 1]], np.linalg.inv(Q) / step[t - 1])
    x, free = X.ravel().copy(), ~observed.ravel()
    x[free] = np.linalg.solve(H[np.ix_(free, free)], b[free] - H[np.ix_(free, ~free)] @ x[~free])
    return x.reshape(n, m)


def test_conjugate_gradients_find_the_minimum(rng):
    X, fill = rng.normal(size=(2, 25, 4))
    observed = rng.random(X.shape) < 0.4
    root = rng.normal(size=(2, 4, 6))
    smoother = TemporalSmoother(
        rng.normal(size=4), root[0] @ root[0].T, root[1] @ root[1].T, 0.7, rng.uniform(0.1, 2, 4)
    )
    times = np.cumsum(rng.exponential(size=25) + 0.01)
    found = smoother.combine(X, observed, times, fill, SmootherConfig(tol=1e-10))
    np.testing.assert_allclose(found, exact(smoother, X, observed, times, fill), atol=1e-7)


def test_unrelated_features_are_interpolated_in_uneven_time(rng):
    config = SmootherConfig(level=1e-12, tol=1e-10)
    times = np.cumsum(rng.exponential(size=80) + 0.01)
    X = rng.normal(size=(80, 3))
    observed = rng.random(X.shape) < 0.5
    smoother = TemporalSmoother(
        np.zeros(3), np.eye(3), np.diag([1.0, 2, 3]), 1.0, np.full(3, np.inf)
    )
    filled = smoother.combine(X, observed, times, config=config)
    np.testing.assert_allclose(filled, interpolate(X, observed, times), atol=1e-6)


def test_features_that_change_together_are_imputed_from_each_other(series, rng):
    truth, observed, _, times = series
    smoother = fit_changes(truth, observed, times, rng)
    filled = smoother.combine(truth, observed, times)
    line = interpolate(truth, observed, times)
    assert error(filled, truth, ~observed) < 0.3 * error(line, truth, ~observed)


def test_changes_are_measured_without_bias_by_gaps(rng):
    steps = rng.normal(size=(4000, 3)) @ np.array([[1, 0.9, 0], [0, 0.4, 0], [0, 0, 2]])
    X = np.cumsum(steps, axis=0)
    observed = rng.random(X.shape) < 0.5
    change = fit_changes(X, observed, None, rng).change
    np.testing.assert_allclose(change, np.cov(steps.T), rtol=0.1, atol=0.1)


def test_unrelated_random_walks_are_imputed_from_neighbors_in_time(rng):
    truth = np.cumsum(rng.normal(size=(800, 6)), axis=0)
    truth /= truth.std(axis=0)
    observed = rng.random(truth.shape) < 0.6
    held_out = observed & (rng.random(truth.shape) < 0.1)
    fill = rng.normal(size=truth.shape)  # knows nothing
    smoother = fit_smoother(truth, observed, held_out, None, fill, rng)
    filled = smoother.combine(truth, observed, None, fill)
    line = interpolate(truth, observed)
    assert error(filled, truth, ~observed) < 1.05 * error(line, truth, ~observed)


def test_white_noise_is_imputed_by_the_fill(rng):
    truth = rng.normal(size=(800, 2)) @ rng.normal(size=(2, 6))
    truth = np.tanh(truth / truth.std(axis=0))
    observed = rng.random(truth.shape) < 0.6
    held_out = observed & (rng.random(truth.shape) < 0.1)
    fill = truth + 0.05 * rng.normal(size=truth.shape)
    smoother = fit_smoother(truth, observed, held_out, None, fill, rng)
    filled = smoother.combine(truth, observed, None, fill)
    assert error(filled, truth, ~observed) < 1.1 * error(fill, truth, ~observed)
    assert error(filled, fill, ~observed) < 0.1


def test_fill_and_neighbors_together_are_better_than_each(series, rng):
    truth, observed, held_out, times = series
    fill = truth + 0.01 * rng.normal(size=truth.shape)
    smoother = fit_smoother(truth, observed, held_out, times, fill, rng)
    both = error(smoother.combine(truth, observed, times, fill), truth, ~observed)
    alone = error(smoother.combine(truth, observed, times), truth, ~observed)
    assert both < 0.95 * alone
    assert both < 0.95 * error(fill, truth, ~observed)


def test_a_fill_without_error_is_kept(series, rng):
    truth, observed, held_out, times = series
    noise = rng.normal(size=truth.shape)
    smoother = fit_smoother(noise, observed, held_out, times, noise, rng)
    filled = smoother.combine(noise, observed, times, noise)
    np.testing.assert_allclose(filled, noise, atol=1e-3)


def test_true_values_of_missing_entries_are_never_used(series):
    truth, observed, held_out, times = series
    fill = np.where(observed, truth, 0) * 0.9
    results = []
    for wrong in (np.nan, 1e6):
        X = np.where(observed, truth, wrong)
        smoother = fit_smoother(X, observed, held_out, times, fill, np.random.default_rng(0))
        results.append(smoother.combine(X, observed, times, fill))
    np.testing.assert_array_equal(*results)
    assert np.isfinite(results[0]).all()


def test_held_out_entries_are_used_for_changes_once_the_fill_variance_is_known(series, rng):
    truth, observed, _, times = series
    held_out = observed & (rng.random(truth.shape) < 0.5)
    fill = np.zeros_like(truth)
    blind = fit_changes(truth, observed & ~held_out, times, np.random.default_rng(0))
    smoother = fit_smoother(truth, observed, held_out, times, fill, np.random.default_rng(0))
    expected = fit_fill_variance(blind, truth, observed, held_out, times, fill).fill_variance
    np.testing.assert_array_equal(smoother.fill_variance, expected)
    np.testing.assert_allclose(smoother.mean, np.nanmean(np.where(observed, truth, np.nan), axis=0))


def test_observed_entries_come_back_bit_for_bit(series, rng):
    truth, observed, held_out, times = series
    smoother = fit_smoother(truth, observed, held_out, times, np.zeros_like(truth), rng)
    filled = smoother.combine(truth, observed, times, np.zeros_like(truth))
    np.testing.assert_array_equal(filled[observed], truth[observed])
    np.testing.assert_array_equal(smoother.combine(truth, np.ones_like(observed), times), truth)


def test_permuted_features_give_the_permuted_result(series):
    truth, observed, _, times = series
    smoother = fit_changes(truth, observed, times, np.random.default_rng(0))
    smoother = replace(smoother, fill_variance=np.linspace(0.1, 1, 8))
    order = np.random.default_rng(1).permutation(8)
    moved = TemporalSmoother(
        smoother.mean[order],
        smoother.spread[np.ix_(order, order)],
        smoother.change[np.ix_(order, order)],
        smoother.unit,
        smoother.fill_variance[order],
    )
    fill = np.tanh(truth)
    a = smoother.combine(truth, observed, times, fill)[:, order]
    b = moved.combine(truth[:, order], observed[:, order], times, fill[:, order])
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_unit_of_time_does_not_matter(series):
    truth, observed, held_out, times = series
    a, b = (
        fit_smoother(
            truth, observed, held_out, t, np.tanh(truth), np.random.default_rng(0)
        ).combine(truth, observed, t, np.tanh(truth))
        for t in (times, 3600 * times + 1e6)
    )
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_with_few_held_out_entries_the_fill_counts_little(series, rng):
    truth, observed, _, times = series
    smoother = fit_changes(truth, observed, times, rng)
    few = np.zeros_like(observed)
    smoother = fit_fill_variance(smoother, truth, observed, few, times, truth)
    assert (smoother.fill_variance > 0).all()
    assert np.isfinite(smoother.fill_variance).all()
    filled = smoother.combine(truth, observed, times, np.zeros_like(truth))
    assert error(filled, truth, ~observed) < error(np.zeros_like(truth), truth, ~observed)


def test_a_fill_may_have_missing_values(series, rng):
    truth, observed, held_out, times = series
    smoother = fit_smoother(truth, observed, held_out, times, truth + 0.01, rng)
    nothing = np.full_like(truth, np.nan)
    np.testing.assert_array_equal(
        smoother.combine(truth, observed, times, nothing),
        replace(smoother, fill_variance=np.full(8, np.inf)).combine(truth, observed, times, truth),
    )


def test_tables_of_other_lengths_are_imputed(series, rng):
    truth, observed, _, times = series
    smoother = fit_changes(truth[:400], observed[:400], times[:400], rng)
    filled = smoother.combine(truth[400:], observed[400:], times[400:])
    line = interpolate(truth[400:], observed[400:], times[400:])
    missing = ~observed[400:]
    assert error(filled, truth[400:], missing) < 0.4 * error(line, truth[400:], missing)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (30, 1), (5, 40)])
def test_tables_of_few_rows_or_columns_are_imputed(shape, rng):
    X = rng.normal(size=shape)
    observed = rng.random(shape) < 0.6
    observed[0, 0] = False
    nothing = np.zeros_like(observed)
    smoother = fit_smoother(X, observed, nothing, None, np.zeros(shape), rng)
    filled = smoother.combine(X, observed, None, np.zeros(shape))
    assert np.isfinite(filled).all()


def test_long_tables_are_fitted_on_stretches(rng):
    config = SmootherConfig(max_rows=500, stretch=50)
    steps = rng.normal(size=(3000, 2)) @ np.array([[1, 0.9], [0, 0.4]])
    X = np.cumsum(steps, axis=0)
    change = fit_changes(X, np.ones(X.shape, bool), None, rng, config).change
    np.testing.assert_allclose(change, np.cov(steps.T), rtol=0.25)
