import numpy as np
import pytest
from helpers.saved_state import differences

from hirank.persistence.stacked import stack, unstack

STATES = [
    {"a": np.arange(6.0).reshape(2, 3), "b": [1, {"c": None}], "d": np.zeros((0, 2))},
    {"a": np.asfortranarray(np.ones((2, 3))), "b": [2, {"c": 1.5}], "d": np.ones((1, 2))},
    {"a": np.ones((2, 3)), "b": [3, {"c": "x"}], "d": np.ones((2, 2))},
]


def test_stacked_states_come_back_to_the_bit_and_in_their_order():
    found = unstack(stack(STATES), 3)
    assert not differences(found, STATES)
    assert [one["a"].flags.f_contiguous for one in found] == [False, True, False]


def test_there_is_one_array_for_each_field():
    together = stack(STATES)
    assert together["a"]["stacked"].shape == (18,)
    assert len(together["d"]["forms"]) == 3


@pytest.mark.parametrize("mixed", [[np.zeros(2), None], [np.zeros(2), np.zeros(2, int)], [[1], []]])
def test_what_differs_in_kind_is_kept_apart(mixed):
    assert list(stack(mixed)) == ["each"]
    assert not differences(unstack(stack(mixed), 2), mixed)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        1.5,
        {"each": [1]},
        {"each": 2},
        {"stacked": np.zeros(3), "forms": [[[1], "C"]]},
        {"stacked": np.zeros(2), "forms": [[[-1], "C"], [[3], "C"]]},
        {"stacked": np.zeros(2), "forms": [[[1], "K"]]},
        {"stacked": np.zeros(2), "forms": [[1]]},
        {"stacked": np.zeros((1, 2)), "forms": [[[1], "C"]]},
        {"stacked": np.zeros(2), "forms": [[[1], "C"]] * 3},
    ],
    ids=repr,
)
def test_what_is_not_stacked_for_so_many_records_is_an_error(wrong):
    with pytest.raises(ValueError, match=r"stacked|each"):
        unstack(wrong, 2)
