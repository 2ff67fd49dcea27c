import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.masking import MaskingConfig
from hirank.core.missingness import (
    columns_missing_together,
    make_pattern_folds,
    missing_in_blocks,
    missing_in_runs,
    share_unlike,
)
from hirank.datasets import missing_gaps, uniform_missing

EAGER = MaskingConfig(min_masked=1, min_observed=1, min_incomplete=1)  # masks of tiny tables too


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blocks(rng):
    """Three groups of three columns; each is missing in a fifth of 300 rows."""
    fails = rng.random((300, 3)) < 0.2
    fails[fails.all(axis=1)] = False
    return np.repeat(~fails, 3, axis=1)


# How values are missing


@pytest.mark.parametrize("missing", [0.05, 0.2, 0.5, 0.7])
@pytest.mark.parametrize("shape", [(60, 4), (300, 12), (1000, 40)])
def test_entries_missing_at_random_are_not_missing_in_blocks(missing, shape):
    observed = [uniform_missing(shape, missing, random_state=seed) for seed in range(20)]

    assert not any(map(missing_in_blocks, observed))


def test_columns_with_different_rates_are_not_missing_in_blocks(rng):
    observed = rng.random((500, 8)) > np.linspace(0, 0.7, 8)

    assert not missing_in_blocks(observed)


def test_groups_of_columns_and_ends_of_rows_are_missing_in_blocks(blocks, rng):
    ends = np.arange(9) < rng.integers(1, 18, size=(300, 1))

    assert missing_in_blocks(blocks)
    assert missing_in_blocks(ends)


def test_a_complete_table_has_no_pattern():
    observed = np.ones((50, 4), bool)

    assert not missing_in_blocks(observed)
    assert not missing_in_runs(observed)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.7])
def test_gaps_are_runs_and_single_entries_are_not(rate, rng):
    gaps = missing_gaps((1000, 20), rate, gaps=20, random_state=0)

    assert missing_in_runs(gaps)
    assert not missing_in_runs(rng.permutation(gaps))
    assert not missing_in_runs(uniform_missing((1000, 20), rate, random_state=0))


def test_complete_and_empty_tables_have_no_runs():
    assert not missing_in_runs(np.ones((100, 3), bool))
    assert not missing_in_runs(np.zeros((100, 3), bool))
    assert not missing_in_runs(np.ones((0, 3), bool))


def test_columns_missing_together_share_a_label(blocks):
    labels = columns_missing_together(blocks)

    np.testing.assert_array_equal(labels, np.repeat([0, 3, 6], 3))


def test_columns_missing_at_random_and_complete_ones_have_labels_of_their_own():
    observed = uniform_missing((300, 6), 0.3, random_state=0)
    observed[:, :2] = True

    np.testing.assert_array_equal(columns_missing_together(observed), np.arange(6))


# Folds


@given(
    observed=arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 12))),
    seed=st.integers(0, 9),
)
def test_folds_hold_out_observed_entries_and_leave_enough(observed, seed):
    folds = make_pattern_folds(observed, np.random.default_rng(seed), config=EAGER)

    assert not (folds.judged & ~observed).any()
    assert 0 <= share_unlike(observed) <= 1
    for mask in folds.masks:
        left = observed & ~mask
        assert not (mask & ~observed).any()
        assert left[mask.any(axis=1)].any(axis=1).all()
        assert (left[:, mask.any(axis=0)].sum(axis=0) >= 2).all()


def test_judged_rows_miss_what_other_rows_miss(blocks, rng):
    folds = make_pattern_folds(blocks, rng)

    patterns = set(map(tuple, blocks))
    for mask in folds.masks:
        rows = (mask & folds.judged).any(axis=1)
        assert rows.sum() > 5
        assert set(map(tuple, (blocks & ~mask)[rows])) <= patterns


def test_a_third_of_the_held_out_entries_are_single_ones(blocks, rng):
    folds = make_pattern_folds(blocks, rng)

    held_out = sum(mask.sum() for mask in folds.masks)
    single = sum((mask & ~folds.judged).sum() for mask in folds.masks)
    assert 0.2 < single / held_out < 0.5


def test_a_column_that_is_missing_in_most_rows_keeps_most_of_its_entries(rng):
    observed = np.ones((400, 8), bool)
    observed[rng.random(400) < 0.6, 0] = False
    observed[rng.random(400) < 0.05, 5:] = False

    folds = make_pattern_folds(observed, rng)

    for mask in folds.masks:
        assert 0 < mask[:, 0].sum() < 0.3 * observed[:, 0].sum()
        # A fifth of the missing entries are in these columns, as of the 300 that a fold may judge:
        # they do not take the place of what is left in the first column.
        assert (mask & folds.judged)[:, 5:].sum() < 120


def test_each_row_receives_a_pattern_in_one_fold_at_most(blocks, rng):
    folds = make_pattern_folds(blocks, rng)

    times = sum((mask & folds.judged).any(axis=1).astype(int) for mask in folds.masks)
    assert len(folds.masks) > 1
    assert times.max() == 1


def test_patterns_that_are_nowhere_alike_are_counted(rng):
    # No row observes both halves: nothing shows how well one is imputed from the other.
    left = rng.random(200) < 0.5
    observed = np.column_stack([np.repeat(left[:, None], 4, 1), np.repeat(~left[:, None], 4, 1)])

    assert share_unlike(observed) == 1.0
    assert share_unlike(np.vstack([observed, np.ones((1, 8), bool)])) == 0.0


@pytest.mark.parametrize("missing", [0.2, 0.5, 0.7])
def test_entries_missing_at_random_are_like_others(missing):
    assert share_unlike(uniform_missing((300, 10), missing, random_state=0)) < 0.02


def test_folds_are_the_same_for_the_same_seed(blocks):
    first, second = (make_pattern_folds(blocks, np.random.default_rng(1)) for _ in range(2))

    np.testing.assert_array_equal(first.masks, second.masks)
    np.testing.assert_array_equal(first.judged, second.judged)
