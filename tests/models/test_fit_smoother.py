from dataclasses import replace

import numpy as np
import pytest

from hirank.models.fit_dynamics import DynamicsConfig, Kind, fit_dynamics
from hirank.models.fit_smoother import SmootherFitConfig, fit_smoother
from hirank.models.gaps import interpolate
from hirank.models.timeline import Timeline

QUICK = SmootherFitConfig(dynamics=DynamicsConfig(n_sweeps=6), max_folds=2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def error(filled, truth, entries):
    return float(np.sqrt(np.mean((filled - truth)[entries] ** 2)))


def fit_walk(X, observed, rng, config=None):
    timeline = Timeline.counted(len(X))
    start = interpolate(np.where(observed, X, 0), observed).T
    return fit_dynamics(
        Kind.WALK, 0.1, start, observed.T, timeline, rng, config or DynamicsConfig()
    )


def impute(truth, observed, fill, rng, times=None):
    """What a smoother imputes that was fitted with a tenth of the entries held out."""
    held_out = observed & (rng.random(truth.shape) < 0.1)
    smoother = fit_smoother(truth, observed, held_out, times, fill, rng, QUICK)
    return smoother.combine(truth, observed, times, fill)


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


def test_changes_are_measured_without_bias_by_gaps(rng):
    steps = rng.normal(size=(4000, 3)) @ np.array([[1, 0.9, 0], [0, 0.4, 0], [0, 0, 2]])
    X = np.cumsum(steps, axis=0)
    observed = rng.random(X.shape) < 0.5

    noise = fit_walk(X, observed, rng).noise

    np.testing.assert_allclose(noise, np.cov(steps.T), rtol=0.1, atol=0.1)


def test_long_tables_are_fitted_on_stretches(rng):
    config = DynamicsConfig(max_rows=500, stretch=50)
    steps = rng.normal(size=(3000, 2)) @ np.array([[1, 0.9], [0, 0.4]])
    X = np.cumsum(steps, axis=0)

    noise = fit_walk(X, np.ones(X.shape, bool), rng, config).noise

    np.testing.assert_allclose(noise, np.cov(steps.T), rtol=0.25)


def test_coupling_is_recovered_from_a_table_with_gaps(rng):
    """The steps of the first feature follow those of the second one."""
    steps, e = np.zeros((3000, 2)), rng.normal(size=(3000, 2))
    for t in range(1, 3000):
        steps[t] = [0.8 * steps[t - 1, 1] + 0.3 * e[t, 0], 0.6 * steps[t - 1, 1] + e[t, 1]]
    X = np.cumsum(steps, axis=0)
    observed = rng.random(X.shape) < 0.8
    timeline, start = Timeline.counted(3000), interpolate(X, observed).T

    found = fit_dynamics(Kind.COUPLED, 0.01, start, observed.T, timeline, rng, DynamicsConfig())

    of_steps = np.diag(found.damping) + found.coupling[:, 2:]
    np.testing.assert_allclose(of_steps, [[0, 0.8], [0, 0.6]], atol=0.1)


def test_features_that_change_together_are_imputed_from_each_other(series, rng):
    truth, observed, _, times = series
    filled = impute(truth, observed, np.zeros_like(truth), rng, times)
    line = interpolate(truth, observed, times)
    assert error(filled, truth, ~observed) < 0.3 * error(line, truth, ~observed)


def test_smooth_series_are_imputed_better_than_by_a_random_walk(rng):
    """Sums of three sine waves, each seen by four features, in gaps of 10 rows."""
    t = np.arange(600)[:, None]
    truth = np.sin(t * [0.05, 0.083, 0.131] + rng.uniform(0, 6, 3)) @ rng.normal(size=(3, 4))
    observed = np.ones(truth.shape, bool)
    for start in range(0, 560, 40):
        for feature in range(4):
            begin = start + int(rng.integers(25))
            observed[begin : begin + 10, feature] = False
    held_out = np.zeros_like(observed)
    for feature in range(4):
        held_out[150 * feature + 20 : 150 * feature + 30, feature] = True
        held_out[150 * feature + 60 : 150 * feature + 70, feature] = True
    held_out &= observed
    fill, config = np.zeros_like(truth), QUICK
    walk = replace(config, models=config.models[:1])

    errors = [
        error(
            fit_smoother(
                truth, observed, held_out, None, fill, np.random.default_rng(0), one
            ).combine(truth, observed, None, fill),
            truth,
            ~observed,
        )
        for one in (config, walk)
    ]

    # 0.06 over five seeds; the bound leaves room for rounding.
    assert errors[0] < 0.3 * errors[1]


def test_unrelated_random_walks_are_imputed_from_neighbors_in_time(rng):
    truth = np.cumsum(rng.normal(size=(800, 6)), axis=0)
    truth /= truth.std(axis=0)
    observed = rng.random(truth.shape) < 0.6
    held_out = observed & (rng.random(truth.shape) < 0.1)
    fill = rng.normal(size=truth.shape)  # knows nothing
    smoother = fit_smoother(truth, observed, held_out, None, fill, rng, QUICK)
    filled = smoother.combine(truth, observed, None, fill)
    line = interpolate(truth, observed)
    assert error(filled, truth, ~observed) < 1.05 * error(line, truth, ~observed)


def test_white_noise_is_imputed_by_the_fill(rng):
    truth = rng.normal(size=(800, 2)) @ rng.normal(size=(2, 6))
    truth = np.tanh(truth / truth.std(axis=0))
    observed = rng.random(truth.shape) < 0.6
    held_out = observed & (rng.random(truth.shape) < 0.1)
    fill = truth + 0.05 * rng.normal(size=truth.shape)
    smoother = fit_smoother(truth, observed, held_out, None, fill, rng, QUICK)
    filled = smoother.combine(truth, observed, None, fill)
    assert error(filled, truth, ~observed) < 1.1 * error(fill, truth, ~observed)
    assert error(filled, fill, ~observed) < 0.1


def test_fill_and_neighbors_together_are_better_than_each(series, rng):
    truth, observed, held_out, times = series
    fill = truth + 0.01 * rng.normal(size=truth.shape)
    smoother = fit_smoother(truth, observed, held_out, times, fill, rng, QUICK)
    both = error(smoother.combine(truth, observed, times, fill), truth, ~observed)
    alone = error(smoother.combine(truth, observed, times), truth, ~observed)
    assert both < 0.95 * alone
    assert both < 0.95 * error(fill, truth, ~observed)


def test_a_fill_without_error_is_kept(series, rng):
    truth, observed, held_out, times = series
    noise = rng.normal(size=truth.shape)
    smoother = fit_smoother(noise, observed, held_out, times, noise, rng, QUICK)
    filled = smoother.combine(noise, observed, times, noise)
    np.testing.assert_allclose(filled, noise, atol=1e-3)


def test_true_values_of_missing_entries_are_never_used(series):
    truth, observed, held_out, times = series
    fill = np.where(observed, truth, 0) * 0.9
    results = []
    for wrong in (np.nan, 1e6):
        X = np.where(observed, truth, wrong)
        smoother = fit_smoother(X, observed, held_out, times, fill, np.random.default_rng(0), QUICK)
        results.append(smoother.combine(X, observed, times, fill))
    np.testing.assert_array_equal(*results)
    assert np.isfinite(results[0]).all()


def test_unit_of_time_does_not_matter(series):
    truth, observed, held_out, times = series
    a, b = (
        fit_smoother(
            truth, observed, held_out, t, np.tanh(truth), np.random.default_rng(0), QUICK
        ).combine(truth, observed, t, np.tanh(truth))
        for t in (times, 3600 * times + 1e6)
    )
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_a_fill_that_is_far_off_at_missing_entries_is_trusted_less(series, rng):
    truth, observed, held_out, times = series
    fill = np.where(observed, truth, truth + 5) + 0.001 * rng.normal(size=truth.shape)

    smoother = fit_smoother(truth, observed, held_out, times, fill, rng, QUICK)

    filled = smoother.combine(truth, observed, times, fill)
    without = smoother.combine(truth, observed, times)
    assert error(filled, truth, ~observed) < 1.1 * error(without, truth, ~observed)


def test_held_out_entries_are_used_for_the_final_models(series, rng):
    truth, observed, _, times = series
    held_out = observed & (rng.random(truth.shape) < 0.5)
    smoother = fit_smoother(truth, observed, held_out, times, np.zeros_like(truth), rng, QUICK)
    np.testing.assert_allclose(smoother.mean, np.nanmean(np.where(observed, truth, np.nan), axis=0))


def test_with_few_held_out_entries_the_fill_counts_little(series, rng):
    truth, observed, _, times = series
    nothing = np.zeros_like(observed)
    smoother = fit_smoother(truth, observed, nothing, times, truth, rng, QUICK)
    assert np.isfinite(smoother.smoothers[0].fill_variance).all()
    filled = smoother.combine(truth, observed, times, np.zeros_like(truth))
    assert error(filled, truth, ~observed) < error(np.zeros_like(truth), truth, ~observed)


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (30, 1), (5, 40)])
def test_tables_of_few_rows_or_columns_are_imputed(shape, rng):
    X = rng.normal(size=shape)
    observed = rng.random(shape) < 0.6
    observed[0, 0] = False
    nothing = np.zeros_like(observed)
    smoother = fit_smoother(X, observed, nothing, None, np.zeros(shape), rng)
    filled = smoother.combine(X, observed, None, np.zeros(shape))
    assert np.isfinite(filled).all()


def test_large_tables_have_fewer_models(series, rng):
    truth, observed, held_out, times = series
    config = replace(QUICK, large=1.0)

    smoother = fit_smoother(truth, observed, held_out, times, np.zeros_like(truth), rng, config)

    assert len(smoother.smoothers) <= config.n_large


def test_groups_are_not_linked(rng):
    """Two devices at levels 100 apart: a gap at the end of one is not bent towards the other."""
    walks = rng.normal(size=(2, 200, 3)).cumsum(axis=1) / 5
    walks[1] += 100
    truth = walks.reshape(400, 3)
    observed = rng.random(truth.shape) < 0.7
    observed[190:200, 0] = False
    timeline = Timeline(np.tile(np.arange(200.0), 2), np.repeat([0, 1], 200))

    filled = impute(truth, observed, np.full(truth.shape, 50.0), rng, timeline)

    assert np.abs(filled - truth)[190:200, 0].max() < 10
