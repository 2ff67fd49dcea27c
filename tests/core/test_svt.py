"""Leading singular vectors by the Gram matrix are those of a decomposition."""

import numpy as np
import pytest

from hirank.core import svt


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(3000, 40), (40, 3000)])
def test_the_gram_matrix_gives_the_leading_directions_of_a_long_table(rng, shape):
    n, m = shape
    assert n * m > svt.MAX_DECOMPOSED
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, m)) + 0.1 * rng.normal(size=shape)

    P, s, Qt = svt.leading_singular(X, 5)

    U, values, Vt = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(s, values[:5], rtol=1e-12)
    np.testing.assert_allclose((P * s) @ Qt, (U[:, :5] * values[:5]) @ Vt[:5], atol=1e-9)
    np.testing.assert_allclose(P.T @ P, np.eye(5), atol=1e-9)


def test_a_long_table_of_zeros_has_no_direction():
    P, s, Qt = svt.leading_singular(np.zeros((6000, 20)), 2)

    assert not s.any()
    assert np.isfinite(P).all()
    assert np.isfinite(Qt).all()
