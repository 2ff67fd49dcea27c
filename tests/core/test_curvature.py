import numpy as np
import pytest

from hirank.core.curvature import (
    DAMPING,
    DenseInverse,
    LowRankInverse,
    inverse_curvature,
    sample_hessians,
)
from hirank.core.objective import Basis, sample_gradient
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly

KERNELS = [RBF(2.0), Poly(2, 1.0), Poly(3, 0.5), Poly(1, 0.0)]


@pytest.fixture(scope="module")
def workers():
    with Workers(2) as workers:
        yield workers


def as_matrices(inverse, X):
    """Return the inverse of each sample of X, n x m, as a matrix, n x m x m."""
    return np.stack([inverse(np.full(X.shape, row)) for row in np.eye(X.shape[1])], axis=1)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_hessians_are_never_negative(kernel):
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((20, 4)), rng.random((6, 4))
    H = sample_hessians(X, Basis(kernel, D, 1e-2))
    assert np.linalg.eigvalsh(H).min() > -1e-9 * np.abs(H).max()


@pytest.mark.parametrize("kernel", [RBF(2.0), Poly(3, 1.0)], ids=str)
def test_the_hessian_is_exact_where_a_row_fits(kernel):
    """Gauss-Newton leaves out a term that vanishes at samples that lie in the span: points of D."""
    D = np.random.default_rng(1).standard_normal((12, 3))
    basis = Basis(kernel, D, 1e-9)
    H = sample_hessians(D, basis)
    step = 1e-5
    for a in range(3):
        move = step * np.eye(3)[a]
        numeric = (sample_gradient(D + move, basis)[1] - sample_gradient(D - move, basis)[1]) / (
            2 * step
        )
        np.testing.assert_allclose(H[:, a], numeric, rtol=1e-3, atol=2e-4 * np.abs(H).max())


@pytest.mark.parametrize("kernel", [RBF(2.0), Poly(2, 1.0)], ids=str)
def test_inverses_act_on_free_entries_only(kernel, workers):
    rng = np.random.default_rng(2)
    X, D = rng.standard_normal((9, 5)), rng.standard_normal((4, 5))
    free = rng.random((9, 5)) < 0.6
    basis = Basis(kernel, D, 1e-2)
    inverse = inverse_curvature(X, basis, workers, free)
    for h, t, f in zip(sample_hessians(X, basis), as_matrices(inverse, X), free, strict=True):
        expected = np.zeros((5, 5))
        damped = h + DAMPING * np.diag(h)[f].mean() * np.eye(5)
        expected[np.ix_(f, f)] = np.linalg.inv(damped[np.ix_(f, f)])
        np.testing.assert_allclose(t, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        as_matrices(inverse_curvature(X, basis, workers), X),
        as_matrices(inverse_curvature(X, basis, workers, np.ones_like(free)), X),
        rtol=1e-5,
        atol=1e-9,
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_few_points_give_the_same_inverse_by_eigenvectors(kernel, masked, workers):
    """The Hessian differs from a multiple of the identity by a rank of one more than the points."""
    rng = np.random.default_rng(3)
    X, D = rng.standard_normal((7, 30)) / 5, rng.standard_normal((6, 30)) / 5
    free = rng.random(X.shape) < 0.6 if masked else None
    basis = Basis(kernel, D, 1e-2)

    dense = as_matrices(DenseInverse.measure(X, basis, workers, free), X)
    low = as_matrices(LowRankInverse.measure(X, basis, workers, free), X)

    if masked:  # callers pass vectors that are 0 elsewhere, and read the free entries
        both = free[:, :, None] & free[:, None, :]
        dense, low = dense * both, low * both
    np.testing.assert_allclose(low, dense, rtol=1e-3, atol=1e-4 * np.abs(dense).max())


@pytest.mark.parametrize("kernel", [RBF(2.0), Poly(2, 1.0)], ids=str)
def test_an_inverse_by_some_of_the_eigenvectors_is_positive_definite(kernel, workers):
    rng = np.random.default_rng(4)
    X, D = rng.standard_normal((5, 40)), rng.standard_normal((30, 40))
    inverse = LowRankInverse.measure(X, Basis(kernel, D, 1e-6), workers, None)

    matrices = as_matrices(inverse, X)

    np.testing.assert_allclose(matrices, matrices.transpose(0, 2, 1), atol=1e-4 * matrices.max())
    assert np.linalg.eigvalsh(matrices).min() > 0
