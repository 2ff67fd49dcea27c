"""Intervals on arrival and forecasts of OnlineImputer."""

import numpy as np
import pytest
from helpers.estimators import fast_online
from helpers.saved_state import differences
from sklearn.exceptions import NotFittedError

from hirank import OnlineImputer, load
from hirank.exceptions import ParameterError

ROWS = 700


def streaming(**changes):
    return fast_online(OnlineImputer, **{"time": "auto", **changes})


@pytest.fixture(scope="module")
def truth():
    """Six features that follow three random walks; from row 400 on, twice as wild."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(ROWS, 3)) * np.where(np.arange(ROWS) < 400, 1, 2)[:, None]
    return np.cumsum(steps, axis=0) @ rng.normal(size=(3, 6)) + 0.1 * rng.normal(size=(ROWS, 6))


@pytest.fixture(scope="module")
def X(truth):
    return np.where(np.random.default_rng(1).random(truth.shape) < 0.3, np.nan, truth)


@pytest.mark.filterwarnings("ignore::hirank.exceptions.EmptyRowsWarning")
@pytest.mark.parametrize("coverage", [0.7, 0.9])
@pytest.mark.parametrize("time", ["auto", None])
def test_intervals_cover_as_many_missing_values_as_asked_for(truth, X, time, coverage):
    _, lower, upper = streaming(time=time).partial_fit_interval(X, coverage)
    inside = ((lower <= truth) & (truth <= upper))[100:][np.isnan(X[100:])]
    assert coverage - 0.06 < inside.mean() < coverage + 0.06


def test_intervals_surround_what_is_imputed_and_observed_values_are_their_ends(X):
    one, two = streaming().partial_fit(X[:100]), streaming().partial_fit(X[:100])
    filled, lower, upper = one.partial_fit_interval(X[100:200])
    np.testing.assert_array_equal(filled, two.partial_fit_transform(X[100:200]))
    assert not differences(one.get_state(), two.get_state())
    missing = np.isnan(X[100:200])
    assert (lower <= filled)[missing].all()
    assert (filled <= upper)[missing].all()
    for end in (lower, upper):
        np.testing.assert_array_equal(end[~missing], X[100:200][~missing])


def test_interval_learns_nothing_and_takes_each_row_as_the_next_one(X):
    model = streaming().partial_fit(X[:100])
    before = model.get_state()
    lower, upper = model.interval(X[100:110])
    assert not differences(before, model.get_state())
    _, first, last = model.partial_fit_interval(X[100:101])
    np.testing.assert_array_equal(first, lower[:1])
    np.testing.assert_array_equal(last, upper[:1])


def test_intervals_do_not_depend_on_the_cuts_and_continue_after_loading(X, tmp_path):
    whole, parts = streaming(), streaming()
    ends = whole.partial_fit_interval(X[:150])
    found = [parts.partial_fit_interval(part) for part in np.split(X[:100], [1, 7, 60])]
    parts.save(tmp_path / "stream.hirank")
    found.append(load(tmp_path / "stream.hirank").partial_fit_interval(X[100:150]))
    for one, two in zip(ends, zip(*found, strict=True), strict=True):
        np.testing.assert_array_equal(one[5:], np.vstack(two)[5:])  # means of a call before


def test_single_precision_and_times_are_kept(X):
    table = np.column_stack([np.arange(200), X[:200]]).astype(np.float32)
    filled, lower, upper = streaming(time=0).partial_fit_interval(table)
    for part in (filled, lower, upper):
        assert part.dtype == np.float32
        np.testing.assert_array_equal(part[:, 0], table[:, 0])


@pytest.mark.filterwarnings("ignore::hirank.exceptions.WarmupWarning")
def test_without_any_knowledge_intervals_are_unknown(X):
    filled, lower, _ = streaming(time=None).partial_fit_interval(X[:10])
    assert np.isfinite(filled).all()
    assert np.isnan(lower[np.isnan(X[:10])]).all()


@pytest.mark.parametrize("coverage", [0, 1, 1.5, "wide"])
def test_a_coverage_that_is_none_is_refused_before_anything_is_learned(X, coverage):
    model = streaming().partial_fit(X[:50])
    before = model.get_state()
    for method in (model.partial_fit_interval, model.interval):
        with pytest.raises(ParameterError, match="coverage"):
            method(X[50:60], coverage)
    assert not differences(before, model.get_state())


def test_intervals_without_order_need_entries_that_are_held_out(X):
    with pytest.raises(ParameterError, match="drift_detection"):
        streaming(time=None, drift_detection="off").partial_fit_interval(X)


def test_a_forecast_has_the_columns_of_the_stream(X):
    table = np.insert(X[:200], 2, 10 + 5 * np.arange(200), axis=1)
    model = streaming(time=2).partial_fit(table)
    before = model.get_state()
    ahead, lower, upper = model.forecast(4)
    assert ahead.shape == lower.shape == upper.shape == (4, 7)
    np.testing.assert_allclose(ahead[:, 2], 1010 + 5 * np.arange(4))
    values = np.delete(np.array([lower, ahead, upper]), 2, axis=2)
    assert (np.diff(values, axis=0) > 0).all()
    assert not differences(before, model.get_state())


def test_a_forecast_begins_at_the_last_values(truth, X):
    model = streaming().partial_fit(X)
    ahead, lower, upper = model.forecast(1)
    assert (np.abs(ahead - truth[-1]) < 0.5 * truth.std(axis=0)).all()
    assert ((upper - lower) < 2 * truth.std(axis=0)).all()


def test_forecasts_need_rows_in_order(X):
    with pytest.raises(NotFittedError):
        streaming().forecast(3)
    with pytest.raises(ParameterError, match="time"):
        streaming(time=None).partial_fit(X[:100]).forecast(3)
    with pytest.raises(ParameterError, match="h must be"):
        streaming().partial_fit(X[:100]).forecast(0)
