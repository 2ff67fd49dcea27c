"""Advice on tables whose structure is known."""

import json

import numpy as np
import pandas as pd
import pytest

from hirank import Imputer
from hirank.datasets import polynomial_manifolds
from hirank.theory import advise


def remove(truth, missing=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(truth.shape) < missing, np.nan, truth)


def low_rank(rank=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((120, rank)) @ rng.standard_normal((rank, 12)) + 5


@pytest.fixture(scope="module")
def subspaces():
    truth = polynomial_manifolds(40, 10, latent=2, degree=1, manifolds=3, random_state=0)
    X = remove(truth)
    X[[10, 20]] = np.nan
    X[10, 3] = truth[10, 3]  # one entry; row 20 has none
    X[:, 5] = np.nan
    X[:4, 5] = truth[:4, 5]  # a column that is observed in four rows
    return X


@pytest.fixture(scope="module")
def advice(subspaces):
    return advise(subspaces, random_state=0)


def test_advice_agrees_with_the_summary_of_the_fit():
    X = remove(low_rank(rank=1)[:50, :4])

    advice = advise(X, random_state=0)

    summary = Imputer(random_state=0).fit(X).summary()
    assert advice.verdict == summary["verdict"]
    assert advice.error == summary["error"]
    assert advice.linear_error == summary["linear_error"]
    assert f"{advice.error:.3f}" in str(advice)


def test_the_structure_of_several_subspaces_is_estimated(advice):
    assert advice.error < 0.5 * advice.linear_error
    assert advice.latent_dimension == 2
    assert 5 <= advice.linear_rank <= 7
    assert advice.kfmc_rate < advice.low_rank_rate


def test_sparse_and_empty_rows_and_columns_are_listed(advice, subspaces):
    n_observed = np.isfinite(subspaces).sum(axis=1)

    assert advice.row_needs == 3
    few = np.flatnonzero((n_observed < 3) & (n_observed > 0))
    assert advice.sparse_rows == {i: n_observed[i] for i in few}
    assert advice.sparse_features == {5: 4}
    assert advice.empty_rows == (20,)
    assert 0.5 < advice.reachable < 1
    assert "10 (has 1)" in str(advice)
    assert "5 (has 4)" in str(advice)


def test_advice_becomes_json(advice):
    plain = json.loads(json.dumps(advice.to_dict(), allow_nan=False))

    assert plain["error"] == advice.error
    assert plain["sparse_features"] == {"5": 4}


def test_a_low_rank_table_has_its_rank():
    advice = advise(remove(low_rank()), random_state=0)

    assert (advice.linear_rank, advice.latent_dimension) == (3, 3)
    assert "linear method does as well" in advice.verdict


def test_noise_has_no_structure():
    noise = np.random.default_rng(0).standard_normal((60, 5))

    advice = advise(remove(noise), random_state=0)

    assert advice.error > 0.9
    assert advice.latent_dimension is advice.linear_rank is advice.kfmc_rate is None
    assert advice.poor_features


def test_one_entry_is_enough_on_a_line():
    x = np.random.default_rng(0).uniform(-1, 1, 100)

    advice = advise(remove(np.column_stack([x, 2 * x + 1]), 0.15), random_state=0)

    assert (advice.row_needs, advice.sparse_rows) == (1, {})


def test_columns_that_are_never_observed_together_are_out_of_reach():
    X = low_rank(rank=1)[:60, :4]
    X[:30, 2:] = np.nan
    X[30:, :2] = np.nan

    advice = advise(X, random_state=0)

    assert advice.separate_groups == ((0, 1), (2, 3))
    assert advice.reachable == 0
    assert "No row has observed entries of two of these groups" in str(advice)


def test_columns_of_a_data_frame_have_their_names():
    frame = pd.DataFrame(remove(low_rank()), columns=[f"s{j}" for j in range(12)])
    frame["site"] = "north"
    frame["fixed"] = 7.0
    frame["void"] = np.nan
    frame["count"] = pd.array([1, None] * 60, dtype="Int64")
    frame["random"] = np.random.default_rng(3).standard_normal(120)
    frame.loc[::2, "random"] = np.nan

    advice = advise(frame, random_state=0)

    assert advice.ignored_columns == ("site",)
    assert advice.empty_features == ("void",)
    assert advice.constant_features == ("fixed", "count")
    assert list(advice.poor_features) == ["random"]
    assert all(name in str(advice) for name in ("site", "void", "fixed", "random"))


@pytest.mark.parametrize(
    "X", [[[1.0, np.nan]], [[1.0], [np.nan], [3.0]], [[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]]]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tiny_tables_have_no_errors(X):
    advice = advise(X, random_state=0)

    assert advice.n_held_out == 0
    assert advice.to_dict()["error"] is None


def test_other_missing_values_count_as_missing():
    X = remove(low_rank(rank=1)[:50, :4])
    marked = np.where(np.isnan(X), -200, X)

    advice = advise(marked, missing_values=-200, random_state=3)

    assert advice == advise(X, random_state=3)


def test_unusable_tables_are_errors():
    with pytest.raises(ValueError, match="no observed"):
        advise(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="infinity"):
        advise([[1.0, np.inf], [2.0, 3.0]])
    with pytest.raises(ValueError, match="No column is numeric"):
        advise(pd.DataFrame({"a": ["x", "y"]}))
