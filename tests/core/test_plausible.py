"""Decimals and limits of observed values, and values that are made to look like them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.bounds import Bounds
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


@given(arrays(np.float64, (7, 3), elements=st.floats(-1e6, 1e6)), st.integers(0, MAX_DECIMALS))
def test_observed_values_are_their_own_imitation(X, decimals):
    X = np.round(X, decimals)
    found = ObservedValues.measure(X, np.ones(X.shape, bool))
    again = found.imitate(X)
    np.testing.assert_allclose(again, X, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found.imitate(again), again)


@given(arrays(np.float64, (5, 3), elements=st.floats(-1e9, 1e9)))
def test_imitations_are_within_the_limits(values):
    X = np.array([[0.5, 3.0, -1.25], [0.0, 70.0, -2.0]])
    found = ObservedValues.measure(X, np.ones(X.shape, bool))
    filled = found.imitate(values)
    assert (filled >= found.limits.lower).all()
    assert (filled <= found.limits.upper).all()
    np.testing.assert_array_equal(np.round(filled[:, 1]), filled[:, 1])


@pytest.mark.parametrize("decimals", [[MAX_DECIMALS + 1], [-2], [0, 0]])
def test_parts_that_do_not_fit_are_refused(decimals):
    with pytest.raises(ValueError, match="decimals"):
        ObservedValues(np.array(decimals), Bounds(np.zeros(1), np.ones(1))).check()
