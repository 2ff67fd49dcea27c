import numpy as np
import pytest
from helpers.estimators import fast_imputer
from hypothesis import given
from hypothesis import strategies as st

from hirank.estimators.plot_data import (
    block_edges,
    check_coverage,
    column_names,
    evenly_spaced,
    linear_threshold,
    missing_rates,
    restore_columns,
    split_stages,
)
from hirank.optim.trace import TRACE


@given(
    st.integers(1, 30), st.integers(1, 12), st.integers(1, 10), st.integers(1, 5), st.integers(0, 9)
)
def test_blocks_contain_the_share_of_their_missing_entries(n, m, rows, columns, seed):
    observed = np.random.default_rng(seed).random((n, m)) < 0.6
    found = missing_rates(observed, rows, columns)
    assert found.shape == (min(n, rows), min(m, columns))
    down, across = block_edges(n, rows), block_edges(m, columns)
    for i in range(len(found)):
        for j in range(found.shape[1]):
            block = observed[down[i] : down[i + 1], across[j] : across[j + 1]]
            assert found[i, j] == pytest.approx((~block).mean())


@given(st.integers(0, 500), st.integers(2, 60))
def test_few_of_many_are_evenly_spaced(n, max_count):
    found = evenly_spaced(n, max_count)
    assert len(found) == min(n, max_count)
    assert len(set(found.tolist())) == len(found)
    if n:
        assert (found[0], found[-1]) == (0, n - 1)


def test_stages_are_split_and_thinned_but_keep_their_ends():
    trace = np.zeros(1000, TRACE)
    trace["step"], trace["stage"] = np.arange(1000), np.repeat([0, 1, 2, 3], [1, 499, 300, 200])
    trace["objective"][500] = np.nan
    stages = split_stages(trace, 100)
    assert [stage["step"][0] for stage in stages] == [0, 1, 501, 800]
    assert [stage["step"][-1] for stage in stages] == [0, 499, 799, 999]
    assert sum(map(len, stages)) <= 104
    assert split_stages(trace[:0]) == []


def test_negative_objectives_need_a_symmetric_logarithmic_axis():
    assert linear_threshold(np.array([1e-9, 5.0])) == 0
    assert linear_threshold(np.array([-3.0, 5e20])) == pytest.approx(1e12)
    assert linear_threshold(np.zeros(3)) == 1
    assert linear_threshold(np.zeros(0)) == 0


def test_coverage_is_checked_at_entries_that_widths_were_not_fitted_to():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(150, 5)) / 3
    X[rng.random(X.shape) < 0.2] = np.nan
    model = fast_imputer().fit(X)
    for level in (0.5, 0.9):
        found = check_coverage(model, level)
        np.testing.assert_array_equal(found.feature, model.held_out_["feature"])
        assert found.share == pytest.approx(level, abs=0.06)


def test_coverage_is_unknown_if_nothing_was_held_out():
    X = np.random.default_rng(0).normal(size=(6, 3))
    model = fast_imputer().fit(X)
    assert check_coverage(model, 0.9) is None


def test_dropped_columns_come_back_empty():
    kept = np.array([[1.0, 2.0]])
    has_values = np.array([True, False, True])
    np.testing.assert_array_equal(restore_columns(kept, has_values), [[1, np.nan, 2]])
    full = np.ones((1, 3))
    assert restore_columns(full, has_values) is full


def test_names_are_given_or_numbers():
    assert column_names(2, None) == ["0", "1"]
    assert column_names(2, ["a", 7]) == ["a", "7"]
    with pytest.raises(ValueError, match="one entry per column, 2; got 1"):
        column_names(2, ["a"])
