import numpy as np
import pytest

from hirank.core.objective import (
    Basis,
    codes,
    coordinates,
    gradient_without,
    objective,
    reduced_gradient,
    sample_gradient,
)
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly

KERNELS = [RBF(2.0), Poly(2, 1.0), Poly(3, 0.5)]


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 6)), rng.standard_normal((9, 6))


@pytest.fixture(scope="module")
def workers():
    with Workers() as workers:
        yield workers


def textbook(X, D, Z, kernel, alpha, beta):
    """L as the paper writes it, with an n x n matrix and traces."""
    KXX, KXD, KDD = kernel.matrix(X, X), kernel.matrix(X, D), kernel.matrix(D, D)
    fit = np.trace(KXX - 2 * KXD @ Z.T + Z @ KDD @ Z.T) / 2
    return fit + alpha / 2 * np.trace(KDD) + beta / 2 * (Z**2).sum()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_objective_is_that_of_the_paper(kernel, points):
    X, D = points
    Z = np.random.default_rng(1).standard_normal((50, 9))
    value = objective(X, Z, Basis(kernel, D, 0.03, 0.2))
    assert value == pytest.approx(textbook(X, D, Z, kernel, 0.2, 0.03), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_codes_minimize_the_objective(kernel, points):
    X, D = points
    basis = Basis(kernel, D, 0.03, 0.2)
    Z = codes(X, basis)
    lowest = objective(X, Z, basis)
    rng = np.random.default_rng(2)
    for _ in range(5):
        assert objective(X, Z + 1e-3 * rng.standard_normal(Z.shape), basis) > lowest


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_reduced_objective_is_the_objective_at_the_best_codes(kernel, points, workers):
    X, D = points
    basis = Basis(kernel, D, 0.03, 0.2)
    expected = objective(X, codes(X, basis), basis)
    assert reduced_gradient(X, basis, workers).value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("variable", ["X", "D"])
def test_gradients_have_taylor_slope_two(kernel, variable, points, workers):
    X, D = points
    rng = np.random.default_rng(3)
    U = rng.standard_normal(X.shape) * (variable == "X")
    V = rng.standard_normal(D.shape) * (variable == "D")

    def at(t):
        return reduced_gradient(X + t * U, Basis(kernel, D + t * V, 1e-3, 0.1), workers)

    here = at(0.0)
    slope = (here.X * U).sum() + (here.D * V).sum()
    steps = np.geomspace(1e-2, 1e-4, 5)
    error = [abs(at(t).value - here.value - t * slope) for t in steps]
    fitted = np.polyfit(np.log(steps), np.log(error), 1)[0]
    assert fitted == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("kernel", [RBF(2.0), Poly(2, 1.0)], ids=str)
def test_single_precision_agrees_with_double(kernel, points, workers):
    X, D = points
    exact = reduced_gradient(X, Basis(kernel, D, 0.1), workers)
    single = reduced_gradient(
        X.astype(np.float32), Basis(kernel, D.astype(np.float32), 0.1), workers
    )
    assert single.X.dtype == single.D.dtype == np.float32
    assert single.value == pytest.approx(exact.value, rel=1e-4)
    for one, other in ((single.X, exact.X), (single.D, exact.D)):
        assert np.linalg.norm(one - other) < 1e-3 * np.linalg.norm(other)


def test_only_requested_gradients_are_computed(points, workers):
    X, D = points
    basis = Basis(RBF(2.0), D, 1e-3)
    both = reduced_gradient(X, basis, workers)
    only_D = reduced_gradient(X, basis, workers, wrt_X=False)
    only_X = reduced_gradient(X, basis, workers, wrt_D=False)
    assert only_D.X is None
    assert only_X.D is None
    assert only_D.value == only_X.value == both.value
    assert (only_D.D == both.D).all()
    assert (only_X.X == both.X).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_objectives_of_rows_sum_to_that_of_the_table(kernel, points, workers):
    X, D = points
    basis = Basis(kernel, D, 1e-3)
    whole = reduced_gradient(X, basis, workers)
    value, gradient = sample_gradient(X, basis)
    assert value.sum() == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(gradient, whole.X, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_coordinates_reproduce_the_kernel_in_the_span(kernel, points):
    X, D = points
    V = coordinates(X, Basis(kernel, D, 1e-3))
    K, A = kernel.matrix(X, D), kernel.matrix(D, D) + 1e-3 * np.eye(9)
    np.testing.assert_allclose(V @ V.T, K @ np.linalg.solve(A, K.T), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_leaving_a_point_out_is_a_dictionary_without_it(kernel, points):
    X, D = points
    point = np.arange(50) % 9
    left_out = np.arange(50) % 2 == 0
    value, gradient = gradient_without(X, Basis(kernel, D, 1e-2), point, left_out)
    for i in range(50):
        rest = np.delete(D, point[i], axis=0) if left_out[i] else D
        expected, slope = sample_gradient(X[i : i + 1], Basis(kernel, rest, 1e-2))
        np.testing.assert_allclose(value[i], expected[0], rtol=1e-8)
        np.testing.assert_allclose(gradient[i], slope[0], rtol=1e-6, atol=1e-8)


def test_blocks_and_threads_do_not_change_the_result():
    """Many blocks, shared by any number of threads, bit for bit; and close to one block."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((6000, 8))
    basis = Basis(RBF(3.0), X[:120].copy(), 1e-4)
    with Workers(1) as one:
        alone = reduced_gradient(X, basis, one)
    with Workers(3) as several:
        shared = reduced_gradient(X, basis, several)
    assert alone.value == shared.value
    assert (alone.X == shared.X).all()
    assert (alone.D == shared.D).all()
    value, gradient = sample_gradient(X, basis)
    assert value.sum() == pytest.approx(alone.value, rel=1e-9)
    np.testing.assert_allclose(gradient, alone.X, rtol=1e-6, atol=1e-10)


def test_small_ridge_keeps_its_digits():
    """At beta = 1e-9, F must still be positive and agree with extended precision."""
    rng = np.random.default_rng(5)
    X = rng.random((40, 3))
    D = rng.random((30, 3))
    basis = Basis(RBF(3.0), D, 1e-9)
    value, _ = sample_gradient(X, basis)
    L = np.longdouble
    sq = lambda A, B: ((A[:, None].astype(L) - B[None].astype(L)) ** 2).sum(-1)  # noqa: E731
    K, G = np.exp(-sq(X, D) / 18), np.exp(-sq(D, D) / 18)
    A = G + L(1e-9) * np.eye(30, dtype=L)
    Z = gauss(A, K.T).T
    expected = (1 - (K * Z).sum(axis=1)) / 2
    assert (value > 0).all()
    np.testing.assert_allclose(value, expected.astype(float), rtol=1e-3, atol=1e-12)


def gauss(A, B):
    """A^-1 B by elimination, in whatever precision they come."""
    A, B = A.copy(), B.copy()
    for i in range(len(A)):
        p = i + int(np.argmax(np.abs(A[i:, i])))
        A[[i, p]], B[[i, p]] = A[[p, i]], B[[p, i]]
        for j in range(i + 1, len(A)):
            f = A[j, i] / A[i, i]
            A[j] -= f * A[i]
            B[j] -= f * B[i]
    for i in range(len(A))[::-1]:
        B[i] = (B[i] - A[i, i + 1 :] @ B[i + 1 :]) / A[i, i]
    return B


def test_a_collapsed_dictionary_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="larger beta"):
        _ = Basis(RBF(1.0), np.zeros((5, 2)), 0.0).root
