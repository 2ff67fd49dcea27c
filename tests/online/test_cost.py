import numpy as np
import pytest

from hirank.online.cost import MAX_LINES, EmpiricalCost


def make_costs(n, seed=0):
    """Return costs of n samples and of their dictionaries; every tenth sample was rejected."""
    costs = np.random.default_rng(seed).random((n, 2))
    costs[9::10] = np.nan
    return costs


def test_it_is_the_mean_over_samples_and_the_last_dictionary_over_their_number():
    costs = np.array([[3.0, 8.0], [1.0, 4.0]])

    assert EmpiricalCost().add(costs).mean == (3 + 1) / 2 + 4 / 2
    assert np.isnan(EmpiricalCost().mean)


def test_rejected_samples_are_left_out():
    costs = make_costs(50)

    cost = EmpiricalCost(every=1).add(costs)

    assert cost.mean == EmpiricalCost().add(costs[np.isfinite(costs[:, 0])]).mean
    assert (cost.count, cost.samples) == (45, 50)
    assert 10 not in cost.history["samples"]
    assert np.isfinite(cost.history["cost"]).all()
    assert np.isnan(EmpiricalCost().add(np.full((3, 2), np.nan)).mean)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_it_does_not_depend_on_how_samples_are_split(step):
    costs = make_costs(2 * MAX_LINES + 500)
    whole, parts = EmpiricalCost(every=1).add(costs), EmpiricalCost(every=1)

    for start in range(0, len(costs), step):
        parts = parts.add(costs[start : start + step])

    assert parts.mean == whole.mean
    assert (parts.history == whole.history).all()
    assert parts.every == whole.every


def test_the_history_has_the_running_mean_and_a_bounded_length():
    costs = np.column_stack([np.arange(3.0 * MAX_LINES), np.zeros(3 * MAX_LINES)])

    history = EmpiricalCost(every=1).add(costs).history

    assert MAX_LINES / 2 <= len(history) <= MAX_LINES
    assert len(np.unique(np.diff(history["samples"]))) == 1
    np.testing.assert_allclose(history["cost"], (history["samples"] - 1) / 2)  # of 0, 1, 2, ...


def test_a_pass_restarts_the_mean_and_continues_the_history():
    costs = make_costs(8)

    cost = EmpiricalCost(every=1).add(costs).restart().add(costs / 2)

    assert cost.mean == EmpiricalCost().add(costs / 2).mean
    np.testing.assert_array_equal(cost.history["samples"], np.arange(1, 17))


def test_a_history_begins_when_it_is_asked_for():
    cost = EmpiricalCost().add(make_costs(5)).recorded(True).add(make_costs(4))

    assert cost.history["samples"].tolist() == [6, 7, 8, 9]
    assert cost.history["cost"][-1] == cost.mean
    assert cost.recorded(True) is cost
    assert not len(cost.recorded(False).add(make_costs(5)).history)
