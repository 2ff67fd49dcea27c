"""Tables in which rows of one group, such as a device, follow each other."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers.estimators import fast_imputer

import hirank
from hirank.exceptions import InputError, ParameterError, TimeColumnWarning

VALUES = ["x", "y", "z"]


@pytest.fixture(scope="module")
def panel():
    """Three devices of 80 rows each, one after the other, with gaps; and the truth."""
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(3, 80, 3)).cumsum(axis=1) @ (np.eye(3) + 0.7)
    walks += 20 * rng.normal(size=(3, 1, 3))
    truth = pd.DataFrame(walks.reshape(240, 3), columns=VALUES)
    truth.insert(0, "device", np.repeat(["b", "a", "c"], 80))
    frame = truth.copy()
    frame[VALUES] = frame[VALUES].mask(rng.random((240, 3)) < 0.3)
    return frame, truth


@pytest.fixture(scope="module")
def fitted(panel):
    """A fitted imputer that returns data frames, and the table that it imputed."""
    model = fast_imputer(groups="device").set_output(transform="pandas")
    return model, model.fit_transform(panel[0])


def interleaved(n_groups, length):
    return np.arange(n_groups * length).reshape(n_groups, length).T.ravel()


def error(filled, panel):
    frame, truth = panel
    missing = frame[VALUES].isna().to_numpy()
    errors = filled[VALUES].to_numpy(float) - truth[VALUES].to_numpy()
    return float(np.sqrt(np.mean(errors[missing] ** 2)))


def test_rows_of_another_device_are_no_neighbors_in_time(panel, fitted):
    rows = interleaved(3, 80)
    mixed = panel[0].iloc[rows]

    as_one = fast_imputer(time=True).fit_transform(mixed[VALUES])

    by_device = error(fitted[1].iloc[rows], (mixed, panel[1].iloc[rows]))
    as_one = error(pd.DataFrame(as_one, columns=VALUES), (mixed, panel[1].iloc[rows]))
    assert by_device < 0.5 * as_one


def test_the_order_in_which_groups_are_interleaved_does_not_matter(panel, fitted):
    model, filled = fitted
    rows = interleaved(3, 80)
    mixed = panel[0].iloc[rows]
    other = fast_imputer(groups="device").set_output(transform="pandas")

    pd.testing.assert_frame_equal(other.fit_transform(mixed), filled.iloc[rows], rtol=0, atol=0)
    expected = model.transform(panel[0]).iloc[rows]
    pd.testing.assert_frame_equal(model.transform(mixed), expected, rtol=0, atol=0)


def test_observed_values_and_labels_come_back(panel, fitted):
    frame, filled = panel[0], fitted[1]

    assert filled.columns.tolist() == frame.columns.tolist()
    assert filled["device"].tolist() == frame["device"].tolist()
    pd.testing.assert_frame_equal(filled[VALUES].where(frame[VALUES].notna()), frame[VALUES])
    assert filled[VALUES].notna().all(axis=None)
    assert (filled[VALUES].dtypes == np.float64).all()


def test_labels_may_be_numbers_or_objects_in_an_array(panel, fitted):
    frame, filled = panel[0], fitted[1]
    numbers = frame.assign(device=frame["device"].map({"a": 1e9, "b": 1e9 + 1, "c": 7e9}))

    by_number = fast_imputer(groups=0).fit_transform(numbers.to_numpy())
    by_text = fast_imputer(groups=0).fit_transform(frame.to_numpy())

    assert by_number.dtype == np.float64
    np.testing.assert_array_equal(by_number[:, 0], numbers["device"])
    np.testing.assert_array_equal(by_number[:, 1:], filled[VALUES])
    assert by_text[:, 0].tolist() == frame["device"].tolist()
    np.testing.assert_array_equal(by_text[:, 1:].astype(float), filled[VALUES])


def test_polars_and_complete_keep_the_labels(panel, fitted):
    frame, filled = pl.from_pandas(panel[0]), fitted[1]

    model = fast_imputer(groups="device").set_output(transform="polars")
    completed = hirank.complete(frame, groups="device", max_iter=20, random_state=0)

    assert model.fit_transform(frame)["device"].to_list() == frame["device"].to_list()
    assert completed["device"].to_list() == frame["device"].to_list()
    assert completed.select(VALUES).null_count().sum_horizontal().item() == 0
    # `complete` rounds to the decimals of the observed values, and the column stands elsewhere.
    assert abs(completed["x"].to_numpy() - filled["x"].to_numpy()).mean() < 0.5


def test_a_new_group_is_imputed_as_if_it_were_alone(panel, fitted):
    model, frame = fitted[0], panel[0]
    new = frame[frame["device"] == "a"].assign(device="new")

    alone = model.transform(new)[VALUES]
    beside = model.transform(pd.concat([frame, new]))[VALUES].iloc[240:]

    # The equations of all groups are solved together, to three digits.
    np.testing.assert_allclose(alone, beside, atol=0.05)


def test_a_group_of_one_row_is_imputed(panel, fitted):
    one = pd.DataFrame({"device": ["n"], "x": [1.0], "y": [np.nan], "z": [2.0]})

    assert np.isfinite(fitted[0].transform(one)[VALUES].to_numpy()).all()


def test_times_are_distinct_within_groups_only(panel):
    frame = panel[0].assign(when=np.tile(np.arange(80.0), 3))
    model = fast_imputer(time="when", groups="device")

    filled = model.fit_transform(frame)  # warnings are errors

    assert np.isfinite(filled[:, 1:].astype(float)).all()
    with pytest.warns(TimeColumnWarning, match="rows have the time of another row"):
        model.transform(frame.assign(when=1.0))


def test_gaps_end_with_their_group():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).cumsum(axis=0)
    X = np.column_stack([np.repeat([0.0, 1.0], 30), X])
    X[27:33, 1] = np.nan  # three rows in each group
    X[10:15, 2] = np.nan

    filled = fast_imputer(groups=0, max_gap=4).fit_transform(X)

    assert np.isfinite(filled[27:33, 1]).all()
    assert np.isnan(filled[10:15, 2]).all()


def test_intervals_and_samples_know_the_groups(panel, fitted):
    model, frame = fitted[0], panel[0]
    filled = model.transform(frame)[VALUES].to_numpy()

    lower, upper = model.interval(frame)
    tables = model.sample(frame, 2)

    assert ((lower[:, 1:] <= filled) & (filled <= upper[:, 1:])).all()
    assert tables.shape == (2, 240, 4)
    assert "device" not in {one["feature"] for one in model.summary()["features"]}


def test_saved_models_know_the_groups(panel, tmp_path):
    model = hirank.Imputer(groups="device", max_iter=5, max_time=0.3, random_state=0)
    model.fit(panel[0])

    model.save(tmp_path / "m.hirank")

    expected = model.transform(panel[0])
    restored = hirank.load(tmp_path / "m.hirank").transform(panel[0])
    np.testing.assert_array_equal(restored[:, 1:].astype(float), expected[:, 1:].astype(float))


def test_rows_without_a_label_are_refused(panel, fitted):
    frame = panel[0].assign(device=panel[0]["device"].where(panel[0].index != 4))

    for call in (fitted[0].transform, fast_imputer(groups="device").fit):
        with pytest.raises(InputError, match=r"1 row has no label .* \(positions 4\)"):
            call(frame)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"groups": "nope"}, "groups names column 'nope'"),
        ({"groups": 1.5}, "groups must be None"),
        ({"groups": "x", "time": "x"}, "groups names the same column as time"),
    ],
)
def test_columns_that_cannot_be_groups_are_explained(panel, settings, problem):
    with pytest.raises(ParameterError, match=problem):
        fast_imputer(**settings).fit(panel[0][VALUES].fillna(0.0))
