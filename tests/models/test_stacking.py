import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.bounds import Bounds
from hirank.models.stacking import Blend, disagreement, typical, weigh

NUMBERS = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 6))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@given(fills=arrays(float, (30, 3), elements=NUMBERS), truth=arrays(float, 30, elements=NUMBERS))
def test_weights_are_shares_and_no_worse_than_the_best(fills, truth):
    weights = weigh(fills, truth)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    lowest = min(typical(fill - truth) for fill in fills.T)
    assert typical(fills @ weights - truth) <= lowest * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("expected", [(0.7, 0.3, 0.0), (0.2, 0.3, 0.5)])
def test_a_convex_combination_is_found_again(rng, expected):
    fills = rng.normal(size=(400, 3))
    truth = fills @ expected
    np.testing.assert_allclose(weigh(fills, truth), expected, atol=1e-3)
    noisy = weigh(fills, truth + 0.1 * rng.normal(size=400))
    np.testing.assert_allclose(noisy, expected, atol=0.05)


def test_independent_errors_are_averaged(rng):
    truth = rng.normal(size=1000)
    fills = truth[:, None] + rng.normal(size=(1000, 2)) * [0.1, 0.2]
    np.testing.assert_allclose(weigh(fills, truth), [0.8, 0.2], atol=0.06)


def test_the_best_has_all_weight_if_others_add_nothing(rng):
    truth = rng.normal(size=500)
    good = truth + 0.1 * rng.normal(size=500)
    poor = good + 0.5 * rng.normal(size=500)
    assert weigh(np.column_stack([poor, good]), truth).tolist() == [0, 1]
    assert weigh(np.column_stack([good, good + 1e-9]), truth).max() == 1
    assert weigh(good[:, None], truth).tolist() == [1]


def test_small_weights_are_taken_for_chance(rng):
    fills = rng.normal(size=(400, 3))
    weights = weigh(fills, fills @ [0.6, 0.39, 0.01])
    assert weights[2] == 0
    assert weights[:2].min() > 0.3


def test_a_few_wild_entries_do_not_decide(rng):
    fills = rng.normal(size=(400, 2))
    truth = fills @ [0.7, 0.3]
    truth[:4] = 30 * np.sign(fills[:4, 1])  # they speak for the second alone
    np.testing.assert_allclose(weigh(fills, truth), [0.7, 0.3], atol=0.1)


def test_no_units_and_no_residuals_matter(rng):
    fills = rng.normal(size=(200, 3))
    truth = fills @ [0.5, 0.5, 0] + 0.1 * rng.normal(size=200)
    for unit in (1e-12, 1e12):
        np.testing.assert_allclose(
            weigh(unit * fills, unit * truth), weigh(fills, truth), rtol=1e-4
        )
    assert weigh(np.zeros((60, 2)), np.zeros(60)).sum() == 1


class Constant:
    def __init__(self, value):
        self.value = value

    def complete(self, X, observed):
        return np.where(observed, X, self.value)


def blend(bounds=None):
    parts = (Constant(0.0), Constant(2.0), Constant(10.0))
    return Blend(parts, np.array([0.25, 0.25, 0.5]), ("a", "a", "b"), bounds)


def test_a_blend_is_the_mean_of_its_parts(rng):
    X, observed = rng.normal(size=(5, 3)), rng.random((5, 3)) < 0.5
    filled = blend().complete(X, observed)
    assert (filled[observed] == X[observed]).all()
    np.testing.assert_allclose(filled[~observed], 5.5)


def test_parts_are_within_bounds_before_their_mean(rng):
    observed = np.zeros((2, 2), bool)
    bounds = Bounds(np.array([1.0, -np.inf]), np.array([6.0, np.inf]))
    filled = blend(bounds).complete(np.zeros((2, 2)), observed)
    np.testing.assert_allclose(filled, [[0.25 * 1 + 0.25 * 2 + 0.5 * 6, 5.5]] * 2)


def test_parts_of_one_kind_do_not_spread():
    model, nothing = blend(), np.zeros((1, 1), bool)
    spread = model.spread(model.fills(np.zeros((1, 1)), nothing))
    np.testing.assert_allclose(spread, 4.5)  # of 1 and 10, half each
    same = Blend(model.parts, model.weights, ("a",) * 3)
    np.testing.assert_allclose(same.spread(same.fills(np.zeros((1, 1)), nothing)), 0, atol=1e-12)


def test_disagreement_around_the_mean_is_a_standard_deviation(rng):
    fills = rng.normal(size=(3, 4, 2))
    np.testing.assert_allclose(disagreement(fills, fills.mean(axis=0)), fills.std(axis=0))
    np.testing.assert_allclose(disagreement(fills[:1], fills[0] + 2), 2)
