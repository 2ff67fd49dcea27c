"""The Schatten-p penalty: value, weights, gradient and its bound by landmarks."""

import numpy as np
import pytest

from hirank.core.schatten import Penalty, pick_landmarks
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly

KERNELS = [Poly(2, 1.0), Poly(3, 0.5), RBF(2.0)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@pytest.fixture
def X(rng):
    return rng.normal(size=(12, 4))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@every_kernel
@pytest.mark.parametrize("landmarks", [None, [0, 3, 4, 9]])
def test_taylor_error_of_the_gradient_falls_with_the_square(kernel, landmarks, X, rng):
    index = None if landmarks is None else np.array(landmarks)
    penalty = Penalty(kernel, 0.1)
    at = penalty(X, index)
    U = rng.normal(size=X.shape)
    steps = np.geomspace(1e-2, 1e-4, 5)
    errors = [
        abs(penalty(X + t * U, index).value - at.value - t * np.sum(at.gradient * U)) for t in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 1.9 < slope < 2.1


@every_kernel
def test_value_is_the_penalty_in_its_units(kernel, X):
    p, gamma = 0.5, 0.3
    values = np.linalg.eigvalsh(kernel.matrix(X, X))
    f = np.sum((values + gamma) ** (p / 2) - gamma ** (p / 2))
    unit = 2 * (p / 2) * gamma ** (p / 2 - 1)
    np.testing.assert_allclose(Penalty(kernel, gamma, p).exact(X).value, f / unit, rtol=1e-9)


@every_kernel
def test_least_squares_majorize_the_penalty(kernel, X, rng):
    penalty = Penalty(kernel, 0.1)
    K = kernel.matrix(X, X)
    values, U = np.linalg.eigh(K)
    W = (U * penalty.weights(np.maximum(values, 0))) @ U.T
    here = penalty.exact(X)
    for size in (1e-2, 0.1, 1.0):
        Y = X + size * rng.normal(size=X.shape)
        bound = here.value + np.sum(W * (kernel.matrix(Y, Y) - K)) / 2
        assert penalty.exact(Y).value < bound
    # and they touch it: same gradient
    P = W * kernel.bind(X).rows(X)[1]
    np.testing.assert_allclose(here.gradient, kernel.bind(X).pull_rows(P, X), rtol=1e-6, atol=1e-8)


@every_kernel
def test_landmarks_bound_the_penalty_and_all_of_them_give_it(kernel, X):
    penalty = Penalty(kernel, 0.1)
    exact = penalty.exact(X)
    bounds = [penalty.with_landmarks(X, np.arange(r)).value for r in (2, 5, 8, 12)]
    assert bounds[0] > bounds[1] > bounds[2] > exact.value
    everything = penalty.with_landmarks(X, np.arange(12))
    np.testing.assert_allclose(everything.value, exact.value, rtol=1e-7)
    np.testing.assert_allclose(everything.gradient, exact.gradient, rtol=1e-5, atol=1e-6)


@every_kernel
def test_both_forms_see_the_same_least_squares_in_a_sample(kernel, X):
    exact = Penalty(kernel, 0.1).exact(X).basis
    bound = Penalty(kernel, 0.1).with_landmarks(X, np.arange(12)).basis
    np.testing.assert_allclose(
        exact.root.T @ exact.root, bound.root.T @ bound.root, rtol=1e-4, atol=1e-5
    )


def test_landmarks_span_what_there_is_to_span(rng):
    # Ten features of a plane through the origin: six monomials of degree up to 2.
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 10))
    kernel = Poly(2, 1.0)
    landmarks = pick_landmarks(X, kernel, 30)
    assert len(landmarks) == 6
    penalty = Penalty(kernel, 1e-3)
    np.testing.assert_allclose(
        penalty.with_landmarks(X, landmarks).value, penalty.exact(X).value, rtol=1e-4
    )


def test_landmarks_where_all_images_are_zero():
    assert pick_landmarks(np.zeros((4, 2)), Poly(2, 0.0), 3).tolist() == [0]


def test_threads_change_no_bit_of_the_bound(monkeypatch):
    monkeypatch.setattr("hirank.core.threads.MIN_SHARED_COST", 0)  # everything is shared
    X, penalty = np.random.default_rng(0).normal(size=(40, 3)), Penalty(Poly(2, 1.0), 0.1)

    with Workers(1) as one:
        alone = penalty(X, np.arange(9), one)
    with Workers(3) as several:
        shared = penalty(X, np.arange(9), several)

    assert alone.value == shared.value
    np.testing.assert_array_equal(alone.gradient, shared.gradient)


def test_blocks_of_rows_give_the_bound_of_all_rows(monkeypatch):
    X, penalty = np.random.default_rng(0).normal(size=(40, 3)), Penalty(Poly(2, 1.0), 0.1)
    whole = penalty(X, np.arange(9))

    monkeypatch.setattr("hirank.core.threads.BLOCK_BYTES", 200)
    parts = penalty(X, np.arange(9))

    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-12)
    np.testing.assert_allclose(parts.gradient, whole.gradient, rtol=1e-7, atol=1e-10)
