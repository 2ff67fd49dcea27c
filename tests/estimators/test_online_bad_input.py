"""Streams that sensors really send: extreme values, sensors that fail, rows without values.

Whatever arrives, observed entries come back to the bit, everything else is finite once its feature
had a value, and the stream can be saved and continued.
"""

import warnings

import numpy as np
import pytest
from helpers.estimators import fast_online
from helpers.saved_state import differences

from hirank import OnlineImputer, load
from hirank.exceptions import EmptyRowsWarning, IrregularTimesWarning

ROWS = 300
CHANGE = 150
"""Row in which a sensor fails."""
NUMBERS = np.arange(float(ROWS))


def in_order(**changes):
    settings = {"time": "auto", "window": 200, "n_warmup": 80, **changes}
    return fast_online(OnlineImputer, **settings)


@pytest.fixture(scope="module")
def walks():
    """Six features that follow three random walks, and the same with 30 % of entries missing."""
    rng = np.random.default_rng(0)
    truth = np.cumsum(rng.normal(size=(ROWS, 3)), axis=0) @ rng.normal(size=(3, 6))
    truth += 0.05 * rng.normal(size=truth.shape)
    return truth, np.where(rng.random(truth.shape) < 0.3, np.nan, truth)


def arrive(X, cuts=(1, 2, 3, 100, 101), **changes):
    """Return the model after rows in calls of several sizes, and the rows as imputed."""
    model = in_order(**changes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (EmptyRowsWarning, IrregularTimesWarning):
            warnings.simplefilter("ignore", kind)
        parts = [model.partial_fit_transform(part) for part in np.split(X, cuts)]
    return model, np.vstack(parts)


def check(model, X, filled, tmp_path, aside=()):
    """Assert what the module promises, of a stream whose columns `aside` are not imputed."""
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[known], X[known])
    had_values = np.maximum.accumulate(known, axis=0)
    had_values[:, list(aside)] = False
    # Rows of one call have the means of all its rows.
    assert np.isfinite(filled[had_values]).all()
    model.save(tmp_path / "stream.hirank")
    restored = load(tmp_path / "stream.hirank")
    assert not differences(model.get_state(), restored.get_state())
    rows = X[-5:].copy()
    rows[:, [j for j in range(X.shape[1]) if j not in aside][::2]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        filled, lower, upper = model.partial_fit_interval(rows)
        np.testing.assert_array_equal(restored.partial_fit_interval(rows)[0], filled)
        ahead = model.forecast(3)[0] if model.groups is None else filled
    imputed = np.isnan(rows) & had_values[-1]
    assert (lower[imputed] <= filled[imputed]).all()
    assert (filled[imputed] <= upper[imputed]).all()
    assert np.isfinite(ahead[:, had_values[-1]]).all()


def columns(change):
    """Return a function that changes a copy of a table in place."""

    def changed(X):
        X = X.copy()
        change(X)
        return X

    return changed


def assign(X, at, value):
    X[at] = value


TABLES = {
    "one feature": lambda X: X[:, :1],
    "constant features": lambda X: np.where(np.isnan(X), np.nan, [0.1, -3, 0, 1e12, 1e200, 7]),
    "one constant feature": lambda X: np.where(np.isnan(X[:, :1]), np.nan, 0.1),
    "offsets of 1e12": lambda X: X + 1e12,
    "offsets of their own": lambda X: X + np.array([0, 1e12, -1e12, 1e6, 1, 1e15]),
    "values of 1e200": lambda X: X * 1e200,
    "values of 1e-200": lambda X: X * 1e-200,
    "1e200 now and then": columns(lambda X: assign(X, ([5, 90, 200], 2), 1e200)),
    "one feature of 1e200": columns(lambda X: assign(X, (slice(None), 2), 1e200 * X[:, 2])),
    "a first row without values": columns(lambda X: assign(X, 0, np.nan)),
    "first rows without values": columns(lambda X: assign(X, slice(30), np.nan)),
    "no values any more": columns(lambda X: assign(X, slice(100, None), np.nan)),
    "no value at all": lambda X: np.full(X.shape, np.nan),
    "a late feature": columns(lambda X: assign(X, (slice(200), 3), np.nan)),
    "a late constant": columns(lambda X: assign(X, (..., 3), np.where(NUMBERS < 200, np.nan, 4))),
    "whole numbers": lambda X: np.round(X),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_extreme_streams_are_imputed_and_continue(walks, tmp_path, name):
    X = np.array(TABLES[name](walks[1]))
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)


@pytest.mark.parametrize("name", ["values of 1e200", "first rows without values", "a late feature"])
def test_extreme_streams_of_groups_are_imputed_and_continue(walks, tmp_path, name):
    X = np.column_stack([np.arange(ROWS) % 3, TABLES[name](walks[1])])
    model, filled = arrive(X, groups=0)
    check(model, X, filled, tmp_path, aside=[0])


TIMES = {
    "backward": np.r_[NUMBERS[:50], NUMBERS[50:][::-1]],
    "the same": 0 * NUMBERS,
    "in pairs": NUMBERS // 2,
    "gaps of years": NUMBERS + 3e8 * (NUMBERS > 100) + 1e18 * (NUMBERS > 200),
    "huge": 1e300 * NUMBERS,
    "steps below the precision": 1e15 + 1e-3 * NUMBERS,
    "some missing": np.where(NUMBERS % 3, NUMBERS, np.nan),
    "all missing": np.nan * NUMBERS,
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.filterwarnings("ignore::hirank.exceptions.IrregularTimesWarning")
def test_times_of_any_kind_leave_the_values_close_to_those_without(walks, tmp_path, name):
    truth, X = walks
    table = np.column_stack([TIMES[name], X])
    model, filled = arrive(table, time=0)
    check(model, table, filled, tmp_path, aside=[0])
    at = np.isnan(X)
    at[:50] = False
    errors = [np.sqrt(np.mean((rows - truth)[at] ** 2)) for rows in (filled[:, 1:], arrive(X)[1])]
    # From .97 to 1.5 times, the latter where rows count as a tenth of a step apart.
    assert errors[0] < 2 * errors[1]


def test_a_warning_about_times_is_issued_once_a_call(walks):
    table = np.column_stack([TIMES["backward"], walks[1]])
    with pytest.warns(IrregularTimesWarning) as caught:
        in_order(time=0).partial_fit(table)
    assert len(caught) == 1
    assert caught[0].message.backward == ROWS - 51


def errors_after(imputed, truth, X, start, features):
    """Return the root mean square error from a row on, in standard deviations before the change."""
    scaled = (imputed - truth) / truth[:CHANGE].std(axis=0)
    at = np.isnan(X)
    at[:start] = False
    return float(np.sqrt(np.mean(scaled[:, features][at[:, features]] ** 2)))


def test_other_sensors_do_not_suffer_from_one_that_dies(walks, tmp_path):
    truth, X = walks
    X = X.copy()
    X[CHANGE:, 0] = np.nan
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)
    # .13, .15 with the dead one; the last value has .8 for that one.
    assert errors_after(filled, truth, X, CHANGE, [1, 2, 3, 4, 5]) < 0.25
    assert errors_after(filled, truth, X, CHANGE, [0]) < 0.5


def test_other_sensors_do_not_suffer_from_one_that_sticks(walks, tmp_path):
    truth, X = (one.copy() for one in walks)
    truth[CHANGE:, 0] = truth[CHANGE, 0]
    X[CHANGE:, 0] = np.where(np.isnan(X[CHANGE:, 0]), np.nan, truth[CHANGE, 0])
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)
    assert errors_after(filled, truth, X, CHANGE, [1, 2, 3, 4, 5]) < 0.25
    assert errors_after(filled, truth, X, CHANGE + 50, [0]) < 0.25


@pytest.mark.parametrize("jump", [5, 1e3, 1e9])
def test_a_sensor_that_jumps_is_followed(walks, tmp_path, jump):
    truth, X = (one.copy() for one in walks)
    shift = jump * truth[:CHANGE, 0].std()
    truth[CHANGE:, 0] += shift
    X[CHANGE:, 0] += shift
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)
    assert errors_after(filled, truth, X, CHANGE, [1, 2, 3, 4, 5]) < 0.5
    assert errors_after(filled, truth, X, CHANGE + 50, [0]) < 0.01 * jump + 0.25


def test_sensors_that_swap_are_followed(walks, tmp_path):
    truth, X = (one.copy() for one in walks)
    truth[CHANGE:, [0, 1]] = truth[CHANGE:, [1, 0]]
    X[CHANGE:, [0, 1]] = X[CHANGE:, [1, 0]]
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)
    assert errors_after(filled, truth, X, CHANGE + 50, slice(None)) < 0.5


def test_uncertainty_stays_bounded_while_nothing_arrives(walks, tmp_path):
    X = np.full((1500, 6), np.nan)
    X[:100] = walks[1][:100]
    X[-200:] = walks[1][-200:]
    model, filled = arrive(X)
    check(model, X, filled, tmp_path)
    filters = in_order().partial_fit(X[:-200])._stream.arrivals.ordered.filters.filters
    # 180; 1e37 if the covariances of a row without values were not kept symmetric.
    assert max(np.abs(one.P).max() for one in filters) < 1e4


@pytest.mark.slow
def test_ten_thousand_rows_without_values_and_a_feature_that_comes_late(walks, tmp_path):
    X = np.full((10_000 + ROWS, 6), np.nan)
    X[10_000:] = walks[1]
    X[:ROWS, :3] = walks[1][:, :3]
    model, filled = arrive(X)
    assert model.n_samples_seen_ == len(X)
    check(model, X, filled, tmp_path)
    late = np.tile(walks[1], (18, 1))
    late[:5000, 4] = np.nan
    model, filled = arrive(late)
    check(model, late, filled, tmp_path)
