"""Codes are optimal: against the convex conditions, scikit-learn's lasso, and each other."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from hirank.cluster import penalty_scale, sparse_self_expression


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    planes = [rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6)) for _ in range(2)]
    return np.vstack(planes) + 0.05 * rng.standard_normal((40, 6))


def objective(X, codes, fit, outliers=0.0, cost=0.0):
    error = X - codes @ X - outliers
    return np.abs(codes).sum() + fit / 2 * np.sum(error**2) + cost * np.abs(outliers).sum()


@pytest.mark.parametrize("alpha", [2, 20, 800])
def test_without_the_sum_it_is_the_lasso_of_scikit_learn(X, alpha):
    fit = alpha / penalty_scale(X)
    codes = sparse_self_expression(X, fit, affine=False, tol=1e-8).coefficients
    for i in range(0, len(X), 7):
        others = np.delete(np.arange(len(X)), i)
        lasso = Lasso(1 / (fit * 6), fit_intercept=False, tol=1e-14, max_iter=10**6)
        lasso.fit(X[others].T, X[i])
        assert codes[i, i] == 0
        np.testing.assert_allclose(codes[i, others], lasso.coef_, atol=1e-5)


@pytest.mark.parametrize("alpha", [2, 20, 800])
@pytest.mark.parametrize("cost", [None, 3.0])
def test_affine_codes_meet_the_optimality_conditions(X, alpha, cost):
    """0 is in the subgradient: slopes are sign(c) where c != 0, and in [-1, 1] elsewhere."""
    fit = alpha / penalty_scale(X)
    found = sparse_self_expression(X, fit, outlier_cost=cost, tol=1e-6)
    C, E = found.coefficients, found.outliers
    assert (found.violation <= 1e-6).all()
    np.testing.assert_allclose(C.sum(axis=1), 1, atol=1e-6)
    pull = fit * (X - C @ X - E)
    for i, (code, slope) in enumerate(zip(C, pull @ X.T, strict=True)):
        used = np.flatnonzero(code)
        sums = np.sign(code[used]) - slope[used]  # the multiplier of the sum
        assert len(used)
        np.testing.assert_allclose(sums, sums[0], atol=1e-5)
        assert np.abs(np.delete(slope, i) + sums[0]).max() <= 1 + 1e-5
    if cost is None:
        assert not E.any()
    else:
        assert np.abs(pull).max() <= cost * (1 + 1e-5)
        np.testing.assert_allclose(pull[E != 0], cost * np.sign(E[E != 0]), rtol=1e-5)


def test_a_stiff_fit_converges(X):
    found = sparse_self_expression(X, 1e5 / penalty_scale(X))
    assert found.violation.max() <= 1e-3


def test_no_feasible_change_improves(X):
    fit = 20 / penalty_scale(X)
    C = sparse_self_expression(X, fit, tol=1e-6).coefficients
    best, rng = objective(X, C, fit), np.random.default_rng(0)
    for size in 10.0 ** np.arange(-5, 0):
        change = rng.standard_normal(C.shape) * (rng.random(C.shape) < 0.2)
        np.fill_diagonal(change, 0)
        others = ~np.eye(len(C), dtype=bool)
        change -= others * change.sum(axis=1, keepdims=True) / others.sum(axis=1, keepdims=True)
        assert objective(X, C + size * change, fit) >= best - 1e-6


def test_order_of_samples_does_not_matter(X):
    order = np.random.default_rng(1).permutation(len(X))
    plain = sparse_self_expression(X, 100.0, tol=1e-6).coefficients
    mixed = sparse_self_expression(X[order], 100.0, tol=1e-6).coefficients
    np.testing.assert_allclose(mixed, plain[np.ix_(order, order)], atol=1e-5)


def test_blocks_do_not_matter(X):
    plain = sparse_self_expression(X, 100.0).coefficients
    done = []

    def report(count, n, seconds):
        done.append(count)

    small = sparse_self_expression(X, 100.0, report=report, block_size=7).coefficients
    np.testing.assert_allclose(small, plain, atol=1e-4)
    assert done == [7, 14, 21, 28, 35, 40]


def test_points_inside_the_hull_of_others_converge():
    """All slopes are 1 there: the dual objective is flat up to rounding."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((60, 3)) @ rng.standard_normal((3, 20)) for _ in range(3)])
    found = sparse_self_expression(X, 800 / penalty_scale(X))
    assert found.violation.max() <= 1e-3
    assert found.n_iter.max() < 200


def test_max_iter_ends_it(X):
    found = sparse_self_expression(X, 1e4, max_iter=2)
    assert (found.n_iter == 2).all()
    assert found.violation.max() > 1e-3


def test_penalty_scale_is_where_the_first_code_vanishes(X):
    scale = penalty_scale(X)
    above = sparse_self_expression(X, 1.001 / scale, affine=False).coefficients
    below = sparse_self_expression(X, 0.999 / scale, affine=False).coefficients
    assert above.any(axis=1).all()
    assert (~below.any(axis=1)).sum() == 1


def test_penalty_scale_leaves_out_what_is_orthogonal_to_all():
    X = np.array([[1.0, 0, 0], [2, 0, 0], [0, 0, 5], [0, 0, 0]])
    assert penalty_scale(X) == 2
    assert penalty_scale(np.eye(3)) == 0
