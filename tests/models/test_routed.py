"""Routed dictionaries: each row is imputed by the dictionaries of the pieces it may be part of."""

from dataclasses import replace

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.kernels import RBF
from hirank.models.dictionary import Dictionary
from hirank.models.mixture import Mixture
from hirank.models.routed import (
    RoutedDictionaries,
    likely_components,
    measure_residuals,
)
from hirank.models.stacking import Stack
from hirank.optim.path import Setting
from hirank.persistence.record import decode, encode

SETTINGS = tuple(Setting(RBF(1.5), beta) for beta in (1e-2, 1e-5, 1e-8))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def curves(t):
    """Return points of two curves in 5 dimensions, which are close to each other at t = -1."""
    one = np.column_stack([t, t**2, t**3, np.sin(2 * t), np.cos(2 * t)])
    other = np.column_stack([t, -(t**2), t - 1, 2 + t, np.cos(2 * t)])
    return one, other


def make_model(pieces, settings=SETTINGS, bounds=None):
    covariances = np.stack([np.cov(piece.T) + 1e-3 * np.eye(5) for piece in pieces])
    means = np.stack([piece.mean(axis=0) for piece in pieces])
    dictionaries = tuple(Dictionary(piece[::8].copy(), settings, bounds=bounds) for piece in pieces)
    residuals = [
        np.median(measure_residuals(*pair)) for pair in zip(dictionaries, pieces, strict=True)
    ]
    return RoutedDictionaries(
        Mixture(np.full(2, 0.5), means, covariances), dictionaries, np.array(residuals)
    )


@pytest.fixture
def model():
    return make_model(curves(np.linspace(-1, 1, 161)))


@pytest.fixture
def rows(rng):
    """New rows of both curves, 120 x 5, in random order, with one to three missing entries."""
    X = rng.permutation(np.vstack(curves(rng.uniform(-1, 1, 60))))
    observed = rng.permuted(np.tile([True, True, True, True, False], (120, 1)), axis=1)
    observed[::3] &= rng.permuted(np.tile([True, True, True, False, False], (40, 1)), axis=1)
    return X, observed


def impute(model, X, observed):
    return model.complete(np.where(observed, X, 0), observed)


def test_a_row_that_is_certain_is_imputed_by_one_dictionary(model, rows):
    X, observed = rows
    shares = model.router.shares(np.where(observed, X, 0), observed)
    certain = shares.max(axis=1) > 0.9995
    assert certain.sum() > 30

    filled = impute(model, X, observed)

    for k, dictionary in enumerate(model.dictionaries):
        mine = certain & (shares.argmax(axis=1) == k)
        alone = impute(dictionary, X[mine], observed[mine])
        np.testing.assert_allclose(filled[mine], alone, rtol=1e-14, atol=1e-14)


def test_a_row_that_fits_two_components_is_imputed_by_the_dictionary_that_explains_it(model, rng):
    t = rng.uniform(-0.9, 0.9, 80)
    X = curves(t)[0]
    observed = np.ones(X.shape, bool)
    observed[:, 1] = False
    same = replace(
        model,
        router=Mixture(
            np.full(2, 0.5),
            np.tile(model.router.means[:1], (2, 1)),
            np.tile(model.router.covariances[:1], (2, 1, 1)),
        ),
    )  # which cannot distinguish the curves

    filled = impute(same, X, observed)

    np.testing.assert_array_equal(same.router.shares(X, observed), 0.5)
    by_posterior = np.mean([impute(one, X, observed) for one in same.dictionaries], axis=0)
    error = np.abs(filled - X)[:, 1]
    assert np.median(error) < 0.01
    assert error.mean() < 0.1 * np.abs(by_posterior - X)[:, 1].mean()


def test_a_row_is_imputed_the_same_to_the_bit_alone_and_in_any_batch(model, rows, rng):
    X, observed = rows
    together = impute(model, X, observed)

    order = rng.permutation(len(X))
    assert (impute(model, X[order], observed[order]) == together[order]).all()
    for i in (0, 7, 50, 119):
        assert (impute(model, X[i : i + 1], observed[i : i + 1]) == together[i]).all()
    for part in (slice(0, 31), slice(3, 100, 7)):
        assert (impute(model, X[part], observed[part]) == together[part]).all()


def test_the_layout_of_the_rows_does_not_matter(model, rows):
    X, observed = rows
    expected = impute(model, X, observed)
    known = np.where(observed, X, 0)
    before = known.copy()

    fortran = model.complete(np.asfortranarray(known), np.asfortranarray(observed))
    wide = np.repeat(known, 2, axis=1)[:, ::2]
    wide.flags.writeable = False

    assert (fortran == expected).all()
    assert (model.complete(wide, observed) == expected).all()
    assert (known == before).all()
    assert model.complete(known[:0], observed[:0]).shape == (0, 5)


def test_observed_entries_are_returned_bit_for_bit(model, rows):
    X, observed = rows

    assert (impute(model, X, observed)[observed] == X[observed]).all()


def test_imputed_values_are_within_the_bounds(rows):
    X, observed = rows
    bounds = Bounds(np.full(5, -np.inf), np.array([np.inf, 0.3, np.inf, np.inf, 0.5]))
    model = make_model(curves(np.linspace(-1, 1, 161)), bounds=bounds)

    filled = impute(model, X, observed)

    assert filled[~observed[:, 1], 1].max() == pytest.approx(0.3)
    assert filled[~observed[:, 4], 4].max() <= 0.5


def test_routes_are_the_likeliest_components_and_at_least_one():
    shares = np.array([[0.5, 0.2, 0.2, 0.1], [1.0, 0.0, 0.0, 0.0], [0.0, 5e-4, 0.9995, 0.0]])

    assert likely_components(shares).tolist() == [[0, 1, 2], [0, -1, -1], [2, -1, -1]]
    assert likely_components(np.ones((2, 1))).tolist() == [[0], [0]]


def test_residuals_are_small_on_the_curve_of_the_dictionary_only(model, rng):
    one, other = curves(rng.uniform(-0.9, 0.9, 50))

    own = measure_residuals(model.dictionaries[0], one)

    assert own.shape == (50,)
    assert own.max() < 1e-3 * np.median(measure_residuals(model.dictionaries[0], other))


CHANGES = [
    ({"residuals": np.ones(3)}, "for each of 2 components"),
    ({"residuals": np.array([1.0, 0.0])}, "residuals must be at least"),
    ({"residuals": np.array([1.0, np.nan])}, "residuals must be at least"),
    ({"dictionaries": ()}, "for each of 2 components"),
    ({"dictionaries": (Dictionary(np.ones((3, 4)), SETTINGS),) * 2}, "must describe 5 features"),
]


@pytest.mark.parametrize(("changes", "message"), CHANGES, ids=str)
def test_parts_that_do_not_fit_together_are_rejected(changes, message, model):
    model.check()

    with pytest.raises(ValueError, match=message):
        replace(model, **changes).check()


def test_a_stack_is_restored_from_its_state(model, rows):
    X, observed = rows
    stack = Stack((model, model.router), np.array([0.8, 0.2]), ("a", "b"))

    restored = decode(Stack, encode(stack))

    assert [type(one) for one in restored.models] == [RoutedDictionaries, Mixture]
    assert (impute(restored, X, observed) == impute(stack, X, observed)).all()
    assert model.work > sum(one.work for one in model.dictionaries)
