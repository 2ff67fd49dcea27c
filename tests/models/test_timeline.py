import numpy as np
import pytest

from hirank.models.timeline import Timeline


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ([0, 1], "one number for each of 3 rows"),
        ([0, 2, 2], "row 2 is not later than row 1"),
        ([0, np.nan, 2], "must be finite"),
    ],
)
def test_times_that_cannot_be_used_are_an_error(times, complaint):
    with pytest.raises(ValueError, match=complaint):
        Timeline.sorted(times, 3)


def test_rows_are_ordered_within_groups():
    timeline = Timeline(np.array([3.0, 1, 2, 1, 2]), np.array([1, 0, 1, 1, 0]))

    order = timeline.order

    assert order.tolist() == [1, 4, 3, 2, 0]
    assert timeline.take(order).spans() == [slice(0, 2), slice(2, 5)]


def test_rows_without_times_are_counted_in_each_group():
    timeline = Timeline.counted(6, np.array([1, 0, 1, 1, 0, 1]))

    assert timeline.times.tolist() == [0, 0, 1, 2, 1, 3]
    assert timeline.take(timeline.order).unit == 1


def test_steps_are_not_counted_between_groups():
    timeline = Timeline(np.array([0.0, 2, 4, 100, 102, 106]), np.array([0, 0, 0, 1, 1, 1]))

    steps = timeline.steps(timeline.unit)

    assert timeline.unit == 2
    assert steps.linked.tolist() == [False, True, True, False, True, True]
    assert steps.twice.tolist() == [False, False, True, False, False, True]
    assert steps.length.tolist() == [1, 1, 1, 1, 1, 2]


def test_gaps_of_years_and_rows_of_nearly_the_same_time_have_limited_steps():
    times = np.array([0.0, 1, 2, 3, 1e9, 1e9 + 1e-6])

    assert Timeline(times).steps(1.0).length.tolist() == [1, 1, 1, 1, 1000, 0.1]


def test_rows_to_fit_on_come_from_the_middle_of_every_group():
    group = np.repeat([0, 1], [40, 20])

    rows = Timeline(np.arange(60.0), group).middle(30)

    assert rows.tolist() == [*range(10, 30), *range(45, 55)]


def test_stretches_that_are_not_next_to_each_other_are_not_linked():
    timeline = Timeline(np.arange(9.0), np.repeat([0, 1], [5, 4]))

    part = timeline.stretches(np.array([0, 1, 4, 5, 6]))

    assert part.steps(1.0).linked.tolist() == [False, True, False, False, True]
