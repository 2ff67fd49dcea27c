from itertools import combinations_with_replacement
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from hirank.datasets import add_noise, polynomial_manifolds, smooth_manifolds, twisted_cubic

rank = np.linalg.matrix_rank


@pytest.mark.parametrize(("degree", "manifolds", "expected"), [(3, 1, 19), (3, 3, 30), (1, 10, 30)])
def test_tables_have_the_ranks_of_the_paper(degree, manifolds, expected):
    for seed in range(5):
        X = polynomial_manifolds(100, degree=degree, manifolds=manifolds, random_state=seed)
        assert X.shape == (100 * manifolds, 30)
        assert rank(X) == expected


@given(
    latent=st.integers(1, 3),
    degree=st.integers(1, 3),
    manifolds=st.integers(1, 3),
    m=st.integers(1, 25),
    n=st.integers(1, 60),
)
def test_ranks_are_those_of_lemma_1_less_the_constant_monomial(latent, degree, manifolds, m, n):
    X = polynomial_manifolds(
        n, m, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    monomials = comb(latent + degree, degree) - 1
    assert rank(X, tol=1e-12 * np.linalg.norm(X)) == min(m, manifolds * min(n, monomials))


@pytest.mark.parametrize(
    ("latent", "degree", "manifolds", "power"), [(1, 2, 1, 2), (2, 1, 2, 2), (2, 2, 1, 2)]
)
def test_ranks_of_polynomial_features_are_those_of_theorem_2(latent, degree, manifolds, power):
    X = polynomial_manifolds(
        100, 8, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    expected = manifolds * comb(latent + degree * power, degree * power)
    if manifolds > 1:  # without a constant monomial all manifolds share the origin: phi(0)
        expected -= manifolds - 1
    assert rank(PolynomialFeatures(power).fit_transform(X)) == expected


def test_draws_stay_what_they_were():
    """Benchmarks and their published numbers depend on every bit."""
    rng = np.random.default_rng(7)
    powers = [p for d in (1, 2) for p in combinations_with_replacement(range(2), d)]
    parts = []
    for _ in range(3):
        P, s = rng.standard_normal((6, len(powers))), rng.random((10, 2))
        parts.append(np.stack([s[:, p].prod(axis=1) for p in powers], axis=1) @ P.T)
    expected = rng.permutation(np.concatenate(parts))
    X = polynomial_manifolds(10, 6, latent=2, degree=2, manifolds=3, shuffle=True, random_state=7)
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize("make", [polynomial_manifolds, smooth_manifolds])
@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_are_the_manifolds(make, shuffle):
    X, labels = make(
        40, 12, latent=1, manifolds=3, shuffle=shuffle, return_labels=True, random_state=0
    )
    assert (np.bincount(labels) == 40).all()
    assert (np.diff(labels) < 0).any() == shuffle
    plain = make(40, 12, latent=1, manifolds=3, random_state=0)
    for label in range(3):
        assert {*map(tuple, X[labels == label])} == {*map(tuple, plain[label * 40 :][:40])}


def test_smooth_features_have_unit_variance_and_no_small_polynomial_rank():
    X = smooth_manifolds(500, 20, latent=2, frequency=6.0, random_state=0)
    assert 0.5 < X.var() < 2
    assert rank(X) == 20
    polynomial = polynomial_manifolds(500, 20, latent=2, degree=3, random_state=0)
    assert rank(polynomial) == 9


@pytest.mark.parametrize("frequency", [0.01, 1.0, 20.0])
def test_frequency_sets_how_curved(frequency):
    """A plane through the samples explains all of them, some, or next to nothing."""
    X = smooth_manifolds(300, 10, latent=2, frequency=frequency, random_state=0)
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    flat = singular[:2].sum() / singular.sum()
    low, high = {0.01: (0.9999, 1), 1.0: (0.8, 0.9999), 20.0: (0, 0.6)}[frequency]
    assert low < flat <= high


def test_the_twisted_cubic_is_s_s2_s3_on_both_sides_of_zero():
    X = twisted_cubic(random_state=0)
    s = X[:, 0]
    np.testing.assert_array_equal(X, np.stack([s, s**2, s**3], axis=1))
    assert X.shape == (100, 3)
    assert rank(X) == 3
    assert -1 <= s.min() < -0.9 < 0.9 < s.max() <= 1


def test_noise_is_relative_to_each_feature():
    X = np.random.default_rng(0).normal(size=(4000, 3)) * [1, 100, 0] + [0, 0, 5]
    given_ = X.copy()
    noise = add_noise(X, 0.2, random_state=1) - X
    np.testing.assert_allclose(noise.std(axis=0) / [1, 100, 1], [0.2, 0.2, 0], rtol=0.05)
    np.testing.assert_array_equal(X, given_)


def test_noise_keeps_missing_values_and_takes_a_scale():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [4.0, np.nan]])
    noisy = add_noise(X, 0.1, random_state=0)
    np.testing.assert_array_equal(np.isnan(noisy), np.isnan(X))
    assert (noisy[[0, 1, 3], 0] != X[[0, 1, 3], 0]).all()
    one = add_noise(np.zeros((1, 2000)), 0.5, scale=np.full(2000, 2.0), random_state=0)
    assert 0.9 < one.std() < 1.1


@pytest.mark.parametrize("seed", [3, None])
def test_seeds_generators_and_none_are_taken(seed):
    for make in (polynomial_manifolds, smooth_manifolds, twisted_cubic):
        first, second = make(5, random_state=seed), make(5, random_state=seed)
        assert (first == second).all() == (seed is not None)
        rng = np.random.default_rng(3)
        drawn = make(5, random_state=rng), make(5, random_state=rng)
        assert (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polynomial_manifolds(0), "n_samples must be an integer of at least 1"),
        (lambda: polynomial_manifolds(10.0), "n_samples"),
        (lambda: polynomial_manifolds(10, -1), "n_features"),
        (lambda: polynomial_manifolds(10, degree=0), "degree"),
        (lambda: polynomial_manifolds(10, latent=True), "latent"),
        (lambda: polynomial_manifolds(10, manifolds=0), "manifolds"),
        (lambda: smooth_manifolds(10, frequency=0), "frequency must be a number above 0"),
        (lambda: smooth_manifolds(10, terms=0), "terms"),
        (lambda: smooth_manifolds(10, latent=0), "latent"),
        (lambda: twisted_cubic(-2), "n_samples"),
        (lambda: add_noise([[1.0]], -1), "ratio must be a number of at least 0"),
        (lambda: add_noise([1.0, 2.0], 0.1), "X must be a table"),
        (lambda: add_noise([[np.inf]], 0.1), "infinite"),
        (lambda: add_noise([[1.0, 2.0]], 0.1, scale=[1.0]), "scale must be 2"),
    ],
)
def test_wrong_arguments_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
