"""OnlineImputer with filters of the last rows."""

import numpy as np
import pytest
from helpers.estimators import fast_online
from helpers.saved_state import differences

from hirank import OnlineImputer, load
from hirank.exceptions import ParameterError

ROWS = 160


def in_order(**changes):
    return fast_online(OnlineImputer, time="auto", **changes)


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
    alone = error(fast_online(OnlineImputer).partial_fit_transform(X), truth, X)
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
    assert (model._stream.ordered.ages >= 6).all()


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


def test_time_takes_auto_or_none(random_walks):
    with pytest.raises(ParameterError, match="time"):
        OnlineImputer(time="rows").partial_fit(random_walks[1])
