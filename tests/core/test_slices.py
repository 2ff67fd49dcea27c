"""Computations that are cut into slices."""

import threading

import numpy as np
import pytest

from hirank.core.slices import Slices, count_work
from hirank.core.threads import Workers, current_n_jobs


def steps(count, found):
    """Count ten multiplications per step, and note the steps that were reached."""
    for i in range(count):
        found.append(i)
        count_work(10)
    return count


def test_a_slice_ends_with_the_step_that_reaches_its_work():
    found = []
    slices = Slices(lambda: steps(5, found), budget=25)

    reached = []
    while not slices.advance():
        reached.append(len(found))

    assert reached == [3]
    assert slices.result() == 5
    assert slices.taken == 2


def test_the_result_can_be_asked_for_before_the_last_slice():
    slices = Slices(lambda: steps(9, []), budget=10)
    slices.advance()

    assert slices.result() == 9
    assert slices.done


def test_work_outside_of_slices_is_not_waited_for():
    assert steps(3, []) == 3


def test_errors_are_raised_where_the_slice_is_computed():
    def fail():
        count_work(10)
        raise ValueError("no")

    slices = Slices(fail, budget=10)
    assert not slices.advance()
    for call in (slices.advance, slices.advance, slices.result):
        with pytest.raises(ValueError, match="no"):
            call()


def test_a_computation_that_nobody_refers_to_ends():
    before = set(threading.enumerate())
    slices = Slices(lambda: steps(5, []), budget=10)
    slices.advance()
    (thread,) = set(threading.enumerate()) - before

    del slices

    thread.join(5)
    assert not thread.is_alive()


def test_settings_of_numpy_and_the_number_of_jobs_hold_in_slices():
    with Workers(3), np.errstate(over="raise"):
        slices = Slices(lambda: (np.geterr()["over"], current_n_jobs()), budget=1)
        assert slices.result() == ("raise", 3)
