"""Decimals and limits of observed values, and values that are made to look like them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.bounds import Bounds
from hirank.core.columns import Columns
from hirank.core.plausible import MAX_DECIMALS, ObservedValues

COLUMNS = {
    "counts": ([3.0, 0.0, 250.0], (0, 0, np.inf)),
    "shares": ([0.25, 1.0, 0.0], (2, 0, 1)),
    "percent": ([12.5, 99.0, 0.5], (1, 0, 100)),
    "temperatures": ([-3.5, 20.1], (1, -np.inf, np.inf)),
    "debts": ([-100.0, -20.0], (0, -np.inf, 0)),
    "measurements": ([1 / 3, 2 / 7], (-1, 0, 1)),
    "binary": ([0.0, 1.0], (0, 0, 1)),
    "large": ([1e300, 5e17], (0, 0, np.inf)),
    "many decimals": ([0.1234567, 0.2], (-1, 0, 1)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_decimals_and_limits_of_a_column(name):
    values, expected = COLUMNS[name]
    x = np.array(values)[:, None]

    found = ObservedValues.measure(x, np.ones(x.shape, bool))

    assert (found.decimals[0], found.limits.lower[0], found.limits.upper[0]) == expected
    found.check()


def test_single_precision_has_the_decimals_that_were_written():
    x = np.array([[0.1], [2.7], [33.3]], dtype=np.float32)
    assert ObservedValues.measure(x, np.ones(x.shape, bool)).decimals[0] == 1


def test_missing_entries_do_not_count():
    x = np.array([[1.0], [np.nan], [-0.5]])
    found = ObservedValues.measure(x, np.array([[True], [False], [False]]))
    assert (found.decimals[0], found.limits.lower[0], found.limits.upper[0]) == (0, 0, 1)


def columns_like(X):
    observed = np.ones(X.shape, bool)
    found = ObservedValues.measure(X, observed)
    return replace(Columns.measure(X, observed, scale=True), imitated=found)


@given(arrays(np.float64, (7, 3), elements=st.floats(-1e6, 1e6)), st.integers(0, MAX_DECIMALS))
def test_observed_values_stay_as_they_are(X, decimals):
    X = np.round(X, decimals)
    columns = columns_like(X)
    again = columns.constrain(X, rounded=True)
    np.testing.assert_allclose(again, X, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(columns.constrain(again, rounded=True), again)


@given(arrays(np.float64, (5, 3), elements=st.floats(-1e9, 1e9)))
def test_values_are_within_the_limits_and_rounded(values):
    columns = columns_like(np.array([[0.5, 3.0, -1.25], [0.0, 70.0, -2.0]]))
    filled = columns.constrain(values, rounded=True)
    assert (filled >= columns.limits.lower).all()
    assert (filled <= columns.limits.upper).all()
    np.testing.assert_array_equal(np.round(filled[:, 1]), filled[:, 1])


def test_bounds_that_are_given_come_before_the_limits_of_observed_values():
    columns = columns_like(np.array([[0.0, 5.0], [1.0, 7.0]]))
    given = Bounds(np.array([-5.0, -np.inf]), np.array([np.inf, 6.5]))
    values = np.array([[-9.0, -9.0], [9.0, 9.0]])

    filled = replace(columns, bounds=given).constrain(values, rounded=True)

    np.testing.assert_array_equal(filled, [[-5, 0], [1, 6]])


@pytest.mark.parametrize("decimals", [[MAX_DECIMALS + 1], [-2], [0, 0]])
def test_parts_that_do_not_fit_are_refused(decimals):
    with pytest.raises(ValueError, match="decimals"):
        ObservedValues(np.array(decimals), Bounds(np.zeros(1), np.ones(1))).check()
