"""DLSR, SFMC and GroupSparse: what they minimize, what they recover, what they refuse."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from hirank.baselines import DLSR, NNM, SFMC, GroupSparse
from hirank.baselines import dlsr as online
from hirank.baselines import group_sparse as groups
from hirank.baselines import sfmc as factors
from hirank.baselines.sparse_codes import improve_codes, lasso_codes, refit
from hirank.datasets import polynomial_manifolds
from hirank.metrics import missing_relative_error

every = pytest.mark.parametrize(
    "model", [DLSR(12, 0.01, n_passes=3), SFMC(12, 0.01), GroupSparse(0.01)], ids=str
)


@pytest.fixture(scope="module")
def coding():
    """Rows with missing entries, and a dictionary with more atoms than features."""
    rng = np.random.default_rng(0)
    D = rng.normal(size=(30, 20))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    observed = rng.random((12, 20)) < 0.6
    return np.where(observed, rng.normal(size=(12, 20)), 0), observed, D


@pytest.fixture(scope="module")
def low_rank():
    """A table of rank 3, 300 x 20, and what is observed of it."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 20))
    return truth, rng.random(truth.shape) < 0.7


@pytest.fixture(scope="module")
def union():
    """Eight planes in 20 features, 320 samples: high rank, but few atoms a sample."""
    truth = polynomial_manifolds(
        40, 20, latent=2, degree=1, manifolds=8, shuffle=True, random_state=0
    )
    return truth, np.random.default_rng(1).random(truth.shape) < 0.8


def remove_entries(table):
    truth, observed = table
    return np.where(observed, truth, np.nan)


def test_codes_are_those_of_the_lasso_and_optimal(coding):
    X, observed, D = coding
    l1 = 0.1
    Z = lasso_codes(X, observed, D, l1)
    assert 0 < np.count_nonzero(Z) < Z.size
    for x, seen, z in zip(X, observed, Z, strict=True):
        atoms = D[:, seen].T
        lasso = Lasso(l1 / seen.sum(), fit_intercept=False, tol=1e-12, max_iter=100_000)
        np.testing.assert_allclose(z, lasso.fit(atoms, x[seen]).coef_, atol=1e-6)
        slope = atoms.T @ (x[seen] - atoms @ z)
        assert np.abs(slope).max() <= l1 + 1e-10
        np.testing.assert_allclose(slope[z != 0], l1 * np.sign(z[z != 0]), atol=1e-10)


def test_accelerated_codes_come_to_the_same_and_never_get_worse(coding):
    X, observed, D = coding

    def objective(Z):
        residual = observed * (Z @ D) - X
        return np.sum(residual**2, axis=1) / 2 + 0.1 * np.abs(Z).sum(axis=1)

    Z = np.zeros((len(X), len(D)))
    values = [objective(Z)]
    for _ in range(20):
        Z = improve_codes(X, observed, D, Z, 0.1, 50)
        values.append(objective(Z))
    assert (np.diff(values, axis=0) <= 0).all()
    best = objective(lasso_codes(X, observed, D, 0.1))
    np.testing.assert_allclose(values[-1], best, rtol=1e-4)
    assert (values[-1] >= best - 1e-12).all()


def test_refitted_codes_leave_a_residual_orthogonal_to_the_atoms_in_use(coding):
    X, observed, D = coding
    sparse = lasso_codes(X, observed, D, 0.8)
    codes = refit(X, observed, D, sparse)
    assert ((codes != 0) == (sparse != 0)).all()
    refitted = 0
    for x, seen, z in zip(X, observed, codes, strict=True):
        used = z != 0
        if 0 < used.sum() <= seen.sum() // 2:
            refitted += 1
            slope = D[used][:, seen] @ (x[seen] - z @ D[:, seen])
            np.testing.assert_allclose(slope, 0, atol=1e-10)
    assert refitted > len(X) // 2


@pytest.mark.parametrize("model", [SFMC(20, 0.003), GroupSparse(0.003)], ids=str)
def test_the_objective_never_rises_within_a_stage(model, union):
    trace = model.set_params(random_state=0).fit(remove_entries(union)).trace_
    same = np.diff(trace["stage"]) == 0
    assert same.sum() > 20
    assert (np.diff(trace["objective"])[same] <= 1e-9 * trace["objective"][:-1][same]).all()


def test_balance_keeps_the_products_and_lowers_the_penalty():
    rng = np.random.default_rng(0)
    Z, D = rng.normal(size=(20, 5)), rng.normal(size=(5, 8))
    Z[:, 3] = 0
    even_Z, even_D = factors.balance_factors(Z, D, 1.0)
    assert len(even_D) == 4
    np.testing.assert_allclose(even_Z @ even_D, Z @ D, atol=1e-12)
    X, observed = Z @ D, np.ones((20, 8), bool)
    value = factors.penalized_error(X, observed, even_Z, even_D, 1.0)
    assert value < factors.penalized_error(X, observed, Z, D, 1.0)
    for size in (0.9, 1.1):
        other = factors.penalized_error(X, observed, even_Z / size, even_D * size, 1.0)
        assert value < other


def test_atoms_solve_the_ridge_regression_of_each_feature():
    rng = np.random.default_rng(0)
    Z, observed = rng.normal(size=(60, 5)), rng.random((60, 7)) < 0.7
    X = np.where(observed, rng.normal(size=(60, 7)), 0)
    D = np.zeros((5, 7))
    for _ in range(4):
        D = factors.improve_atoms(X, observed, Z, D, 0.5)
    for j, seen in enumerate(observed.T):
        exact = np.linalg.solve(Z[seen].T @ Z[seen] + 0.5 * np.eye(5), Z[seen].T @ X[seen, j])
        np.testing.assert_allclose(D[:, j], exact, atol=1e-8)


def test_an_atom_in_the_ball_is_the_best_there():
    rng = np.random.default_rng(0)
    target, curvature = 3 * rng.normal(size=6), rng.uniform(0.1, 2, size=6)
    best = online.project_to_ball(target, curvature)
    assert np.linalg.norm(best) == pytest.approx(1)
    others = rng.normal(size=(2000, 6))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    costs = np.sum(curvature * (others - target) ** 2, axis=1)
    assert np.sum(curvature * (best - target) ** 2) <= costs.min()
    inside = online.project_to_ball(0.1 * target / np.linalg.norm(target), curvature)
    np.testing.assert_array_equal(inside, 0.1 * target / np.linalg.norm(target))


def test_a_dictionary_update_lowers_what_it_should():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(100, 6)), rng.normal(size=(100, 9))
    observed = rng.random(X.shape) < 0.6
    grams = np.stack([Z[seen].T @ Z[seen] for seen in observed.T])
    products = np.where(observed, X, 0).T @ Z
    D = rng.normal(size=(6, 9))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    misfits = []
    for _ in range(5):
        misfits.append(np.sum(np.where(observed, X - Z @ D, 0) ** 2))
        D = online.improve_dictionary(D, grams, products)
        assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-9
    assert (np.diff(misfits) < 0).all()


@pytest.mark.parametrize(
    "model", [DLSR(10, 1e-3), SFMC(10, 1e-4), GroupSparse(1e-4)], ids=["DLSR", "SFMC", "Group"]
)
def test_a_table_of_low_rank_is_recovered(model, low_rank):
    filled = model.set_params(random_state=0).fit_transform(remove_entries(low_rank))
    assert missing_relative_error(filled, *low_rank) < 1e-3


def test_a_stream_of_low_rank_is_recovered_and_new_rows_too():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(7400, 3)) @ rng.normal(size=(3, 20))
    observed = rng.random(truth.shape) < 0.7
    X = np.where(observed, truth, np.nan)
    model = DLSR(10, 1e-3, n_warmup=200, random_state=0)
    for start in range(0, 7000, 200):
        model.partial_fit(X[start : start + 200])
    assert model.n_samples_seen_ == 7000
    new = slice(7000, None)
    assert missing_relative_error(model.transform(X[new]), truth[new], observed[new]) < 1e-3


@pytest.mark.parametrize(
    ("model", "bar"),
    [(DLSR(40, 3e-3), 0.08), (SFMC(), 0.08), (GroupSparse(3e-3), 0.08)],
    ids=["DLSR", "SFMC", "Group"],
)
def test_a_union_of_subspaces_is_recovered_where_the_nuclear_norm_fails(model, bar, union):
    filled = model.set_params(random_state=0).fit_transform(remove_entries(union))
    assert missing_relative_error(filled, *union) < bar
    linear = NNM(scale=False).fit_transform(remove_entries(union))
    assert missing_relative_error(linear, *union) > 3 * bar


@every
def test_rows_are_completed_on_their_own_and_observed_entries_stay(model, union):
    X = remove_entries(union)
    fitted = model.set_params(random_state=0).fit(X[:260])
    together = fitted.transform(X[260:])
    observed = union[1][260:]
    assert (together[observed] == X[260:][observed]).all()
    alone = np.concatenate([fitted.transform(row[None]) for row in X[260:]])
    np.testing.assert_array_equal(alone, together)
    assert missing_relative_error(together, union[0][260:], observed) < 0.6


def test_coefficients_join_samples_of_one_subspace():
    truth = polynomial_manifolds(30, 15, latent=2, degree=1, manifolds=3, random_state=0)
    observed = np.random.default_rng(0).random(truth.shape) < 0.8
    model = GroupSparse(0.003, random_state=0).fit(np.where(observed, truth, np.nan))
    C = np.abs(model.coefficients_)
    assert (np.diag(C) == 0).all()
    inside = np.kron(np.eye(3), np.ones((30, 30))) > 0
    assert C[inside].sum() > 0.9 * C.sum()


def test_working_sets_come_to_the_solution_over_all_samples():
    X = np.random.default_rng(0).normal(size=(40, 6))
    objectives = []

    for working_set in (8, 39):
        C = np.zeros((40, 40))
        for _ in range(100):
            C = groups.improve_coefficients(C, X, 0.3, working_set)
        objectives.append(groups.penalized_error(C, X, 0.3))

    assert objectives[0] == pytest.approx(objectives[1], 1e-4)


def test_atoms_that_are_free_go_to_rows_of_a_new_kind():
    rng = np.random.default_rng(0)
    known, other = np.linalg.qr(rng.normal(size=(12, 4)))[0].T.reshape(2, 2, 12)
    seen = np.ones((50, 12), bool)
    start = online.OnlineDictionary.start(np.concatenate([known, np.zeros((2, 12))]), 1e-3, 1.0)
    old, new = rng.normal(size=(50, 2)) @ known, rng.normal(size=(50, 2)) @ other
    model, _ = start.learn(old, seen, 1.0)
    assert model._replace_unused_atoms(old, seen) is model
    grown = model._replace_unused_atoms(new, seen)
    assert (grown.D[:2] == model.D[:2]).all()
    sizes = np.linalg.norm(new, axis=1)
    for atom in grown.D[2:]:
        assert (new @ atom / sizes).max() == pytest.approx(1)


@every
def test_an_l1_that_leaves_nothing_is_an_error(model, low_rank):
    with pytest.raises(ValueError, match="l1=1000 is so large that all codes vanish"):
        model.set_params(l1=1000.0).fit(remove_entries(low_rank))


@pytest.mark.parametrize("kind", [DLSR, SFMC])
def test_more_atoms_than_samples_are_an_error(kind, low_rank):
    with pytest.raises(
        ValueError, match=r"n_components must be at most the number of rows.*got 31"
    ):
        kind(31).fit(remove_entries(low_rank)[:30])


@every
@pytest.mark.parametrize("l1", [0, -1, np.nan, "much", None])
def test_an_l1_that_makes_no_sense_is_an_error(model, l1, low_rank):
    with pytest.raises(ValueError, match="l1"):
        type(model)(l1=l1).fit(remove_entries(low_rank))
