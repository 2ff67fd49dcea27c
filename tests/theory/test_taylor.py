"""Equation 37 and its derivation: the RBF kernel by polynomials of degree q."""

from math import factorial

import numpy as np
import pytest
from scipy.stats import poisson

from hirank.kernels import RBF, Poly
from hirank.theory import (
    feature_rank,
    polynomial_features,
    rbf_features,
    rbf_taylor_bound,
    taylor_rbf,
)


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 4)), rng.standard_normal((20, 4))


@pytest.mark.parametrize("sigma", [0.7, 1.5, 4.0])
@pytest.mark.parametrize("degree", [0, 1, 2, 5, 9])
def test_equation_72_the_error_is_within_the_bound_for_any_width(points, sigma, degree):
    X, Y = points

    error = np.abs(taylor_rbf(X, Y, sigma=sigma, degree=degree) - RBF(sigma).matrix(X, Y))

    bound = rbf_taylor_bound(X, Y, sigma=sigma, degree=degree)
    printed = np.abs(X @ Y.T / sigma**2) ** (degree + 1) / factorial(degree + 1)
    rounding = 1e-12 * (1 + printed)
    assert (error <= bound + rounding).all()
    assert (bound <= printed + rounding).all()


def test_equation_72_the_bound_is_close_for_small_products():
    error = RBF(10.0).matrix(np.ones((1, 1)), np.ones((1, 1))) - taylor_rbf(
        [[1.0]], [[1.0]], sigma=10.0, degree=2
    )

    assert error == pytest.approx(
        rbf_taylor_bound([[1.0]], [[1.0]], sigma=10.0, degree=2), rel=0.01
    )


def test_equation_72_a_constant_below_1_is_no_bound_where_sigma_is_small():
    """The paper's c is below 1 if sigma^2 exceeds |x.y|; here it is 4, and the error 0.91."""
    error = 1 - taylor_rbf([[2.0]], [[2.0]], sigma=1.0, degree=1)[0, 0]

    assert error == pytest.approx(poisson(4).sf(1))  # k(x, x) = 1 for every sigma
    assert error > 1 / factorial(2)  # what any c below 1 would allow


@pytest.mark.parametrize("degree", [0, 1, 2, 4])
def test_equation_73_features_up_to_degree_q_have_the_taylor_kernel(points, degree):
    X = points[0]

    phi = rbf_features(X, sigma=2.0, degree=degree)

    np.testing.assert_allclose(phi @ phi.T, taylor_rbf(X, X, sigma=2.0, degree=degree), atol=1e-12)
    left_out = 1 - (phi**2).sum(axis=1)
    c = (X**2).sum(axis=1) / 4
    np.testing.assert_allclose(left_out, poisson(c).sf(degree), atol=1e-12)
    assert (left_out <= c ** (degree + 1) / factorial(degree + 1)).all()


def test_equation_37_features_of_the_rbf_kernel_differ_by_less_than_the_bound(points):
    """Those up to degree q are the same, and those above are at most the root of what is left."""
    X, q = points[0], 2
    c = (X**2).sum(axis=1) / 4

    many, few = (rbf_features(X, sigma=2.0, degree=degree) for degree in (9, q))

    contained = [np.isclose(many, column[:, None]).all(axis=0).any() for column in few.T]
    assert all(contained)
    above = np.sqrt((many**2).sum(axis=1) - (few**2).sum(axis=1))
    assert (above <= np.sqrt(c ** (q + 1) / factorial(q + 1))).all()


def test_equation_37_the_features_are_no_polynomials_but_have_the_rank_of_some():
    """Each row is a polynomial map times exp(-|x|^2 / (2 sigma^2)), which the paper leaves out."""
    s = np.linspace(-1, 1, 60)[:, None]
    X = np.hstack([s, s**2]) @ np.random.default_rng(0).standard_normal((2, 5))

    phi = rbf_features(X, sigma=2.0, degree=2)

    plain = polynomial_features(X, Poly(2, 1.0))
    ratio = phi[:, -1] / plain[:, -1]  # of the same monomial
    np.testing.assert_allclose(ratio / ratio[0], np.exp((X[0] @ X[0] - (X**2).sum(axis=1)) / 8))
    assert ratio.max() > 1.05 * ratio.min()
    expected = feature_rank(60, 5, latent=1, degree=2, constant=False)
    assert (
        np.linalg.matrix_rank(phi, tol=1e-9) == np.linalg.matrix_rank(plain, tol=1e-9) == expected
    )


def test_equation_39_the_residual_has_the_power_of_s_that_the_paper_leaves_out():
    """exp by its polynomial of degree 1 at s = 3: 16.1, above e^3 / 2! = 10.0."""
    for s, p in [(0.5, 1), (0.5, 4), (3.0, 1), (3.0, 6)]:
        residual = np.exp(s) - sum(s**k / factorial(k) for k in range(p + 1))
        derivative = np.exp(s)  # the largest of order p + 1 between 0 and s

        assert residual <= derivative * s ** (p + 1) / factorial(p + 1)
        assert (residual <= derivative / factorial(p + 1)) == (s <= 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"sigma": 0.0}, "sigma must be a number above 0"), ({"degree": -1}, "degree must be an int")],
)
@pytest.mark.parametrize("function", [taylor_rbf, rbf_taylor_bound])
def test_invalid_settings_are_named(function, wrong, message):
    with pytest.raises(ValueError, match=message):
        function([[1.0]], [[1.0]], **{"sigma": 1.0, "degree": 2, **wrong})
