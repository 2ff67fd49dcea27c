import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hirank.optim.early_stopping import FEWEST, PART, BestStage, hide


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_what_is_hidden_was_observed_and_leaves_enough(seed, rate):
    rng = np.random.default_rng(seed)
    observed = rng.random((200, 12)) < rate
    hidden = hide(np.asfortranarray(observed), rng)
    assert not (hidden & ~observed).any()
    assert hidden.sum() == 0 or FEWEST <= hidden.sum() <= PART * observed.sum()
    left = observed & ~hidden
    touched_rows, touched_columns = hidden.any(axis=1), hidden.any(axis=0)
    assert (left[touched_rows].sum(axis=1) >= 2).all()
    assert (left[:, touched_columns].sum(axis=0) >= 2).all()


def test_nothing_is_hidden_of_a_complete_or_a_tiny_table():
    rng = np.random.default_rng(0)
    assert not hide(np.ones((200, 12), bool), rng).any()
    assert not hide(rng.random((20, 5)) < 0.5, rng).any()
    assert hide(rng.random((200, 12)) < 0.5, rng).any()


def test_the_latest_stage_that_is_as_good_is_remembered():
    truth = np.ones((10, 10))
    best = BestStage(truth, np.ones((10, 10), bool))
    ends = [
        best.is_past(i, truth + e, truth[:3]) for i, e in enumerate((0.5, 0.2, 0.203, 0.3, 0.4))
    ]
    assert ends == [False, False, False, False, True]
    assert best.number == 2
    assert (truth + 0.203 == best.X).all()


def test_a_bump_does_not_end_the_path():
    truth = np.ones((10, 10))
    best = BestStage(truth, np.ones((10, 10), bool))
    ends = [best.is_past(i, truth + e, truth[:3]) for i, e in enumerate((0.2, 0.3, 0.1, 0.3, 0.05))]
    assert not any(ends)
    assert best.number == 4
