import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.core.bounds import Bounds
from hirank.models.stacking import Stack, disagreement, selection_loss, stacking_weights

NUMBERS = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 6))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@given(imputed=arrays(float, (30, 3), elements=NUMBERS), truth=arrays(float, 30, elements=NUMBERS))
def test_weights_sum_to_1_and_are_no_worse_than_the_best_model(imputed, truth):
    weights = stacking_weights(imputed, truth)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    lowest = min(selection_loss(one - truth) for one in imputed.T)
    assert selection_loss(imputed @ weights - truth) <= lowest * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("expected", [(0.7, 0.3, 0.0), (0.2, 0.3, 0.5)])
def test_a_convex_combination_is_recovered(rng, expected):
    imputed = rng.normal(size=(400, 3))
    truth = imputed @ expected
    np.testing.assert_allclose(stacking_weights(imputed, truth), expected, atol=1e-3)
    noisy = stacking_weights(imputed, truth + 0.1 * rng.normal(size=400))
    np.testing.assert_allclose(noisy, expected, atol=0.05)


def test_independent_errors_are_averaged(rng):
    truth = rng.normal(size=1000)
    imputed = truth[:, None] + rng.normal(size=(1000, 2)) * [0.1, 0.2]
    np.testing.assert_allclose(stacking_weights(imputed, truth), [0.8, 0.2], atol=0.06)


def test_the_best_model_has_all_weight_if_others_add_nothing(rng):
    truth = rng.normal(size=500)
    good = truth + 0.1 * rng.normal(size=500)
    poor = good + 0.5 * rng.normal(size=500)
    assert stacking_weights(np.column_stack([poor, good]), truth).tolist() == [0, 1]
    assert stacking_weights(np.column_stack([good, good + 1e-9]), truth).max() == 1
    assert stacking_weights(good[:, None], truth).tolist() == [1]


def test_small_weights_are_set_to_0(rng):
    imputed = rng.normal(size=(400, 3))
    weights = stacking_weights(imputed, imputed @ [0.6, 0.39, 0.01])
    assert weights[2] == 0
    assert weights[:2].min() > 0.3


def test_a_few_outliers_do_not_decide(rng):
    imputed = rng.normal(size=(400, 2))
    truth = imputed @ [0.7, 0.3]
    truth[:4] = 30 * np.sign(imputed[:4, 1])  # these alone favor the second model
    np.testing.assert_allclose(stacking_weights(imputed, truth), [0.7, 0.3], atol=0.1)


def test_units_do_not_matter(rng):
    imputed = rng.normal(size=(200, 3))
    truth = imputed @ [0.5, 0.5, 0] + 0.1 * rng.normal(size=200)
    expected = stacking_weights(imputed, truth)
    for unit in (1e-12, 1e12):
        weights = stacking_weights(unit * imputed, unit * truth)
        np.testing.assert_allclose(weights, expected, rtol=1e-4)
    assert stacking_weights(np.zeros((60, 2)), np.zeros(60)).sum() == 1


class Constant:
    def __init__(self, value):
        self.value = value

    def complete(self, X, observed):
        return np.where(observed, X, self.value)


def stack(bounds=None):
    models = (Constant(0.0), Constant(2.0), Constant(10.0))
    return Stack(models, np.array([0.25, 0.25, 0.5]), ("a", "a", "b"), bounds)


def test_a_stack_imputes_the_weighted_mean_of_its_models(rng):
    X, observed = rng.normal(size=(5, 3)), rng.random((5, 3)) < 0.5
    filled = stack().complete(X, observed)
    assert (filled[observed] == X[observed]).all()
    np.testing.assert_allclose(filled[~observed], 5.5)


def test_models_are_clipped_to_the_bounds_before_their_mean(rng):
    observed = np.zeros((2, 2), bool)
    bounds = Bounds(np.array([1.0, -np.inf]), np.array([6.0, np.inf]))
    filled = stack(bounds).complete(np.zeros((2, 2)), observed)
    np.testing.assert_allclose(filled, [[0.25 * 1 + 0.25 * 2 + 0.5 * 6, 5.5]] * 2)


def test_models_of_one_family_do_not_disagree():
    model, nothing = stack(), np.zeros((1, 1), bool)
    spread = model.spread(model.complete_each(np.zeros((1, 1)), nothing))
    np.testing.assert_allclose(spread, 4.5)  # of 1 and 10, half each
    same = Stack(model.models, model.weights, ("a",) * 3)
    filled = same.complete_each(np.zeros((1, 1)), nothing)
    np.testing.assert_allclose(same.spread(filled), 0, atol=1e-12)


def test_disagreement_around_the_mean_is_a_standard_deviation(rng):
    imputed = rng.normal(size=(3, 4, 2))
    np.testing.assert_allclose(disagreement(imputed, imputed.mean(axis=0)), imputed.std(axis=0))
    np.testing.assert_allclose(disagreement(imputed[:1], imputed[0] + 2), 2)
