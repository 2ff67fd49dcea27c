"""The low-rank methods: what they minimize, what they recover, what they refuse."""

import numpy as np
import pytest

from hirank.baselines import LRF, NNM, SoftImpute
from hirank.core.svt import spectral_norm
from hirank.metrics import missing_relative_error
from hirank.models.als import ALSConfig, grow_factors
from hirank.models.low_rank import Subspace, filled_codes, ridge_codes
from hirank.optim.trace import Monitor


@pytest.fixture(scope="module")
def low_rank():
    """A table of rank 3, 200 x 15, with 9 observed entries in each row."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 15))
    return truth, rng.random(truth.shape).argsort(axis=1) < 9


def test_codes_are_those_of_ridge_regression(low_rank):
    truth, observed = low_rank
    basis = np.random.default_rng(1).normal(size=(4, 15))
    X = np.where(observed, truth, 0)
    codes = Subspace(basis, 0.7).codes(X, observed)
    B, x = basis[:, observed[5]], X[5, observed[5]]
    np.testing.assert_allclose(codes[5], np.linalg.solve(B @ B.T + 0.7 * np.eye(4), B @ x))
    np.testing.assert_allclose(ridge_codes(X, observed, basis, 0.7), codes, atol=1e-10)
    everything = np.ones_like(observed)
    np.testing.assert_allclose(
        filled_codes(truth, basis, 0.7), Subspace(basis, 0.7).codes(truth, everything), atol=1e-10
    )


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (LRF(random_state=0), 1e-4),
        (LRF(3, 1e-8, scale=False), 1e-5),
        (NNM(), 1e-2),
        (SoftImpute(random_state=0), 0.1),
    ],
    ids=["selected", "given", "NNM", "SoftImpute"],
)
def test_low_rank_is_recovered_also_in_new_rows(model, most, low_rank):
    truth, observed = low_rank
    X = np.where(observed, truth, np.nan)
    assert missing_relative_error(model.fit_transform(X), truth, observed) < most
    part = model.fit(X[:150]).transform(X[150:])
    assert missing_relative_error(part, truth[150:], observed[150:]) < 3 * most


@pytest.mark.parametrize(
    "rank", [3, 20]
)  # exact steps, and steps that impute missing entries first
def test_the_objective_of_factorization_never_rises(rank, low_rank):
    truth = np.tile(low_rank[0], (1, 2)) + 0.1 * np.random.default_rng(2).normal(size=(200, 30))
    observed = np.tile(low_rank[1], (1, 2))
    trace = LRF(rank, 1e-3).fit(np.where(observed, truth, np.nan)).trace_
    for stage in np.unique(trace["stage"]):
        objective = trace["objective"][trace["stage"] == stage]
        assert (np.diff(objective) <= 1e-9 * objective[0]).all()


def test_the_objective_of_soft_impute_never_rises(low_rank):
    truth, observed = low_rank
    trace = SoftImpute(1e-2).fit(np.where(observed, truth, np.nan)).trace_
    for stage in np.unique(trace["stage"]):
        objective = trace["objective"][trace["stage"] == stage]
        assert (np.diff(objective) <= 1e-9 * objective[0]).all()


def test_full_factors_solve_the_problem_of_soft_impute(low_rank):
    """|A|_* is the least (|U|^2 + |V|^2) / 2 over A = U V, if the rank is large enough."""
    truth, observed = low_rank
    soft = SoftImpute(0.05, scale=False, max_iter=2000, tol=1e-9).fit(
        np.where(observed, truth, np.nan)
    )
    config, known = ALSConfig(max_iter=2000, tol=1e-12), np.where(observed, truth, 0)
    *_, (_, solution) = grow_factors(known, observed, 0.05, [4, 15], Monitor(), config)
    assert solution.state.objective == pytest.approx(soft.objective_, rel=1e-5)
    factors = solution.state.factors
    rows = Subspace(factors.orthogonal(), 0.05 * spectral_norm(np.where(observed, truth, 0)))
    filled = soft.transform(np.where(observed, truth, np.nan))
    np.testing.assert_allclose(rows.complete(truth, observed), filled, atol=1e-3)
    again = soft.fit_transform(np.where(observed, truth, np.nan))
    np.testing.assert_allclose(again, filled, atol=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_nuclear_norm_agrees_with_a_convex_solver(seed):
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(20, 30))
    observed = rng.random(X.shape) >= 0.4
    A = cp.Variable(X.shape)
    cp.Problem(cp.Minimize(cp.normNuc(A)), [A[observed] == X[observed]]).solve(solver="CLARABEL")
    model = NNM(scale=False, tol=1e-7)
    filled = model.fit_transform(np.where(observed, X, np.nan))
    assert np.linalg.norm(filled - A.value) <= 1e-4 * np.linalg.norm(A.value)
    assert model.objective_ == pytest.approx(cp.normNuc(A).value, rel=1e-6)


def test_the_selected_rank_is_an_attribute(low_rank):
    truth, observed = low_rank
    model = LRF(random_state=0).fit(np.where(observed, truth, np.nan))
    assert 3 <= model.rank_ <= 6
    assert model.components_.shape == (model.rank_ + 1, 15)
    assert LRF(rank=3).fit(truth).rank_ == 3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LRF(16), "rank=16 is more than the table allows.*at most 15"),
        (LRF(0), "rank.*at least 1"),
        (LRF(2.5), "rank.*integer"),
        (LRF(ridge=-1), "ridge.*above 0"),
        (LRF(tol=-1), "tol"),
        (NNM(tol=0), "tol.*above 0"),
        (NNM(max_iter=0), "max_iter"),
        (SoftImpute(0), "threshold.*above 0"),
        (SoftImpute(missing_values="none"), "missing_values"),
    ],
    ids=str,
)
def test_wrong_parameters_are_errors_that_say_what_to_give(model, message, low_rank):
    with pytest.raises(ValueError, match=message):
        model.fit(np.where(low_rank[1], *low_rank[:1], np.nan))


def test_few_entries_are_no_reason_to_fail():
    X = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]])
    for model in (LRF(), NNM(), SoftImpute()):
        assert np.isfinite(model.fit_transform(X)).all()
