import numpy as np
import pytest

from hirank.datasets import missing_gaps, uniform_missing
from hirank.models.gaps import check_times, gap_lengths, hide_like, interpolate, too_long


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_lines_in_time_come_back_with_uneven_times(rng):
    times = np.cumsum(rng.uniform(0.1, 5, size=200))
    X = np.outer(times, [1.0, -2.0, 0.0]) + np.array([3.0, 0.0, 1.0])
    observed = rng.random(X.shape) < 0.3
    observed[[0, -1]] = True
    filled = interpolate(np.where(observed, X, np.nan), observed, times)
    np.testing.assert_allclose(filled, X, rtol=1e-12)


def test_ends_keep_the_nearest_value_and_empty_features_are_zero():
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


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ([0, 1], "one number for each of 3 rows"),
        ([0, 2, 2], "row 2 is no later than row 1"),
        ([0, np.nan, 2], "must not hold NaN"),
    ],
)
def test_times_that_can_not_be_used(times, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_times(times, 3)


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7])
def test_hidden_gaps_are_as_long_as_the_tables_own(rate, rng):
    observed = missing_gaps((2000, 20), rate, gaps=30, random_state=0)
    hidden = hide_like(observed, rng)
    assert not (hidden & ~observed).any()
    assert 0.03 < hidden.sum() / observed.sum() < 0.1
    own = gap_lengths(observed)[~observed].mean()
    made = gap_lengths(observed & ~hidden)[hidden].mean()
    assert 0.8 * own < made < 1.2 * own


def test_hidden_entries_of_scattered_ones_are_nearly_scattered(rng):
    observed = uniform_missing((2000, 10), 0.5, random_state=0)
    hidden = hide_like(observed, rng)
    own = gap_lengths(observed)[~observed].mean()
    made = gap_lengths(observed & ~hidden)[hidden].mean()
    assert 0.8 * own < made < 1.6 * own
    assert (observed & ~hidden).sum(axis=0).min() >= 2


def test_nothing_is_hidden_of_complete_or_tiny_tables(rng):
    assert not hide_like(np.ones((500, 10), bool), rng).any()
    tiny = np.ones((10, 4), bool)
    tiny[3, 2] = False
    assert not hide_like(tiny, rng).any()
