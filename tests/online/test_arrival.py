import numpy as np
import pytest

from hirank.online.arrival import hold_out_oldest


def rows_with_ages(m, n=400):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((n, m)) < 0.3, np.nan, 1.0)
    rows[:, :3] = 1.0
    held_out = np.zeros(rows.shape, bool)
    held_out[:, 0] = True
    return rows, rng.integers(1, 50, (n, m)), held_out


@pytest.mark.parametrize("m", [3, 8, 60])
def test_as_many_further_entries_are_held_out_and_only_observed_ones(m):
    rows, ages, held_out = rows_with_ages(m)
    more = hold_out_oldest(rows, ages, held_out, np.random.default_rng(0))
    assert not (more & (np.isnan(rows) | held_out)).any()
    np.testing.assert_array_equal(more.sum(axis=1), held_out.sum(axis=1))


def test_these_have_the_oldest_last_values():
    rows, ages, held_out = rows_with_ages(20)
    more = hold_out_oldest(rows, ages, held_out, np.random.default_rng(0))
    rest = ~np.isnan(rows) & ~held_out & ~more
    for row in range(len(rows)):
        assert ages[row, more[row]].min() >= ages[row, rest[row]].max()


def test_a_row_keeps_an_observed_entry():
    rows = np.array([[1.0, np.nan, np.nan], [1.0, 2.0, np.nan]])
    held_out = np.array([[False] * 3, [True, False, False]])
    more = hold_out_oldest(rows, np.ones((2, 3)), held_out, np.random.default_rng(0))
    assert not more[0].any()
    assert more[1].tolist() == [False, True, False]
