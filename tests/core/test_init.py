import numpy as np
import pytest

from hirank.core.init import most_observed, soft_impute


@pytest.mark.parametrize("shape", [(80, 12), (12, 80)])
def test_soft_impute_completes_a_low_rank_table(shape):
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    observed = rng.random(shape) >= 0.3
    filled = soft_impute(np.where(observed, truth, np.nan), observed)
    assert (filled[observed] == truth[observed]).all()
    assert np.linalg.norm(filled - truth) < 0.1 * np.linalg.norm(truth)


def test_soft_impute_leaves_a_complete_table_alone():
    X = np.random.default_rng(0).standard_normal((5, 3))
    assert (soft_impute(X, np.ones(X.shape, bool)) == X).all()


def test_the_dictionary_starts_from_the_rows_with_most_entries():
    observed = np.random.default_rng(0).random((30, 4)) >= 0.4
    rows = most_observed(observed, 12, np.random.default_rng(3))
    counts = observed.sum(axis=1)
    assert len(set(rows)) == 12
    assert counts[rows].min() >= np.delete(counts, rows).max()
    assert (rows == most_observed(observed, 12, np.random.default_rng(3))).all()
    assert set(most_observed(observed, 30, np.random.default_rng(3))) == set(range(30))
