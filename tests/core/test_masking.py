import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.masking import (
    MaskingConfig,
    make_folds,
    mask_entries,
    mask_gaps,
    mask_row_entries,
    mask_uniform,
)
from hirank.datasets import missing_gaps, uniform_missing
from hirank.models.gaps import gap_lengths

DEFAULTS = MaskingConfig()
EAGER = MaskingConfig(min_masked=1, min_observed=1, min_incomplete=1)  # masks of tiny tables too


def mask_one_fold(observed, rng, **arguments):
    folds = make_folds(observed, rng, **arguments)
    return folds[0] if folds else np.zeros(observed.shape, bool)


def mask_half(observed, rng, *, groups=None, config=None):
    return mask_uniform(observed, 0.5, rng, groups=groups)


MASKS = [mask_half, mask_entries, mask_row_entries, mask_gaps, mask_one_fold]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# All masks


@pytest.mark.parametrize("mask", MASKS)
@given(
    observed=arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 12))),
    seed=st.integers(0, 9),
)
def test_masks_hold_out_observed_entries_and_leave_enough(mask, observed, seed):
    held_out = mask(observed, np.random.default_rng(seed), config=EAGER)

    left = observed & ~held_out
    assert not (held_out & ~observed).any()
    assert left[held_out.any(axis=1)].any(axis=1).all()
    if mask is not mask_row_entries:  # rows arrive one by one, so columns are not counted
        assert (left[:, held_out.any(axis=0)].sum(axis=0) >= 2).all()


@pytest.mark.parametrize("mask", MASKS)
def test_masks_are_the_same_for_the_same_seed(mask):
    observed = uniform_missing((500, 8), 0.3, random_state=0)

    one, other = (mask(observed, np.random.default_rng(5)) for _ in range(2))

    assert one.any()
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mask", MASKS)
def test_columns_of_a_group_are_held_out_together(mask, rng):
    groups = [7, 2, 2, 5, 7, 9, 2]
    observed = rng.random((1000, 7)) < 0.8

    held_out = mask(observed, rng, groups=groups)

    for label in set(groups):
        mine = held_out[:, np.equal(groups, label)]
        assert mine.any()
        assert (mine.all(axis=1) == mine.any(axis=1)).all()
    assert not (held_out & ~observed).any()


@pytest.mark.parametrize("mask", MASKS)
def test_rows_keep_a_group_and_columns_two_entries(mask, rng):
    groups = [0, 0, 0, 1, 1]
    observed = np.repeat(rng.random((1500, 2)) < 0.6, [3, 2], axis=1)

    held_out = mask(observed, rng, groups=groups, config=MaskingConfig(min_row=2))

    left = observed & ~held_out
    touched = held_out.any(axis=1)
    assert left[touched].any(axis=1).all()
    assert (left.sum(axis=0) >= 2).all()


@pytest.mark.parametrize("mask", MASKS)
def test_groups_of_one_column_change_nothing(mask):
    observed = uniform_missing((500, 8), 0.3, random_state=0)

    with_groups = mask(observed, np.random.default_rng(3), groups=range(8))

    np.testing.assert_array_equal(with_groups, mask(observed, np.random.default_rng(3)))


def test_groups_that_do_not_fit_the_columns_are_an_error(rng):
    with pytest.raises(ValueError, match="one label for each of 4 columns"):
        mask_uniform(np.ones((9, 4), bool), 0.2, rng, groups=[0, 0, 1])


# A share of all entries


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_a_share_of_the_entries_is_held_out_and_two_are_left_in_each_row(seed, rate):
    rng = np.random.default_rng(seed)
    observed = rng.random((200, 12)) < rate

    mask = mask_entries(np.asfortranarray(observed), rng)

    count = mask.sum()
    assert count == 0 or DEFAULTS.min_masked <= count <= DEFAULTS.share * observed.sum()
    assert ((observed & ~mask)[mask.any(axis=1)].sum(axis=1) >= 2).all()


def test_nothing_is_held_out_of_a_complete_or_a_small_table(rng):
    assert not mask_entries(np.ones((200, 12), bool), rng).any()
    assert not mask_entries(rng.random((20, 5)) < 0.5, rng).any()
    assert mask_entries(rng.random((200, 12)) < 0.5, rng).any()


def test_entries_to_select_on_are_taken_from_complete_and_small_tables_too(rng):
    assert mask_entries(np.ones((200, 12), bool), rng, selecting=True).sum() == 120
    small = np.ones((60, 5), bool)
    assert DEFAULTS.min_masked <= mask_entries(small, rng, selecting=True).sum() <= 60
    assert not mask_entries(small[:59], rng, selecting=True).any()  # would be more than a fifth


def test_uniform_masks_have_the_requested_share(rng):
    observed = rng.random((1000, 20)) < 0.7

    mask = mask_uniform(observed, 0.3, rng)

    assert mask.sum() / observed.sum() == pytest.approx(0.3, abs=0.02)


# Entries of each row


def test_rows_with_few_entries_lose_none_and_others_one(rng):
    observed = rng.random((2000, 9)) < rng.random((2000, 1))

    mask = mask_row_entries(observed, rng)

    few = observed.sum(axis=1) < DEFAULTS.min_row
    assert few.any()
    assert not mask[few].any()
    assert (mask[~few].sum(axis=1) == 1).all()


def test_a_twentieth_of_a_long_row_is_held_out(rng):
    observed = np.zeros((50, 200), bool)
    observed[:, 50:150] = True

    assert (mask_row_entries(observed, rng).sum(axis=1) == 5).all()


def test_each_entry_of_a_row_is_equally_likely(rng):
    counts = mask_row_entries(np.ones((8000, 8), bool), rng).sum(axis=0)

    assert counts.sum() == 8000
    assert (np.abs(counts - 1000) < 150).all()


# Folds


@given(
    observed=arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 12))),
    seed=st.integers(0, 9),
)
def test_folds_are_disjoint_and_not_empty(observed, seed):
    folds = make_folds(observed, np.random.default_rng(seed))

    assert len(folds) <= DEFAULTS.max_folds
    assert all(fold.any() for fold in folds)
    assert np.sum(folds, axis=0).max(initial=0) <= 1


@pytest.mark.parametrize("seed", range(3))
def test_each_incomplete_column_gives_its_share_to_a_fold(seed):
    rng = np.random.default_rng(seed)
    # Complete in one column: no row can be emptied, so that no entry is restored.
    observed = rng.random((157, 9)) < np.linspace(0.2, 0.95, 9)
    observed[:, 0] = True

    folds = make_folds(observed, rng)

    share = observed.sum(axis=0) / DEFAULTS.n_parts
    share[0] = 0
    assert folds
    for fold in folds:
        assert np.abs(fold.sum(axis=0) - share).max() <= 1


def test_complete_columns_are_held_out_only_if_the_others_have_few_entries():
    observed = np.ones((60, 4), bool)
    observed[::3, 1] = False
    folds = make_folds(observed, np.random.default_rng(0))
    assert np.sum(folds, axis=0)[:, 1].sum() == 40
    assert not np.any(folds, axis=0)[:, [0, 2, 3]].any()

    observed[20:, 1] = False
    folds = make_folds(observed, np.random.default_rng(0))
    assert np.any(folds, axis=0)[:, 0].any()


def test_columns_with_few_entries_are_not_all_in_the_same_folds():
    observed = np.zeros((60, 40), bool)
    observed[:, 0] = True
    for j in range(1, 40):
        observed[j : j + 4, j] = True  # fewer entries than parts

    counts = [fold[:, 1:].sum() for fold in make_folds(observed, np.random.default_rng(0))]

    assert min(counts) > 0.5 * max(counts)


@pytest.mark.parametrize(("count", "any_fold"), [(49, False), (50, True)])
def test_a_table_with_too_few_entries_has_no_folds(count, any_fold):
    observed = np.zeros((20, 5), bool)
    observed.ravel()[:count] = True

    folds = make_folds(observed, np.random.default_rng(0), config=MaskingConfig(min_observed=50))

    assert bool(folds) == any_fold


def test_a_large_table_needs_one_fold_and_a_small_one_several(rng):
    assert len(make_folds(np.ones((500, 10), bool), rng)) == 1
    assert len(make_folds(np.ones((20, 10), bool), rng)) == DEFAULTS.max_folds
    several = make_folds(np.ones((150, 10), bool), rng)
    assert 1 < len(several) < DEFAULTS.max_folds
    assert sum(fold.sum() for fold in several) >= DEFAULTS.enough_masked


def test_the_number_of_folds_can_be_limited(rng):
    assert len(make_folds(np.ones((20, 10), bool), rng, config=MaskingConfig(max_folds=2))) == 2


def test_rows_with_one_entry_keep_it():
    observed = np.eye(4, dtype=bool)[np.arange(100) % 4]

    assert make_folds(observed, np.random.default_rng(0)) == []


# Stretches in time


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7])
def test_stretches_are_as_long_as_the_gaps_of_the_table(rate, rng):
    observed = missing_gaps((2000, 20), rate, gaps=30, random_state=0)

    mask = mask_gaps(observed, rng)

    assert 0.03 < mask.sum() / observed.sum() < 0.1
    own = gap_lengths(observed)[~observed].mean()
    made = gap_lengths(observed & ~mask)[mask].mean()
    assert 0.8 * own < made < 1.2 * own


def test_stretches_of_a_table_without_long_gaps_are_short(rng):
    observed = uniform_missing((2000, 10), 0.5, random_state=0)

    mask = mask_gaps(observed, rng)

    own = gap_lengths(observed)[~observed].mean()
    made = gap_lengths(observed & ~mask)[mask].mean()
    assert 0.8 * own < made < 1.6 * own


def test_no_stretches_are_held_out_of_complete_or_tiny_tables(rng):
    tiny = np.ones((10, 4), bool)
    tiny[3, 2] = False

    assert not mask_gaps(np.ones((500, 10), bool), rng).any()
    assert not mask_gaps(tiny, rng).any()
