import numpy as np
import pytest

from hirank.model.start import soft_impute, spread_rows


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


def test_rows_are_different_and_depend_only_on_the_generator():
    X = np.random.default_rng(0).standard_normal((30, 4))
    rows = spread_rows(X, 12, np.random.default_rng(3))
    assert len(set(rows)) == 12
    assert (rows == spread_rows(X, 12, np.random.default_rng(3))).all()
    assert set(spread_rows(X, 30, np.random.default_rng(3))) == set(range(30))
