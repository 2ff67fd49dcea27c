import numpy as np
import pytest

from hirank.models.gaps import gap_lengths, interpolate, too_long
from hirank.models.timeline import Timeline


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_lines_in_time_are_recovered_with_uneven_times(rng):
    times = np.cumsum(rng.uniform(0.1, 5, size=200))
    X = np.outer(times, [1.0, -2.0, 0.0]) + np.array([3.0, 0.0, 1.0])
    observed = rng.random(X.shape) < 0.3
    observed[[0, -1]] = True
    filled = interpolate(np.where(observed, X, np.nan), observed, times)
    np.testing.assert_allclose(filled, X, rtol=1e-12)


def test_ends_take_the_nearest_value_and_empty_features_are_0():
    X = np.array([[9.0, 9], [1, 9], [9, 9], [3, 9], [9, 9]])
    observed = np.array([[0, 0], [1, 0], [0, 0], [1, 0], [0, 0]], bool)
    filled = interpolate(X, observed)
    assert filled.T.tolist() == [[1, 1, 2, 3, 3], [0, 0, 0, 0, 0]]


def test_gap_lengths_match_a_plain_loop(rng):
    observed = rng.random((60, 7)) < 0.4
    observed[:, 2] = False
    observed[:, 3] = True
    expected = np.zeros(observed.shape, int)
    for j in range(7):
        i = 0
        while i < 60:
            k = i
            while k < 60 and not observed[k, j]:
                k += 1
            expected[i:k, j] = k - i
            i = k + 1
    np.testing.assert_array_equal(gap_lengths(observed), expected)
    np.testing.assert_array_equal(too_long(observed, 3), expected > 3)


def test_gaps_end_where_a_group_ends():
    X = np.array([[1.0], [9], [9], [5], [9], [7]])
    observed = np.array([[1, 0, 0, 1, 0, 1]], bool).T
    timeline = Timeline(np.arange(6.0), np.array([0, 0, 1, 1, 1, 1]))

    filled = interpolate(X, observed, timeline)

    assert filled.ravel().tolist() == [1, 1, 5, 5, 6, 7]
    assert too_long(observed, 1).any()
    assert not too_long(observed, 1, timeline).any()


def test_gaps_of_rows_in_any_order_are_found(rng):
    observed = rng.random((60, 3)) < 0.5
    order = rng.permutation(60)

    found = too_long(observed[order], 2, Timeline(np.arange(60.0)[order]))

    np.testing.assert_array_equal(found, too_long(observed, 2)[order])
