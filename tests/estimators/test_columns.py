"""What users specify about columns: bounds, integers and time."""

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import fast_imputer, fast_kfmc, remove_entries

from hirank.exceptions import BoundsWarning, ParameterError, TimeColumnWarning
from hirank.metrics import missing_relative_error

BOUNDS = [
    (-0.5, 0.5),
    [(-0.5, 0.5)] * 6,
    {2: (-0.5, 0.5), -1: (0, None), 0: (None, None)},
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=["one pair", "a list", "by number"])
def test_imputed_values_are_within_bounds(table, bounds):
    model, missing = fast_imputer(bounds=bounds), np.isnan(table)
    lower, upper = np.full((2, 6), np.inf) * [[-1], [1]]
    if isinstance(bounds, dict):
        lower[[2, 5]], upper[2] = (-0.5, 0), 0.5
    else:
        lower[:], upper[:] = -0.5, 0.5

    with pytest.warns(BoundsWarning):
        tables = [model.fit_transform(table)]
    tables += [model.transform(table), *model.sample(table, 2), *model.interval(table)]

    for filled in tables:
        assert (filled[~missing] == table[~missing]).all()
        assert ((lower <= filled) & (filled <= upper) | ~missing).all()


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_values_imputed_by_one_dictionary_are_within_bounds(table, solver):
    model = fast_kfmc(20, solver=solver, bounds=(-0.5, 0.5))

    with pytest.warns(BoundsWarning):
        fitted = model.fit_transform(table)

    for filled in (fitted, model.transform(table)):
        assert np.abs(filled[np.isnan(table)]).max() <= 0.5


def test_observed_values_outside_the_bounds_are_counted(table):
    frame = pd.DataFrame(table, columns=list("abcdef"))
    model = fast_imputer(bounds={"c": (-0.5, 0.5)})

    with pytest.warns(BoundsWarning) as caught:
        filled = model.fit_transform(frame)

    (warning,) = caught
    assert warning.message.columns == ("c",)
    assert warning.message.count == (np.abs(table[:, 2]) > 0.5).sum()
    assert warning.filename == __file__
    assert np.abs(filled[np.isnan(table[:, 2]), 2]).max() <= 0.5


@pytest.mark.parametrize(
    ("settings", "parameter", "problem"),
    [
        ({"bounds": (1, 0)}, "bounds", "above the upper"),
        ({"bounds": {1: (3, 2)}}, "bounds", "above the upper"),
        ({"bounds": [(0, 1)] * 5}, "bounds", "5 pairs, but X has 6 columns"),
        ({"bounds": {"a": (0, 1)}}, "bounds", "no column names"),
        ({"bounds": {6: (0, 1)}}, "bounds", "column 6"),
        ({"bounds": {0: 1}}, "bounds", "must be pairs"),
        ({"bounds": (0, np.nan)}, "bounds", "at least one number"),
        ({"bounds": 3}, "bounds", "must be a pair"),
        ({"bounds": (np.inf, None)}, "bounds", "at least one number"),
        ({"bounds": (0.2, 0.8), "integers": True}, "bounds", "no integer"),
        ({"integers": "all"}, "integers", "must be"),
        ({"integers": [7]}, "integers", "column 7"),
        ({"time": "when"}, "time", "no column names"),
        ({"time": 6}, "time", "column 6"),
        ({"max_gap": 3}, "max_gap", "requires time or groups"),
        ({"max_gap": 0, "time": True}, "max_gap", "at least 1"),
    ],
)
def test_specifications_that_cannot_be_used_are_explained(table, settings, parameter, problem):
    with pytest.raises(ParameterError, match=problem) as caught:
        fast_imputer(**settings).fit(table)

    assert caught.value.parameter == parameter


def test_an_unknown_column_name_is_explained_with_the_names_that_exist(table):
    frame = pd.DataFrame(table, columns=list("abcdef"))

    with pytest.raises(ParameterError, match="'when', but the columns are a, b, c, d, e, f"):
        fast_imputer(time="when").fit(frame)


@pytest.fixture(scope="module")
def counts():
    """Two features of counts and one of numbers, 100 x 3."""
    rng = np.random.default_rng(0)
    level = rng.uniform(1, 20, 100)
    X = np.column_stack([rng.poisson(level), np.round(level), level + rng.normal(size=100)])
    return remove_entries(rng, X)


@pytest.mark.parametrize(
    ("integers", "rounded"), [("auto", [0, 1]), ([1], [1]), (True, [0, 1, 2]), (None, [])]
)
def test_imputed_values_are_integers_where_asked_for(counts, integers, rounded):
    model, missing = fast_imputer(integers=integers, bounds=(0, 17.5)), np.isnan(counts)

    with pytest.warns(BoundsWarning):
        tables = [model.fit_transform(counts)]
    tables += [model.transform(counts), *model.sample(counts, 2)]

    for filled in tables:
        imputed = [filled[missing[:, j], j] for j in range(3)]
        assert [j for j in range(3) if (imputed[j] == np.round(imputed[j])).all()] == rounded
        assert all(column.min() >= 0 and column.max() <= 17.5 for column in imputed)


def test_rows_need_not_be_sorted_by_time(series):
    shuffled = np.random.default_rng(1).permutation(len(series))
    frame = pd.DataFrame(series, columns=["when", "a", "b", "c"])
    model = fast_imputer(time="when", max_gap=5)

    in_order = model.fit_transform(frame)
    again = model.transform(frame)

    np.testing.assert_allclose(model.transform(frame.iloc[shuffled]), again[shuffled], atol=1e-9)
    refitted = model.fit_transform(frame.iloc[shuffled])
    np.testing.assert_allclose(refitted, in_order[shuffled], atol=1e-6)
    assert np.isnan(in_order[50:62, 2]).all()


def test_evenly_spaced_times_are_as_good_as_the_given_order(series):
    """``time=True`` does what a column 0, 1, 2, ... does, except that it is not a feature."""
    values = series[:, 1:]
    numbered = np.column_stack([values, np.arange(120.0)])

    by_order = fast_imputer(time=True).fit(values)
    by_column = fast_imputer(time=3).fit(numbered)

    missing = np.isnan(values)
    one, two = by_order.transform(values), by_column.transform(numbered)[:, :3]
    assert np.abs(one - two)[missing].mean() < 0.3 * np.nanstd(values, axis=0).mean()
    assert by_order._fitted.time.column is None
    assert by_column._fitted.time.column == 3
    reverse = by_order.transform(values[::-1])[::-1]
    assert np.abs(reverse - one)[missing].mean() < 0.1 * np.nanstd(values, axis=0).mean()


def test_a_column_may_be_named_time(series):
    frame = pd.DataFrame(series, columns=["time", "a", "b", "c"])
    named, numbered = fast_imputer(time="time").fit(frame), fast_imputer(time=0).fit(series)

    np.testing.assert_array_equal(named.transform(frame), numbered.transform(series))


def test_entries_in_long_gaps_stay_missing(series):
    model, missing = fast_imputer(time=True, max_gap=5), np.isnan(series)

    tables = [model.fit_transform(series), model.transform(series)]
    tables += [*model.interval(series), *model.sample(series, 2)]

    for filled in tables:
        left = np.isnan(filled)
        assert left[50:62, 2].all()
        assert (filled[~missing] == series[~missing]).all()
        assert not left[:, [0, 1, 3]].any()
        assert left.sum() < 20


def test_series_that_are_all_constant_are_imputed_with_the_constant():
    X = np.full((60, 3), 5.0)
    X[::4, 1] = np.nan

    assert (fast_imputer(time=True).fit_transform(X) == 5).all()


def test_neighbors_in_time_help():
    t = np.arange(150) / 8
    truth = np.column_stack([np.sin(t), np.cos(1.3 * t), np.sin(0.7 * t)])
    X = remove_entries(np.random.default_rng(0), truth, 0.2)

    with_time, without = (
        missing_relative_error(fast_imputer(time=time).fit_transform(X), truth, ~np.isnan(X))
        for time in (True, None)
    )

    assert with_time < 0.3 * without


@pytest.mark.parametrize(
    ("entry", "reason"), [("same", "1 row has the time of another row"), (np.nan, "1 row has no")]
)
def test_a_time_column_that_cannot_be_used_is_warned_of_once(series, entry, reason):
    series = series.copy()
    series[3, 0] = series[4, 0] if entry == "same" else entry
    model = fast_imputer(time=0)

    for call in (model.fit_transform, model.transform):
        with pytest.warns(TimeColumnWarning) as caught:
            filled = call(series)
        (warning,) = caught
        assert warning.message.column == "0"
        assert warning.message.reason.startswith(reason)
        assert np.isfinite(filled).all()
