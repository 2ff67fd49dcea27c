import numpy as np
import pytest

from hirank.online.arrival import MAX_HELD_OUT, hold_out


def rows_with_ages(m, n=400):
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((n, m)) < 0.3, np.nan, 1.0)
    rows[:, :3] = 1.0
    return rows, rng.integers(1, 50, (n, m))


@pytest.mark.parametrize("m", [3, 8, 60])
def test_a_row_keeps_observed_entries_and_only_these_are_held_out(m):
    rows, ages = rows_with_ages(m)
    held_out = hold_out(rows, ages, np.random.default_rng(0))
    observed = ~np.isnan(rows)
    assert not (held_out & ~observed).any()
    assert held_out.any()
    assert (held_out.sum(axis=1) < observed.sum(axis=1)).all()


def test_in_narrow_rows_no_more_entries_are_held_out_than_without_order():
    rows, ages = rows_with_ages(8)
    ordered = hold_out(rows, ages, np.random.default_rng(0)).sum(axis=1)
    np.testing.assert_array_equal(ordered, hold_out(rows, None, np.random.default_rng(0)).sum(1))


def test_in_wide_rows_those_with_the_oldest_last_values_are_added():
    rows, ages = rows_with_ages(60)
    plain = hold_out(rows, None, np.random.default_rng(0))
    ordered = hold_out(rows, ages, np.random.default_rng(0))
    assert (plain <= ordered).all()
    np.testing.assert_array_equal(ordered.sum(axis=1), 2 * plain.sum(axis=1))
    assert (ordered.sum(axis=1) <= MAX_HELD_OUT * (~np.isnan(rows)).sum(axis=1)).all()
    added = ordered & ~plain
    rest = ~np.isnan(rows) & ~ordered
    for row in range(len(rows)):
        assert ages[row, added[row]].min() >= ages[row, rest[row]].max()


def test_half_of_the_narrow_rows_hold_out_the_oldest():
    rows, ages = rows_with_ages(8)
    ages = ages + np.linspace(0, 0.5, 8)  # no two alike
    held_out = hold_out(rows, ages, np.random.default_rng(0))
    oldest = np.where(np.isnan(rows), -1, ages).argmax(axis=1)
    share = held_out[np.arange(len(rows)), oldest].mean()
    assert 0.5 < share < 0.7
