"""Formulas against measured ranks, and against the numbers in the paper."""

import numpy as np
import pytest

from hirank.datasets import polynomial_manifolds
from hirank.kernels import Poly
from hirank.theory import (
    data_rank,
    feature_dimension,
    feature_rank,
    freedom,
    kfmc_rate,
    low_rank_rate,
)

PAPER_CASES = [
    ({"n_samples": 100, "manifolds": 1, "degree": 3}, 19),
    ({"n_samples": 300, "manifolds": 3, "degree": 3}, 30),
    ({"n_samples": 1000, "manifolds": 10, "degree": 1}, 30),
]


def table(n_samples, n_features, *, latent, degree, manifolds, constant):
    each = n_samples // manifolds
    X = polynomial_manifolds(
        each, n_features, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    if constant:
        # The constant term of each polynomial: one shift for each surface.
        shifts = np.random.default_rng(1).standard_normal((manifolds, n_features))
        X = X + np.repeat(shifts, each, axis=0)
    return X / np.abs(X).max()


def rank_of_features(X):
    """Rank of phi(X) for degree 2, from the monomials themselves (better than their kernel)."""
    i, j = np.triu_indices(X.shape[1])
    phi = np.hstack([np.ones((len(X), 1)), X, X[:, i] * X[:, j]])
    assert phi.shape[1] == feature_dimension(X.shape[1], kernel_degree=2)
    kernel = Poly(2, 1.0).matrix(X, X)
    weights = np.r_[1, np.full(X.shape[1], 2), np.where(i == j, 1, 2)]
    np.testing.assert_allclose((phi * weights) @ phi.T, kernel, atol=1e-9 * kernel.max())
    return np.linalg.matrix_rank(phi / np.linalg.norm(phi, axis=0), tol=1e-10)


@pytest.mark.parametrize(("case", "rank"), PAPER_CASES)
def test_ranks_of_the_papers_tables(case, rank):
    shape = {"latent": 3, "degree": case["degree"], "manifolds": case["manifolds"]}
    X = table(case["n_samples"], 30, constant=False, **shape)
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
def test_measured_ranks(n_samples, n_features, latent, degree, manifolds, constant):
    shape = {"latent": latent, "degree": degree, "manifolds": manifolds, "constant": constant}
    X = table(n_samples, n_features, **shape)
    assert np.linalg.matrix_rank(X) == data_rank(*X.shape, **shape)
    assert rank_of_features(X) == feature_rank(*X.shape, kernel_degree=2, **shape)


def test_the_papers_sampling_rates():
    curved = {"latent": 2, "degree": 2, "manifolds": 3}
    flat = {"latent": 2, "degree": 1, "manifolds": 10}
    assert low_rank_rate(300, 20, **curved) == pytest.approx(0.906)
    assert kfmc_rate(300, 20, **curved) == pytest.approx(0.56, abs=0.005)
    assert low_rank_rate(300, 20, **flat) > 1
    assert kfmc_rate(300, 20, **flat) == pytest.approx(0.64, abs=0.005)
    # Capped, as the formula stands in the paper: what must be exceeded is 1 itself.
    assert freedom(data_rank(300, 20, **flat), 300, 20) == 1


def test_rates_grow_with_structure_and_fall_with_samples():
    rates = [low_rank_rate(40, 20, latent=2, degree=2, manifolds=u) for u in range(1, 20)]
    assert all(np.diff(rates) >= 0)
    rates = [kfmc_rate(n, 20, latent=2, degree=2) for n in (20, 50, 200, 1000, 10000)]
    assert all(np.diff(rates) < 0)
    # Without end of samples, what remains is to place one sample in feature space.
    assert kfmc_rate(10**9, 20, latent=2, degree=2) == pytest.approx((15 / 231) ** 0.5, abs=1e-6)


@pytest.mark.parametrize("wrong", [{"latent": 0}, {"degree": 1.5}, {"manifolds": -1}])
def test_wrong_surfaces_are_named(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be an integer"):
        low_rank_rate(100, 10, **{"latent": 2, "degree": 2, **wrong})
