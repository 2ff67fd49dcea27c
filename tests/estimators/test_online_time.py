"""OnlineImputer with filters of the last rows."""

import warnings

import numpy as np
import pytest
from helpers.estimators import fast_online
from helpers.saved_state import differences

from hirank import OnlineImputer, load
from hirank.exceptions import IrregularTimesWarning, ParameterError

ROWS = 160


def in_order(**changes):
    return fast_online(OnlineImputer, **{"time": "auto", **changes})


@pytest.fixture(scope="module")
def random_walks():
    """Six features that follow three slow random walks, and a third of the entries missing."""
    rng = np.random.default_rng(0)
    truth = np.cumsum(rng.normal(size=(ROWS, 3)), axis=0) @ rng.normal(size=(3, 6))
    truth += 0.05 * rng.normal(size=truth.shape)
    observed = rng.random(truth.shape) > 0.33
    observed[0] = True
    return truth, np.where(observed, truth, np.nan)


def error(filled, truth, X, start=60):
    at = np.isnan(X[start:])
    scaled = (filled - truth)[start:] / truth.std(axis=0)
    return float(np.sqrt(np.mean(scaled[at] ** 2)))


def test_rows_in_order_are_imputed_better_than_by_the_dictionary_alone(random_walks):
    truth, X = random_walks
    ordered = error(in_order().partial_fit_transform(X), truth, X)
    alone = error(in_order(time=None).partial_fit_transform(X), truth, X)
    # 0.24 against 0.65 here.
    assert ordered < 0.6 * alone


def test_imputation_begins_with_the_second_row(random_walks):
    truth, X = random_walks
    model = in_order().partial_fit(X[:1])
    filled = model.transform(X[1:2])
    np.testing.assert_allclose(filled, np.where(np.isnan(X[1:2]), truth[:1], X[1:2]))


def test_the_filters_do_no_harm_where_rows_are_in_no_order(stream):
    models = [fast_online(OnlineImputer, time=time) for time in ("auto", None)]
    mixed, alone = (
        error(model.partial_fit_transform(stream.X), stream.truth, stream.X, 150)
        for model in models
    )
    assert mixed < 1.1 * alone  # .022 and .028


def test_rows_in_no_order_are_imputed_by_the_model_alone_until_the_mix_is_judged():
    t = np.random.default_rng(0).uniform(-1, 1, 250)
    X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    X[::3, 1] = np.nan

    filled, alone = (
        OnlineImputer(time=time, random_state=0).partial_fit(X[:200]).partial_fit_transform(X[200:])
        for time in ("auto", None)
    )

    assert np.isnan(X[200:]).any()
    np.testing.assert_array_equal(filled, alone)


def test_observed_entries_come_back_and_nothing_stays_missing(random_walks):
    _, X = random_walks
    filled = in_order().partial_fit_transform(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(filled).all()


def test_what_is_learned_does_not_depend_on_the_cuts(random_walks):
    _, X = random_walks
    one, two = in_order(), in_order()
    one.partial_fit(X)
    for part in np.split(X, [1, 2, 50, 51, 90]):
        two.partial_fit_transform(part)
    assert not differences(one.get_state(), two.get_state())


def test_transform_imputes_each_row_as_the_next_one_and_changes_nothing(random_walks):
    _, X = random_walks
    model = in_order().partial_fit(X[:100])
    before = model.get_state()
    batch = model.transform(X[100:110])
    alone = np.vstack([model.transform(row[None]) for row in X[100:110]])
    np.testing.assert_array_equal(batch, alone)
    assert not differences(before, model.get_state())
    np.testing.assert_array_equal(model.partial_fit_transform(X[100:101]), batch[:1])


def test_a_saved_stream_continues_to_the_bit(random_walks, tmp_path):
    _, X = random_walks
    model = in_order().partial_fit(X[:95])
    model.save(tmp_path / "stream.hirank")
    restored = load(tmp_path / "stream.hirank")
    np.testing.assert_array_equal(
        restored.partial_fit_transform(X[95:]), model.partial_fit_transform(X[95:])
    )


def test_time_passes_in_rows_without_values(random_walks):
    _, X = random_walks
    model = in_order().partial_fit(X[:100])
    empty = np.full((5, X.shape[1]), np.nan)
    filled = model.partial_fit_transform(empty)
    assert np.isfinite(filled).all()
    assert model.n_samples_seen_ == 105
    assert (model._stream.arrivals.ordered.ages >= 5).all()


def test_one_outlier_is_not_the_last_value(random_walks):
    truth, X = random_walks
    broken = X.copy()
    broken[110] = 1e6 * truth[110]
    filled = in_order().partial_fit_transform(broken)
    # 0.24, as without the outlier; with it as the last value 1e5.
    assert error(filled, truth, np.where(np.arange(ROWS)[:, None] == 110, 0, X)) < 0.3


def test_a_feature_that_has_changed_for_good_is_followed(random_walks):
    truth, X = random_walks
    moved, values = truth.copy(), X.copy()
    shift = 100 * truth[:, 0].std()
    moved[80:, 0] += shift
    values[80:, 0] += shift
    filled = in_order().partial_fit_transform(values)
    at = np.isnan(values[95:, 0])
    assert np.abs(filled - moved)[95:, 0][at].max() < 0.2 * shift


@pytest.mark.parametrize("value", [1e200, -1e300, 1e-300])
def test_extreme_values_leave_finite_results(random_walks, value):
    _, X = random_walks
    rows = X.copy()
    rows[[3, 70], 1] = value
    assert np.isfinite(in_order().partial_fit_transform(rows)).all()


def test_offsets_far_larger_than_the_variation_do_no_harm(random_walks):
    truth, X = random_walks
    plain = in_order().partial_fit_transform(X)
    filled = in_order().partial_fit_transform(X + 1e10)
    assert error(filled - 1e10, truth, X) < 1.1 * error(plain, truth, X)


def test_a_constant_feature_is_imputed_with_that_constant_to_the_bit(random_walks):
    _, X = random_walks
    rows = np.column_stack([X, np.where(np.arange(ROWS) % 3, 0.1, np.nan)])
    filled = in_order().partial_fit_transform(rows)
    assert (filled[2:, -1] == 0.1).all()


def test_features_may_be_added(random_walks):
    truth, X = random_walks
    model = in_order().partial_fit(X[:100, :5])
    model.add_features(1)
    filled = model.partial_fit_transform(X[100:])
    known = np.flatnonzero(~np.isnan(X[100:, 5]))[0]
    np.testing.assert_array_equal(np.isnan(filled[:known]), False)  # means of the call
    # 0.54, with column means 1.
    assert error(filled, truth[100:], X[100:], 10) < 0.8


def test_errors_by_feature_are_those_of_the_imputed_values(random_walks):
    _, X = random_walks
    model = in_order().partial_fit(X)
    assert model.feature_errors_.shape == (6,)
    assert 0.1 < np.nanmean(model.feature_errors_) < 0.6
    assert 0.1 < model.recent_error_ < 0.6  # 0.36


def test_the_model_of_the_window_does_not_depend_on_the_filters(random_walks):
    _, X = random_walks
    ordered, alone = (in_order(time=time).partial_fit(X) for time in ("auto", None))
    np.testing.assert_array_equal(ordered.dictionary_, alone.dictionary_)


@pytest.mark.parametrize("scale", [1e-6, 3600.0])
def test_a_column_of_even_times_is_the_same_as_rows_in_order(random_walks, scale):
    _, X = random_walks
    times = 1e5 + scale * np.arange(ROWS)
    table = np.insert(X, 2, times, axis=1)
    filled = in_order(time=2).partial_fit_transform(table)
    np.testing.assert_array_equal(filled[:, 2], times)
    rest = np.delete(filled, 2, axis=1)
    np.testing.assert_allclose(rest, in_order(time="rows").partial_fit_transform(X), rtol=1e-3)


def test_the_column_of_times_may_be_named_and_is_not_imputed(random_walks):
    pd = pytest.importorskip("pandas")
    _, X = random_walks
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.insert(0, "t", np.arange(ROWS) * 0.5)
    model = in_order(time="t").set_output(transform="pandas").partial_fit(frame[:100])
    filled = model.partial_fit_transform(frame[100:])
    assert list(filled) == list(frame)
    assert filled.notna().all(axis=None)
    assert np.isnan(model.feature_errors_[0])
    assert model.dictionary_.shape[1] == 7


def test_more_is_uncertain_after_a_longer_step(random_walks):
    _, X = random_walks
    table = np.column_stack([np.arange(ROWS), X])
    model = in_order(time=0).partial_fit(table[:100])
    units = []
    for step in (1, 20):
        row = np.concatenate([[table[99, 0] + step], np.full(6, np.nan)])
        expected = model._stream.arrivals.complete(row[None, 1:], row[:1], model._config().arrival)
        units.append(expected.unit[0])
    assert (units[1] > 2 * units[0]).all()


def test_uneven_steps_are_used():
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.choice([0.3, 1.0, 1.0, 3.0], 400))
    truth = np.sin(times[:, None] / [20, 23, 31] + [0, 1, 2])
    X = truth.copy()
    X[rng.random(X.shape) < 0.4] = np.nan
    timed = in_order(time=0).partial_fit_transform(np.column_stack([times, X]))[:, 1:]
    rows = in_order(time="rows").partial_fit_transform(X)
    # With the times a trend goes on for as long as a step takes.
    timed, rows = (
        float(np.sqrt(np.mean((one - truth)[100:][np.isnan(X[100:])] ** 2)))
        for one in (timed, rows)
    )
    assert timed < 0.6 * rows


def test_times_that_cannot_be_used_are_warned_about_once_a_call(random_walks):
    _, X = random_walks
    times = np.arange(ROWS, dtype=float)
    times[50] = 7.0  # backward, and then a step forward again
    times[60] = times[59]
    times[70:] += 1e9
    times[80] = np.nan
    model = in_order(time=0)
    with pytest.warns(IrregularTimesWarning) as caught:
        filled = model.partial_fit_transform(np.column_stack([times, X]))
    assert len(caught) == 1
    warning = caught[0].message
    assert (warning.missing, warning.backward, warning.repeated, warning.far) == (1, 1, 1, 1)
    assert np.isfinite(filled[:, 1:]).all()
    np.testing.assert_array_equal(filled[:, 0], times)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(np.column_stack([times[-1] + 1 + np.arange(5), X[:5]]))


def test_a_stream_with_times_continues_to_the_bit(random_walks, tmp_path):
    _, X = random_walks
    times = np.cumsum(np.random.default_rng(0).exponential(size=ROWS))
    table = np.column_stack([times, X])
    model = in_order(time=0).partial_fit(table[:95])
    model.save(tmp_path / "stream.hirank")
    restored = load(tmp_path / "stream.hirank")
    one = model.partial_fit_transform(table[95:])
    two = [restored.partial_fit_transform(row[None]) for row in table[95:]]
    assert np.isfinite(one).all()
    assert not differences(model.get_state(), restored.get_state())
    np.testing.assert_array_equal(one[:5], np.vstack(two)[:5])


@pytest.mark.parametrize("time", [True, 1.5, "t", 9])
def test_columns_of_times_that_are_not_there_are_named(random_walks, time):
    with pytest.raises(ParameterError, match="time"):
        OnlineImputer(time=time).partial_fit(random_walks[1])


def test_the_column_of_times_stays_the_same(random_walks):
    model = in_order().partial_fit(random_walks[1])
    with pytest.raises(ParameterError, match="time"):
        model.set_params(time=0).partial_fit(random_walks[1])
