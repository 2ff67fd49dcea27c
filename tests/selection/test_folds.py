import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.selection.folds import ENOUGH, FEWEST, MOST_FOLDS, PARTS, folds


@given(
    observed=arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 12))),
    seed=st.integers(0, 9),
)
def test_folds_are_disjoint_and_leave_enough(observed, seed):
    found = folds(observed, np.random.default_rng(seed))
    assert len(found) <= MOST_FOLDS
    assert np.sum(found, axis=0).max(initial=0) <= 1
    for hidden in found:
        assert hidden.any()
        assert not (hidden & ~observed).any()
        left = observed & ~hidden
        assert (left.any(axis=1) | ~observed.any(axis=1)).all()
        touched = hidden.any(axis=0)
        assert (left.sum(axis=0)[touched] >= 2).all()


@pytest.mark.parametrize("seed", range(3))
def test_each_feature_gives_its_share(seed):
    rng = np.random.default_rng(seed)
    # Complete in one feature: no row can be emptied, so that nothing is taken back.
    observed = rng.random((157, 9)) < np.linspace(0.2, 0.95, 9)
    observed[:, 0] = True
    found = folds(observed, rng)
    assert found
    for hidden in found:
        share = observed.sum(axis=0) / PARTS
        share[0] = 0  # has no holes
        assert np.abs(hidden.sum(axis=0) - share).max() <= 1


def test_features_without_holes_are_not_judged_by_unless_the_others_are_thin():
    observed = np.ones((60, 4), bool)
    observed[::3, 1] = False
    found = folds(observed, np.random.default_rng(0))
    assert np.sum(found, axis=0)[:, 1].sum() == 40
    assert not np.any(found, axis=0)[:, [0, 2, 3]].any()
    observed[20:, 1] = False
    assert np.any(folds(observed, np.random.default_rng(0)), axis=0)[:, 0].any()


def test_small_features_are_not_all_in_the_same_folds():
    observed = np.zeros((60, 40), bool)
    observed[:, 0] = True
    for j in range(1, 40):
        observed[j : j + 4, j] = True  # a few entries each: less than one part
    counts = [hidden[:, 1:].sum() for hidden in folds(observed, np.random.default_rng(0))]
    assert min(counts) > 0.5 * max(counts)


@pytest.mark.parametrize(("count", "any_found"), [(FEWEST - 1, False), (FEWEST, True)])
def test_too_few_entries_are_not_judged_by(count, any_found):
    observed = np.zeros((20, 5), bool)
    observed.ravel()[:count] = True
    assert bool(folds(observed, np.random.default_rng(0))) == any_found


def test_a_large_table_needs_one_fold_a_small_one_several():
    rng = np.random.default_rng(0)
    assert len(folds(np.ones((500, 10), bool), rng)) == 1
    assert len(folds(np.ones((20, 10), bool), rng)) == MOST_FOLDS
    several = folds(np.ones((150, 10), bool), rng)
    assert 1 < len(several) < MOST_FOLDS
    assert sum(hidden.sum() for hidden in several) >= ENOUGH


def test_folds_are_the_same_for_the_same_chance():
    observed = np.random.default_rng(0).random((50, 6)) < 0.7
    one, other = (folds(observed, np.random.default_rng(5)) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_rows_with_one_entry_hide_nothing():
    observed = np.zeros((100, 4), bool)
    observed[np.arange(100), np.arange(100) % 4] = True
    assert folds(observed, np.random.default_rng(0)) == []
