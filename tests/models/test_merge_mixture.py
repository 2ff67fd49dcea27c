import numpy as np
import pytest

from hirank.models.merge_mixture import merge_components
from hirank.models.mixture import Mixture


@pytest.fixture
def mixture():
    """Six components in three pairs that are far apart, 4 features."""
    rng = np.random.default_rng(0)
    centers = np.repeat(20.0 * np.arange(3), 2)[:, None] + rng.normal(size=(6, 4))
    roots = rng.normal(size=(6, 4, 6))
    weights = rng.uniform(1, 2, 6)
    return Mixture(weights / weights.sum(), centers, roots @ roots.transpose(0, 2, 1) / 6)


def moments(mixture):
    mean = mixture.weights @ mixture.means
    away = mixture.means - mean
    covariance = np.tensordot(mixture.weights, mixture.covariances, axes=1)
    return mean, covariance + (away.T * mixture.weights) @ away


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 9])
def test_the_moments_of_the_whole_are_kept(mixture, count):
    merged = merge_components(mixture, count)

    merged.check()
    assert len(merged) == min(count, 6)
    for one, other in zip(moments(merged), moments(mixture), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_components_that_are_close_are_merged_first(mixture):
    merged = merge_components(mixture, 3)

    expected = mixture.weights.reshape(3, 2).sum(axis=1)
    order = np.argsort(merged.means[:, 0])
    np.testing.assert_allclose(merged.weights[order], expected)
