"""Lemma 2, phi(X) = phi(D) Z, with explicit features."""

import numpy as np
import pytest

from hirank.core.objective import Basis, objective
from hirank.datasets import polynomial_manifolds
from hirank.kernels import Poly
from hirank.theory import (
    factor_features,
    feature_dimension,
    feature_rank,
    polynomial_features,
)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("offset", [0.0, 0.3, 1.0])
def test_inner_products_of_features_are_the_polynomial_kernel(degree, offset):
    rng = np.random.default_rng(0)
    X, Y, kernel = rng.standard_normal((6, 3)), rng.standard_normal((4, 3)), Poly(degree, offset)

    left, right = polynomial_features(X, kernel), polynomial_features(Y, kernel)

    assert left.shape == (6, feature_dimension(3, kernel_degree=degree))
    np.testing.assert_allclose(left @ right.T, kernel.matrix(X, Y), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("manifolds", [1, 2])
@pytest.mark.parametrize(("latent", "degree", "kernel_degree"), [(1, 2, 2), (1, 2, 3), (2, 2, 2)])
def test_lemma_2_a_few_rows_reproduce_all_features(latent, degree, kernel_degree, manifolds):
    shape = {"latent": latent, "degree": degree, "manifolds": manifolds}
    X = polynomial_manifolds(60, 8, random_state=0, **shape)
    kernel = Poly(kernel_degree, 1.0)

    D, Z = factor_features(X / X.std(axis=0), kernel)

    rank = feature_rank(*X.shape, kernel_degree=kernel_degree, constant=False, **shape)
    assert D.shape == (rank, 8)
    phi = polynomial_features(X / X.std(axis=0), kernel)
    np.testing.assert_allclose(Z @ polynomial_features(D, kernel), phi, atol=1e-6 * phi.max())


def test_lemma_2_the_objective_of_the_factors_is_zero_without_ridges():
    """With alpha = beta = 0 problem 2 of the paper is solved by phi(D) in place of A."""
    X = polynomial_manifolds(60, 6, latent=1, degree=2, random_state=0)
    kernel = Poly(2, 1.0)
    D, Z = factor_features(X, kernel)

    value = objective(X, Z, Basis(kernel, D, beta=0.0))

    assert abs(value) < 1e-9 * kernel.diag(X).sum()


def test_lemma_2_holds_where_theorem_2_does_not():
    """A cubic curve in the plane has 9 instead of 10 features of degree 3: fewer points do."""
    s = np.linspace(-1, 1, 50)
    X = np.column_stack([s + 0.5 * s**3, s**2 - 0.7 * s**3])
    kernel = Poly(3, 1.0)

    D, Z = factor_features(X, kernel)

    assert len(D) == 9
    phi = polynomial_features(X, kernel)
    np.testing.assert_allclose(Z @ polynomial_features(D, kernel), phi, atol=1e-6)


def test_lemma_2_does_not_make_problems_3_and_4_equal_if_there_are_ridges():
    """One sample x = 0, one point: problem 4 has a larger minimum than problem 3.

    Problem 3, over any A, shrinks the singular value 1 of phi(x) = (1, 0, 0): its minimum is
    ridge - ridge^2 / 2. Problem 4 requires A = phi(d), which is no shorter than 1.
    """
    ridge, X = 0.1, np.zeros((1, 1))
    shrunk = (1 - ridge) ** 0.5
    values = []
    for d in np.linspace(-2, 2, 401):
        basis = Basis(Poly(2, 1.0), np.array([[d]]), ridge, ridge)
        code = 1 / ((d**2 + 1) ** 2 + ridge)
        values.append(objective(X, np.array([[code]]), basis))

    with_any = (1 - shrunk**2) ** 2 / 2 + ridge / 2 * shrunk**2 + ridge / 2 * shrunk**2

    assert with_any == pytest.approx(ridge - ridge**2 / 2)
    assert min(values) == pytest.approx(ridge / 2 + ridge / 2 / (1 + ridge))
    assert min(values) > with_any + 4e-4


def test_features_of_a_table_with_missing_values_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        polynomial_features([[1.0, np.nan]], Poly(2, 1.0))
