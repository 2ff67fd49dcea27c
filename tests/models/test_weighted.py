"""A model of features in other units: the same imputed values as in these units."""

from dataclasses import replace

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.kernels import RBF, Poly
from hirank.models.dictionary import Dictionary
from hirank.models.stacking import Stack
from hirank.models.weighted import MAX_WEIGHT, MIN_WEIGHT, WeightedModel
from hirank.optim.path import Setting
from hirank.persistence.record import decode, encode

WEIGHTS = np.array([0.3, 1.7, 0.9])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def make_curve(t):
    return np.column_stack([t, t**2, t**3])


@pytest.fixture(params=[RBF(1.5), Poly(3, 1.0)], ids=["rbf", "poly"])
def model(request):
    """A model whose dictionary are points of a curve, in weighted features."""
    settings = tuple(Setting(request.param, beta) for beta in (1e-2, 1e-4, 1e-6))
    points = make_curve(np.linspace(-1, 1, 15)) * WEIGHTS
    return WeightedModel(WEIGHTS, Dictionary(points, settings))


@pytest.fixture
def rows(rng):
    """New rows of the curve, 70 x 3, of which one or two entries are missing."""
    X = make_curve(rng.uniform(-1, 1, 70))
    observed = rng.permuted(np.tile([True, True, False], (70, 1)), axis=1)
    observed[::5] = [True, False, False]
    return X, observed


def test_rows_are_imputed_as_by_the_model_in_its_units(model, rows):
    X, observed = rows
    known = np.where(observed, X, 0)

    filled = model.complete(known, observed)

    inner = model.model.complete(known * WEIGHTS, observed)
    np.testing.assert_allclose(filled * WEIGHTS, inner, rtol=1e-12, atol=1e-12)
    unweighted = replace(model, weights=np.ones(3)).complete(known, observed)
    assert np.abs(unweighted - X)[~observed].mean() > 3 * np.abs(filled - X)[~observed].mean()
    assert model.width == 3


def test_observed_entries_are_returned_bit_for_bit(model, rng):
    # Most of these numbers change when they are multiplied by a weight and divided again.
    X, observed = rng.normal(size=(200, 3)), rng.random((200, 3)) < 0.6
    observed[:, 0] |= ~observed.any(axis=1)
    assert (X * WEIGHTS / WEIGHTS != X)[observed].any()

    filled = model.complete(np.where(observed, X, 0), observed)

    assert (filled[observed] == X[observed]).all()


def test_a_row_is_imputed_the_same_alone_and_in_any_batch(model, rows):
    X, observed = rows
    known = np.where(observed, X, 0)

    together = model.complete(known, observed)

    for part in (slice(3, 4), slice(0, 5), np.arange(70)[::-1]):
        np.testing.assert_allclose(
            model.complete(known[part], observed[part]), together[part], rtol=0, atol=1e-9
        )


def test_bounds_of_the_inner_model_are_in_its_units(model, rows):
    X, observed = rows
    limit = np.array([np.inf, 0.2, np.inf])
    inner = replace(model.model, bounds=Bounds(np.full(3, -np.inf), limit * WEIGHTS))

    filled = replace(model, model=inner).complete(np.where(observed, X, 0), observed)

    free = filled[~observed[:, 1], 1]
    assert free.max() == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(2), "a weight for each of 3 features"),
        (np.ones(4), "a weight for each of 3 features"),
        (np.array([1.0, 0.0, 1.0]), "between 1e-06 and"),
        (np.array([1.0, -1.0, 1.0]), "between 1e-06 and"),
        (np.array([1.0, MIN_WEIGHT / 2, 1.0]), "between 1e-06 and"),
        (np.array([1.0, 2 * MAX_WEIGHT, 1.0]), r"and 1e\+06"),
        (np.array([1.0, np.nan, 1.0]), "between 1e-06 and"),
    ],
)
def test_weights_that_cannot_be_used_are_rejected(weights, message, model):
    model.check()

    with pytest.raises(ValueError, match=message):
        replace(model, weights=weights).check()


def test_a_stack_with_a_weighted_model_is_restored_from_its_state(model, rows):
    X, observed = rows
    stack = Stack((model, model.model), np.array([0.8, 0.2]), ("a", "b"))

    restored = decode(Stack, encode(stack))

    assert [type(one) for one in restored.models] == [WeightedModel, Dictionary]
    known = np.where(observed, X, 0)
    assert (restored.complete(known, observed) == stack.complete(known, observed)).all()
