import numpy as np
import pytest

from hirank.online.clock import Pace
from hirank.online.filters import FilterConfig
from hirank.online.ordered import OrderedConfig, OrderedState
from hirank.online.outlook import LAST_DUE, Path

CONFIG = OrderedConfig()


def after(X):
    return OrderedState.empty(X.shape[1], CONFIG).append(X, None, CONFIG)[0]


@pytest.fixture(scope="module")
def waves():
    return np.sin(np.arange(400)[:, None] / [20, 31, 47] + [0, 1, 2])


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(0).normal(5, 2, size=(400, 3))


def test_trends_go_on(waves):
    found = after(waves[:300]).forecast(5, 0.9, CONFIG)
    # The last row is .1 to .2 away.
    assert np.abs(found.values - waves[300:305]).max() < 0.03


def test_noise_is_forecast_with_means_and_its_spread(noise):
    found = after(noise).forecast(20, 0.9, CONFIG)
    assert np.abs(found.values - 5).max() < 0.8
    assert (np.abs(found.half_widths / (1.64 * 2) - 1) < 0.6).all()


def test_intervals_grow_with_the_horizon(waves):
    half = after(waves[:300]).forecast(16, 0.9, CONFIG).half_widths
    assert (half[15] > 3 * half[0]).all()


def test_what_was_constant_stays_that_constant_and_what_was_never_seen_is_unknown(noise):
    X = noise.copy()
    X[:, 1], X[:, 2] = 0.1, np.nan
    found = after(X).forecast(3, 0.9, CONFIG)
    assert (found.values[:, 1] == 0.1).all()
    assert (found.half_widths[:, 1] == 0).all()
    assert np.isnan(found.values[:, 2]).all()
    assert np.isnan(found.half_widths[:, 2]).all()


def test_forecasts_cover_the_rows_that_come():
    X = np.cumsum(np.random.default_rng(0).normal(size=(1200, 4)), axis=0)
    state, inside = after(X[:400]), []
    for start in range(400, 1180, 10):
        found = state.forecast(20, 0.9, CONFIG)
        inside.append(np.abs(found.values - X[start : start + 20]) <= found.half_widths)
        state, _ = state.append(X[start : start + 10], None, CONFIG)
    assert 0.82 < np.mean(inside) < 0.97


def test_the_open_forecast_starts_anew_when_it_has_ended(waves):
    state = after(waves[:150])
    horizons = []
    for row in waves[150:300]:
        state, _ = state.append(row[None], None, CONFIG)
        horizons.append(state.outlook.horizon)
    assert max(horizons) == LAST_DUE - 1
    assert horizons.count(0.0) >= 2


def test_one_step_of_the_path_is_what_the_filters_predict(waves):
    state, filters = after(waves[:200]), FilterConfig()
    path = Path.start(state.filters, state.moments).advance(state.moments, Pace(), filters)
    level, trend = (one.predict(state.moments, filters) for one in state.filters.filters[2:])
    np.testing.assert_allclose(path.level, level.mean)
    np.testing.assert_allclose(path.trend, trend.mean)
