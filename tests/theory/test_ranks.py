"""Lemma 1, Theorem 2 and their unions: formulas against measured ranks, and where they fail."""

import numpy as np
import pytest

from hirank.datasets import polynomial_manifolds
from hirank.kernels import Poly
from hirank.theory import data_rank, feature_dimension, feature_rank, polynomial_features

PAPER_CASES = [
    ({"n_samples": 100, "manifolds": 1, "degree": 3}, 19),
    ({"n_samples": 300, "manifolds": 3, "degree": 3}, 30),
    ({"n_samples": 1000, "manifolds": 10, "degree": 1}, 30),
]


def make_table(n_samples, n_features, *, latent, degree, manifolds, constant):
    each = n_samples // manifolds
    X = polynomial_manifolds(
        each, n_features, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    if constant:
        # The constant term of each polynomial: one shift for each surface.
        shifts = np.random.default_rng(1).standard_normal((manifolds, n_features))
        X = X + np.repeat(shifts, each, axis=0)
    return X / np.abs(X).max()


def measure_feature_rank(X, kernel_degree=2, tol=1e-10):
    """Return the rank of phi(X), from the monomials themselves (better than their kernel)."""
    phi = polynomial_features(X, Poly(kernel_degree, 1.0))
    assert phi.shape[1] == feature_dimension(X.shape[1], kernel_degree=kernel_degree)
    return np.linalg.matrix_rank(phi / np.linalg.norm(phi, axis=0), tol=tol)


@pytest.mark.parametrize(("case", "rank"), PAPER_CASES)
def test_lemma_1_gives_the_ranks_of_the_papers_tables(case, rank):
    shape = {"latent": 3, "degree": case["degree"], "manifolds": case["manifolds"]}
    X = make_table(case["n_samples"], 30, constant=False, **shape)

    assert data_rank(*X.shape, constant=False, **shape) == rank
    assert np.linalg.matrix_rank(X) == rank


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("n_samples", "n_features", "latent", "degree", "manifolds"),
    [
        (200, 20, 2, 2, 1),
        (200, 20, 1, 3, 1),  # a twisted cubic
        (300, 20, 2, 2, 3),
        (400, 20, 2, 1, 10),
        (400, 12, 2, 1, 4),
        (60, 20, 2, 2, 3),
        (30, 25, 3, 2, 1),  # fewer samples than the surface has dimensions in feature space
        (200, 4, 2, 2, 1),  # few features: phi(X) has full rank
    ],
)
def test_lemma_1_and_theorem_2_give_the_measured_ranks(
    n_samples, n_features, latent, degree, manifolds, constant
):
    shape = {"latent": latent, "degree": degree, "manifolds": manifolds, "constant": constant}
    X = make_table(n_samples, n_features, **shape)

    assert np.linalg.matrix_rank(X) == data_rank(*X.shape, **shape)
    assert measure_feature_rank(X) == feature_rank(*X.shape, kernel_degree=2, **shape)


def test_theorem_2_gives_the_papers_example_of_a_full_table_with_few_features():
    shape = {"latent": 2, "degree": 4}

    assert data_rank(200, 20, **shape) / 20 == 0.75
    assert feature_rank(200, 20, kernel_degree=2, **shape) / 200 == 0.225


def test_lemma_1_requires_latent_variables_with_a_density():
    """The paper asks for uncorrelated variables only: a sign is one, and its square is constant."""
    rng = np.random.default_rng(0)
    s = rng.choice([-1.0, 1.0], 50)
    X = np.column_stack([s**0, s, s**2]) @ rng.standard_normal((3, 4))

    assert data_rank(50, 4, latent=1, degree=2) == 3
    assert np.linalg.matrix_rank(X) == 2


@pytest.mark.parametrize(
    ("n_features", "latent", "degree", "kernel_degree", "rank"),
    [
        (2, 1, 3, 3, 9),  # a cubic curve in the plane has an equation of degree 3
        (3, 1, 3, 3, 10),  # not so in three dimensions
        (3, 2, 2, 4, 34),  # a quadratic surface in space has an equation of degree 4
    ],
)
def test_theorem_2_is_an_upper_bound_where_features_are_few(
    n_features, latent, degree, kernel_degree, rank
):
    shape = {"latent": latent, "degree": degree}
    X = make_table(120, n_features, manifolds=1, constant=True, **shape)

    predicted = feature_rank(120, n_features, kernel_degree=kernel_degree, **shape)

    assert measure_feature_rank(X / X.std(axis=0), kernel_degree, tol=1e-8) == rank
    assert predicted == rank + (n_features == latent + 1)


def test_theorem_2_fails_for_seven_features_and_the_usual_kernel():
    """Three latent variables, quadratic, degree 2: 34 of the 35 polynomials are spanned."""
    X = make_table(400, 7, latent=3, degree=2, manifolds=1, constant=True)

    singular = np.linalg.svd(polynomial_features(X / X.std(axis=0), Poly(2, 1.0)))[1]

    assert feature_rank(400, 7, latent=3, degree=2) == 35
    assert np.sum(singular > 1e-10 * singular[0]) == 34
    assert singular[34] < 1e-8 * singular[33]  # a clear gap: rounding is not the reason


def test_the_union_of_linear_subspaces_shares_the_constant_feature():
    """The paper has u C(d + q, q), here 2 C(2, 1) = 4; both lines contain the origin."""
    lines = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    X = np.concatenate([np.arange(1.0, 6.0)[:, None] * line for line in lines])

    assert np.linalg.matrix_rank(polynomial_features(X, Poly(1, 1.0))) == 3
    assert feature_rank(10, 3, latent=1, degree=1, manifolds=2, kernel_degree=1) == 4
    assert (
        feature_rank(10, 3, latent=1, degree=1, manifolds=2, kernel_degree=1, constant=False) == 3
    )


def test_the_union_formula_is_an_upper_bound_where_subspaces_meet():
    """Two lines in the plane: the product of their equations vanishes on both."""
    s = np.linspace(-1, 1, 20)
    X = np.concatenate([np.column_stack([s, s + 0.3]), np.column_stack([s, -2 * s + 1])])

    assert feature_rank(40, 2, latent=1, degree=1, manifolds=2, kernel_degree=2) == 6
    assert measure_feature_rank(X) == 5
