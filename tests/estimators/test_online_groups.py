"""OnlineImputer with groups: rows of one device follow each other, those of others do not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import fast_online
from helpers.saved_state import differences

from hirank import OnlineImputer, load
from hirank.exceptions import GroupLimitWarning, InputError, IrregularTimesWarning, ParameterError
from hirank.online import grouped

ROWS = 240
NAMES = [*"abcdef"]
NEW = [[99, np.nan, 1.0, 2.0, np.nan, 0.0, 3.0]]
"""A row of a device that was not there before."""


def by_group(groups=0, **changes):
    return fast_online(OnlineImputer, **{"time": "auto", "groups": groups, **changes})


@pytest.fixture(scope="module")
def devices():
    """Labels, and rows of three devices at levels that are far apart, by turns at random.

    Of each device three random walks are seen through six features; 30 % of entries are missing.
    """
    rng = np.random.default_rng(0)
    labels, walks = rng.integers(3, size=ROWS), 5.0 * np.arange(3)[:, None] * [1, -1, 0]
    truth, loadings = np.empty((ROWS, 6)), rng.normal(size=(3, 6))
    for i, label in enumerate(labels):
        walks[label] += rng.normal(size=3)
        truth[i] = walks[label] @ loadings
    truth += 0.05 * rng.normal(size=truth.shape)
    X = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    return labels, truth, X


@pytest.fixture(scope="module")
def table(devices):
    """Labels and rows side by side."""
    labels, _, X = devices
    return np.column_stack([labels, X])


@pytest.fixture
def frame(devices):
    """The same, with labels of text between the features."""
    labels, _, X = devices
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(ROWS) + 1000)
    frame.insert(2, "device", [f"pump {label}" for label in labels])
    return frame


def error(filled, truth, X, start=60):
    at = np.isnan(X[start:])
    return float(np.sqrt(np.mean((filled - truth)[start:][at] ** 2)))


def test_groups_are_imputed_better_than_by_a_stream_that_does_not_know_them(devices, table):
    _, truth, X = devices
    known = error(by_group().partial_fit_transform(table)[:, 1:], truth, X)
    unknown = error(by_group(None).partial_fit_transform(X), truth, X)
    assert known < 0.5 * unknown  # 1.0 and 4.1


def test_devices_with_few_rows_have_the_model_of_all(devices, table):
    _, truth, X = devices
    together, apart = by_group().partial_fit_transform(table)[:, 1:], np.empty_like(X)
    for label in range(3):
        at = table[:, 0] == label
        apart[at] = by_group(None).partial_fit_transform(X[at])
    assert error(together, truth, X) < 1.05 * error(apart, truth, X)


def test_rows_of_one_group_are_those_of_a_stream_without_groups(devices):
    _, _, X = devices
    alone = by_group(None).partial_fit_transform(X)
    filled = by_group().partial_fit_transform(np.column_stack([np.full(ROWS, 7), X]))
    np.testing.assert_array_equal(filled[:, 1:], alone)


def test_observed_entries_and_labels_come_back_and_nothing_stays_missing(table):
    filled = by_group().partial_fit_transform(table)
    known = ~np.isnan(table)
    np.testing.assert_array_equal(filled[known], table[known])
    assert np.isfinite(filled).all()


def test_what_is_learned_does_not_depend_on_the_cuts(table):
    one, two = by_group(), by_group()
    one.partial_fit(table)
    for part in np.split(table, [1, 2, 50, 51, 90]):
        two.partial_fit_transform(part)
    assert not differences(one.get_state(), two.get_state())


def test_labels_of_text_give_the_same_as_numbers(table, frame):
    numbers, text = by_group(), by_group("device")
    filled = numbers.partial_fit_transform(table)
    mixed = text.partial_fit_transform(frame)
    assert mixed.dtype == object
    assert (mixed[:, 2] == frame["device"]).all()
    np.testing.assert_array_equal(np.delete(mixed, 2, axis=1).astype(float), filled[:, 1:])
    assert sorted(text.groups_) == ["pump 0", "pump 1", "pump 2"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_keep_the_column_of_labels(frame, library):
    given = frame.astype({"device": "category"})
    if library == "polars":
        given = pytest.importorskip("polars").DataFrame(given)
    model = by_group("device").set_output(transform=library).partial_fit(given)
    for filled in (model.transform(given), model.partial_fit_transform(given)):
        assert list(filled.columns) == list(given.columns)
        assert [*filled["device"]] == [*given["device"]]
        assert filled["device"].dtype == given["device"].dtype
        assert filled["a"].to_numpy().dtype == np.float64
    if library == "pandas":
        assert (filled.index == given.index).all()


def test_numbers_and_their_text_are_the_same_label(devices):
    _, _, X = devices
    model = by_group("id").partial_fit(pd.DataFrame({"id": [7] * ROWS, "a": X[:, 0], "b": X[:, 1]}))
    last = model.transform(pd.DataFrame({"id": ["7"], "a": [np.nan], "b": [1.0]}))
    same = model.transform(pd.DataFrame({"id": [7.0], "a": [np.nan], "b": [1.0]}))
    assert last[0, 1] == same[0, 1]
    assert [*model.groups_] == ["7"]


def test_a_new_group_is_imputed_by_the_model_and_not_kept_by_transform(table):
    model = by_group().partial_fit(table)
    before = model.get_state()
    filled = model.transform(NEW)
    assert np.isfinite(filled).all()
    assert not differences(before, model.get_state())
    np.testing.assert_array_equal(model.partial_fit_transform(NEW), filled)
    assert model.groups_[-1] == "99"


def test_the_first_rows_of_all_groups_are_imputed():
    rows = np.array([[0, 1.0, 2.0], [1, np.nan, 5.0], [0, np.nan, 2.0], [1, 3.0, np.nan]])
    filled = by_group().partial_fit_transform(rows)
    assert np.isfinite(filled).all()
    assert filled[2, 1] == 1.0  # the last value of its group
    assert filled[3, 2] == 5.0


def test_rows_of_transform_do_not_depend_on_each_other(table):
    model = by_group().partial_fit(table[:200])
    together = model.transform(table[200:])
    alone = np.vstack([model.transform(row[None]) for row in table[200:]])
    np.testing.assert_array_equal(together, alone)


def test_a_saved_stream_continues_to_the_bit(table, tmp_path):
    model = by_group().partial_fit(table[:95])
    model.save(tmp_path / "stream.hirank")
    restored = load(tmp_path / "stream.hirank")
    assert not differences(model.get_state(), restored.get_state())
    np.testing.assert_array_equal(
        restored.partial_fit_transform(table[95:]), model.partial_fit_transform(table[95:])
    )
    assert not differences(model.get_state(), restored.get_state())


def test_times_of_each_group_are_its_own(devices):
    labels, truth, X = devices
    times = np.arange(ROWS) // 3 + 1e6 * labels  # of all groups together they go back and forth
    rows = np.column_stack([times, labels, X])
    with warnings.catch_warnings():
        warnings.simplefilter("error", IrregularTimesWarning)
        model = by_group(1, time=0)
        for _, group in pd.DataFrame(rows).groupby(1):  # repeated times are warned about
            model.partial_fit(group.drop_duplicates(0).to_numpy()[:40])
    clocks = [one.clock.usual for one in model._stream.groups.values()]
    assert clocks == [None] * 3 or np.ptp(clocks) < 3
    filled = by_group(1, time=0)
    with pytest.warns(IrregularTimesWarning) as caught:
        filled = filled.partial_fit_transform(rows)
    assert len(caught) == 1
    assert not caught[0].message.backward
    np.testing.assert_array_equal(filled[:, :2], rows[:, :2])
    assert error(filled[:, 2:], truth, X) < 2


def test_forecasts_are_those_of_a_group(table, frame, devices):
    _, truth, _ = devices
    model = by_group().partial_fit(table)
    for label in range(3):
        ahead, lower, upper = model.forecast(5, group=label)
        last = truth[table[:, 0] == label][-1]
        assert ahead.shape == (5, 7)
        assert (ahead[:, 0] == label).all()
        assert (lower[:, 1:] < ahead[:, 1:]).all()
        assert (ahead[:, 1:] < upper[:, 1:]).all()
        assert np.abs(ahead[0, 1:] - last).max() < 5
    text = by_group("device").partial_fit(frame).forecast(2, group="pump 1")[0]
    assert np.isnan(text[:, 2]).all()


@pytest.mark.parametrize("group", [None, "pump 9", 9])
def test_forecasts_of_a_group_that_is_not_there_are_an_error(table, group):
    with pytest.raises(ParameterError, match="must be the label of a group"):
        by_group().partial_fit(table).forecast(2, group=group)
    with pytest.raises(ParameterError, match="requires groups"):
        by_group(None).partial_fit(table).forecast(2, group=1)


def test_intervals_are_those_on_arrival(devices, table):
    _, truth, X = devices
    filled, lower, upper = by_group().partial_fit_interval(table)
    at = np.isnan(X) & (np.arange(ROWS) >= 60)[:, None]
    inside = (lower[:, 1:] <= truth) & (truth <= upper[:, 1:])
    assert 0.8 < inside[at].mean() <= 1
    np.testing.assert_array_equal(filled, by_group().partial_fit_transform(table))
    np.testing.assert_array_equal(lower[:, 0], table[:, 0])


def test_errors_are_those_of_all_groups(table):
    model = by_group().partial_fit(table)
    assert np.isnan(model.feature_errors_[0])
    assert np.isfinite(model.feature_errors_[1:]).all()
    assert 0 < model.recent_error_ < 1


@pytest.mark.parametrize("label", [None, np.nan, pd.NA, ""], ids=repr)
def test_a_row_without_a_label_is_an_error_and_changes_nothing(frame, label):
    model = by_group("device").partial_fit(frame[:100])
    before = model.get_state()
    rows = frame[100:110].astype({"device": object})
    rows.iloc[[3, 5], 2] = label
    for method in (model.partial_fit, model.transform, model.interval):
        with pytest.raises(InputError, match=r"2 rows have no label .*'device' \(positions 3, 5\)"):
            method(rows)
    assert not differences(before, model.get_state())


def test_labels_that_are_neither_text_nor_numbers_are_named(frame):
    rows = frame.astype({"device": object})
    rows.iloc[3, 2] = pd.Timestamp("2024-01-01")
    with pytest.raises(InputError, match="must be text or finite numbers"):
        by_group("device").partial_fit(rows)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"groups": 1.5}, "must be None, or the name"),
        ({"groups": True}, "must be None, or the name"),
        ({"groups": "device"}, "no column names"),
        ({"groups": 9}, "has 7 columns"),
        ({"groups": 0, "time": 0}, "column of time"),
        ({"groups": 0, "time": None}, "time is None"),
    ],
)
def test_columns_of_groups_that_cannot_be_used_are_named(table, changes, problem):
    with pytest.raises(ParameterError, match=problem):
        by_group(**changes).partial_fit(table)


def test_the_column_of_groups_stays_the_same(table):
    model = by_group(None).partial_fit(table)
    with pytest.raises(ParameterError, match="groups names another column"):
        model.set_params(groups=0).partial_fit(table)
    assert not hasattr(by_group(None).partial_fit(table), "groups_")


def test_fit_takes_a_table_with_groups(table):
    model = by_group(n_passes=2)
    filled = model.fit_transform(table)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[:, 0], table[:, 0])
    assert len(model.groups_) == 3


def test_features_may_be_added(table):
    model = by_group().partial_fit(table[:100, :6])
    model.add_features(1)
    filled = model.partial_fit_transform(table[100:])
    assert np.isfinite(filled[20:]).all()


def test_the_group_without_a_row_for_the_longest_time_is_forgotten(table, monkeypatch):
    monkeypatch.setattr(grouped, "MAX_GROUPS", 2)
    rows = table[:6].copy()
    rows[:, 0] = [0, 1, 0, 2, 2, 0]
    model = by_group()
    with pytest.warns(GroupLimitWarning, match="more than 1000 groups"):
        model.partial_fit(rows)
    assert [*model.groups_] == ["2", "0"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit([[1, *np.arange(6.0)]])
    assert [*model.groups_] == ["0", "1"]


def test_what_is_stated_about_a_stream_lists_its_groups(table):
    facts = by_group().partial_fit(table)._stream_facts()
    assert set(facts["groups"]) == {"0", "1", "2"}
    assert sum(one["rows"] for one in facts["groups"].values()) == ROWS
    weights = facts["groups"]["0"]["weights"]["value in the row before"]
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(facts["weights"]["missing for 10 rows"].values()) == pytest.approx(1)
