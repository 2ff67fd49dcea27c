import numpy as np
import pytest

from hirank.online.conditioning import Prediction, condition
from hirank.online.filters import KINDS, FilterConfig, GaussianFilter
from hirank.online.moments import RunningMoments

M = 5
CONFIG = FilterConfig(max_innovation=1e6, max_move=1e6)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def prediction(rng):
    A, B = rng.normal(size=(2, M, M))
    return Prediction(rng.normal(size=M), A @ A.T + np.eye(M), B @ B.T, np.zeros((0, M)))


@pytest.fixture
def row(rng):
    y = rng.normal(size=M)
    y[[1, 4]] = np.nan
    return y


def test_missing_entries_get_the_conditional_mean_and_variance_of_a_gaussian(prediction, row):
    unit = np.array([1.0, 2.0, 0.5, 1.0, 3.0])

    found = condition(prediction, row, np.ones(M, bool), unit, CONFIG)

    seen, P = ~np.isnan(row), prediction.covariance
    gain = P[np.ix_(~seen, seen)] @ np.linalg.inv(P[np.ix_(seen, seen)])
    v = ((row - prediction.mean) / unit)[seen]
    mean = prediction.mean[~seen] + unit[~seen] * (gain @ v)
    variance = np.diag(P[np.ix_(~seen, ~seen)] - gain @ P[np.ix_(seen, ~seen)])
    np.testing.assert_allclose(found.imputed[~seen], mean)
    np.testing.assert_allclose(found.variance[~seen], unit[~seen] ** 2 * variance)


def test_an_observed_entry_is_predicted_as_if_it_were_missing(prediction, row):
    known, unit = np.ones(M, bool), np.ones(M)

    found = condition(prediction, row, known, unit, CONFIG)

    for j in np.flatnonzero(~np.isnan(row)):
        without = np.where(np.arange(M) == j, np.nan, row)
        left_out = condition(prediction, without, known, unit, CONFIG)
        np.testing.assert_allclose(found.imputed[j], left_out.imputed[j])
        np.testing.assert_allclose(found.variance[j], left_out.variance[j])


def test_without_observed_entries_the_prediction_stands(prediction):
    found = condition(prediction, np.full(M, np.nan), np.ones(M, bool), np.ones(M), CONFIG)
    np.testing.assert_array_equal(found.imputed, prediction.mean)
    np.testing.assert_array_equal(found.variance, prediction.covariance.diagonal())


def test_one_far_value_moves_others_by_a_few_deviations_at_most(prediction, row):
    row[0] = 1e90
    found = condition(prediction, row, np.ones(M, bool), np.ones(M), FilterConfig())
    far = np.abs(found.imputed - prediction.mean)[np.isnan(row)]
    reach = FilterConfig().max_move * np.sqrt(prediction.covariance.diagonal()[np.isnan(row)])
    assert (far <= reach * (1 + 1e-12)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_observed_entries_are_known_exactly_afterwards(kind, rng):
    state, moments = GaussianFilter.start(kind, M, CONFIG), RunningMoments.empty(M)
    for _ in range(30):
        y = np.where(rng.random(M) < 0.3, np.nan, rng.normal(size=M))
        prediction = state.predict(moments, CONFIG)
        found = condition(prediction, y, moments.known, moments.unit, CONFIG)
        state = state.learn(y, prediction, found, moments.unit, CONFIG)
        moments, _ = moments.add(y, CONFIG.memory)
        seen = ~np.isnan(y)
        np.testing.assert_array_equal(state.x[seen], y[seen])
        if kind in ("level", "trend"):
            assert not state.P[seen].any()
        assert np.linalg.eigvalsh(state.noise(CONFIG)).min() > 0


def test_the_level_filter_learns_how_features_move_together(rng):
    steps = rng.normal(size=(400, 1)) @ np.array([[1.0, 2.0, -1.0]])
    X = np.cumsum(steps, axis=0) + 0.01 * rng.normal(size=steps.shape)
    state, moments = GaussianFilter.start("level", 3, FilterConfig()), RunningMoments.empty(3)
    errors = []
    for number, x in enumerate(X):
        y = np.where(np.arange(3) == number % 3, np.nan, x)
        prediction = state.predict(moments, FilterConfig())
        found = condition(prediction, y, moments.known, moments.unit, FilterConfig())
        errors.append(found.imputed[number % 3] - x[number % 3])
        state = state.learn(y, prediction, found, moments.unit, FilterConfig())
        moments, factor = moments.add(y, 500.0)
        if factor is not None:
            state = state.rescale(factor, moments.rows == 10, FilterConfig())
    # Steps of the three have root mean squares of 1, 2 and 1; the last values alone err by those.
    assert np.sqrt(np.mean(np.square(errors[200:]))) < 0.3  # 0.19


def test_moments_are_those_of_the_observed_entries(rng):
    X = np.where(rng.random((60, 3)) < 0.2, np.nan, rng.normal(5, 2, size=(60, 3)))
    moments = RunningMoments.empty(3)
    for y in X:
        moments, _ = moments.add(y, 1e9)
    np.testing.assert_allclose(moments.mean, np.nanmean(X, axis=0))
    np.testing.assert_allclose(moments.variance, np.nanvar(X, axis=0, ddof=1))
    np.testing.assert_array_equal(moments.count, (~np.isnan(X)).sum(axis=0))
