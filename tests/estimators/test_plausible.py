"""Imputed values that look like the observed ones of their column."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hirank
from hirank import Imputer
from hirank.exceptions import ParameterError


@pytest.fixture
def table():
    """A count, a share with two decimals, a price and a measurement; some values are missing."""
    rng = np.random.default_rng(0)
    size = rng.gamma(2, size=80)
    X = np.column_stack(
        [
            np.round(3 * size),
            np.round(1 - np.exp(-size), 2),
            np.round(9 * size, 1),
            size + rng.normal(size=80) / 50,
        ]
    )
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


def looks_observed(filled):
    count, share, price, _ = filled.T
    assert (count == np.round(count)).all()
    assert (count >= 0).all()
    np.testing.assert_array_equal(share, np.round(share, 2))
    assert ((share >= 0) & (share <= 1)).all()
    np.testing.assert_array_equal(price, np.round(price, 1))


def test_imputed_values_look_like_the_observed_ones(table):
    model = Imputer(plausible=True, max_iter=20, random_state=0)
    raw = Imputer(max_iter=20, random_state=0).fit_transform(table)

    filled = model.fit_transform(table)

    looks_observed(filled)
    looks_observed(model.transform(table))
    looks_observed(model.sample(table, n_draws=1, random_state=0)[0])
    missing = np.isnan(table)
    np.testing.assert_array_equal(filled[~missing], table[~missing])
    assert (raw[missing[:, 0], 0] != filled[missing[:, 0], 0]).any()
    np.testing.assert_array_equal(raw[:, 3], filled[:, 3])  # a measurement is not rounded


def test_intervals_are_within_the_limits_and_not_rounded(table):
    model = Imputer(plausible=True, max_iter=20, random_state=0).fit(table)
    lower, upper = model.interval(table)
    assert (lower[:, :3] >= 0).all()
    assert (upper[:, 1] <= 1).all()
    assert (upper[:, 0] != np.round(upper[:, 0])).any()


def test_a_saved_model_imputes_the_same(table, tmp_path):
    model = Imputer(plausible=True, max_iter=20, random_state=0).fit(table)
    model.save(tmp_path / "model.hirank")
    again = hirank.load(tmp_path / "model.hirank")
    np.testing.assert_array_equal(again.transform(table), model.transform(table))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_complete_does_so_for_data_frames(table, make):
    frame = make(dict(zip("abcd", table.T, strict=True)))
    if make is pl.DataFrame:
        frame = frame.fill_nan(None)
    looks_observed(np.asarray(hirank.complete(frame, max_iter=20)))
    with pytest.raises(AssertionError):
        looks_observed(np.asarray(hirank.complete(frame, max_iter=20, plausible=False)))


def test_complete_rounds_arrays_only_if_asked(table):
    with pytest.raises(AssertionError):
        looks_observed(hirank.complete(table, max_iter=20))
    looks_observed(hirank.complete(table, max_iter=20, plausible=True))


def test_whole_numbers_of_a_nullable_type_stay_so():
    frame = pd.DataFrame(
        {"n": pd.array([1, 2, None, 4, 5, 6, 7, 8] * 8, "Int64"), "x": np.arange(64)}
    )
    assert hirank.complete(frame, max_iter=20)["n"].dtype == "Int64"


def test_a_wrong_value_is_refused(table):
    with pytest.raises(ParameterError, match="plausible"):
        Imputer(plausible="yes").fit(table)
