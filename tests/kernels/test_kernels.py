import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.kernels import RBF, Kernel, Poly, mean_distance
from hirank.kernels.rbf import MAX_ROWS

KERNELS = [RBF(1.7), Poly(1, 0.0), Poly(2, 1.0), Poly(3, 0.5)]


def formula(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> float:
    if isinstance(kernel, RBF):
        return np.exp(-((x - y) ** 2).sum() / (2 * kernel.sigma**2))
    return (x @ y + kernel.offset) ** kernel.degree


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrix_and_diagonal_follow_the_formula(kernel, dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((5, 3)).astype(dtype), rng.standard_normal((4, 3)).astype(dtype)
    K = kernel.matrix(X, Y)
    assert K.dtype == kernel.diag(X).dtype == dtype
    expected = [[formula(kernel, x, y) for y in Y] for x in X]
    np.testing.assert_allclose(K, expected, rtol=1e-5 if dtype == np.float32 else 1e-12)
    own = [formula(kernel, x, x) for x in X]
    np.testing.assert_allclose(kernel.diag(X), own, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_pull_backs_are_gradients(kernel):
    """The Taylor error of <W, k(X, D)> falls with the square of the step."""
    rng = np.random.default_rng(1)
    X, D, W = rng.standard_normal((6, 3)), rng.standard_normal((5, 3)), rng.standard_normal((6, 5))
    bound = kernel.bind(D)
    P = W * bound.rows(X)[1]
    U, V = rng.standard_normal(X.shape), rng.standard_normal(D.shape)
    slope_X, slope_D = (bound.pull_rows(P, X) * U).sum(), (bound.pull_points(P, X) * V).sum()
    value = (W * kernel.matrix(X, D)).sum()
    steps = np.array([1e-2, 1e-3])
    for slope, moved in (
        (slope_X, [(W * kernel.matrix(X + t * U, D)).sum() for t in steps]),
        (slope_D, [(W * kernel.matrix(X, D + t * V)).sum() for t in steps]),
    ):
        error = np.abs(np.array(moved) - value - steps * slope)
        if kernel == Poly(1, 0.0):  # linear: nothing is left but rounding
            assert error.max() < 1e-12
        else:
            assert 1.8 < np.log10(error[0] / error[1]) < 2.2


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_diagonal_gradient(kernel):
    rng = np.random.default_rng(2)
    X, U, t = rng.standard_normal((6, 3)), rng.standard_normal((6, 3)), 1e-6
    numeric = (kernel.diag(X + t * U).sum() - kernel.diag(X - t * U).sum()) / (4 * t)
    gradient = kernel.diag_gradient(X)
    exact = 0.0 if gradient is None else (gradient * U).sum()
    assert exact == pytest.approx(numeric, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_stack_of_blocks_is_each_block_alone(kernel):
    rng = np.random.default_rng(3)
    X, D, P = rng.standard_normal((4, 7, 3)), rng.standard_normal((5, 3)), rng.random((4, 7, 5))
    bound = kernel.bind(D)
    for i in range(4):
        assert (bound.rows(X)[0][i] == bound.rows(X[i])[0]).all()
        assert (bound.pull_rows(P, X)[i] == bound.pull_rows(P[i], X[i])).all()


@given(arrays(float, (6, 3), elements=st.floats(-1e3, 1e3)))
def test_rbf_values_lie_between_zero_and_one(X):
    K = RBF(0.5).matrix(X, X)
    assert (K >= 0).all()
    assert (K <= 1 + 1e-8).all()


def test_mean_distance_is_the_mean_over_pairs():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert mean_distance(X) == pytest.approx((5 + 5 + 10) / 3)
    assert mean_distance(X + 1e8) == pytest.approx((5 + 5 + 10) / 3)
    assert mean_distance(X[:1]) == 0.0


def test_mean_distance_of_many_rows_is_taken_on_a_sample():
    X = np.random.default_rng(0).standard_normal((20 * MAX_ROWS, 5))
    few = X[::19][:MAX_ROWS]
    assert mean_distance(X) == pytest.approx(mean_distance(few), rel=0.03)


def test_bandwidth_is_a_multiple_of_the_mean_distance():
    X = np.random.default_rng(0).standard_normal((50, 4))
    assert RBF().resolve(X, 3.0).sigma == pytest.approx(3 * mean_distance(X))
    assert RBF(2.0).resolve(X, 3.0) == RBF(2.0)
    assert RBF().resolve(np.zeros((4, 2)), 3.0).sigma == 3.0
    assert Poly().resolve(X, 3.0) == Poly()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "sigma must be a positive"),
        (lambda: RBF(np.inf), "sigma must be a positive"),
        (lambda: Poly(0), "integer from 1 to 100"),
        (lambda: Poly(2.5), "integer from 1 to 100"),
        (lambda: Poly(2, -1.0), "not positive semidefinite"),
        (lambda: RBF().bind(np.zeros((2, 2))), "has no sigma"),
    ],
)
def test_parameters_that_cannot_be_used_are_explained(make, message):
    with pytest.raises(ValueError, match=message):
        make()
