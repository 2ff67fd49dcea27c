import numpy as np
import pytest

from hirank.datasets import polynomial_manifolds
from hirank.theory.counts import count_observed
from hirank.theory.structure import local_dimension, measure_structure


@pytest.mark.parametrize("latent", [1, 2, 3])
@pytest.mark.parametrize(("degree", "manifolds"), [(3, 1), (2, 3), (1, 8)])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_local_dimension_is_the_number_of_latent_variables(latent, degree, manifolds, noise):
    X = polynomial_manifolds(
        80, 20, latent=latent, degree=degree, manifolds=manifolds, random_state=0
    )
    X = X / X.std(axis=0) + noise * np.random.default_rng(1).standard_normal(X.shape)

    assert local_dimension(X, 1.2 * noise) == latent


def test_noise_is_not_structure():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 15))
    X = X / X.std(axis=0) + 0.1 * rng.standard_normal((300, 15))

    assert measure_structure(X, 0.1, rng).linear_rank == 3
    assert measure_structure(X, 1e-6, rng).linear_rank == 15
    # Quadratics of three variables: 1 + 3 + 6
    assert measure_structure(X, 0.1, rng).feature_rank <= 10


def test_entries_are_out_of_reach_in_sparse_rows_and_columns():
    observed = np.ones((10, 4), bool)
    observed[0, 1:] = False  # one entry in the row
    observed[3:, 3] = False  # two entries in the column
    observed[5, 0] = False

    counts = count_observed(observed, row_needs=2, column_needs=3)

    assert np.flatnonzero(counts.sparse_rows).tolist() == [0]
    assert np.flatnonzero(counts.sparse_columns).tolist() == [3]
    assert counts.reachable == pytest.approx(1 / 11)  # of 3 + 7 + 1 missing entries


def test_columns_that_no_row_connects_are_separate_groups():
    observed = np.zeros((6, 4), bool)
    observed[:3, :2], observed[3:, 2:] = True, True

    counts = count_observed(observed, row_needs=1, column_needs=1)

    assert [group.tolist() for group in counts.groups] == [[0, 1], [2, 3]]
    assert counts.reachable == 0


def test_a_complete_table_has_no_reachable_share():
    assert count_observed(np.ones((5, 3), bool), 1, 1).reachable is None
