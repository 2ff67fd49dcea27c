import itertools

import numpy as np
import pytest

from hirank.models.time_mix import MixConfig, _smallest_mean_square, distance_classes, mix_weights
from hirank.models.timeline import Timeline

N_CLASSES = len(MixConfig.edges) + 1


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_distances_are_counted_in_time_and_within_groups():
    observed = np.array([[1, 0, 0, 0, 0, 0, 0]], bool).T
    timeline = Timeline(np.array([0.0, 1, 2, 5, 20, 21, 22]), np.array([0, 0, 0, 0, 0, 1, 1]))

    found = distance_classes(observed, timeline, 1.0)

    assert found.ravel().tolist() == [0, 0, 1, 3, 5, 6, 6]


def test_weights_are_those_of_the_smallest_mean_square(rng):
    roots = rng.normal(size=(5, 3, 4))
    moments = roots @ np.swapaxes(roots, 1, 2)

    found = _smallest_mean_square(moments)

    grid = np.array([w for w in itertools.product(range(51), repeat=3) if sum(w) == 50]) / 50
    for A, w in zip(moments, found, strict=True):
        assert (w >= 0).all()
        assert w.sum() == pytest.approx(1)
        assert w @ A @ w <= np.einsum("ki,ij,kj->k", grid, A, grid).min() + 1e-9


def test_each_feature_and_distance_takes_what_was_best_there(rng):
    """The first prediction is good near observed entries, the second one far from them."""
    classes, features = rng.integers(0, 2, 4000) * 6, rng.integers(0, 3, 4000)
    scale = np.where(classes[:, None] == 0, [1.0, 9.0], [9.0, 1.0])
    errors = rng.normal(size=(4000, 2)) * scale

    weights = mix_weights(errors, features, classes, 3)

    assert weights.shape == (N_CLASSES, 3, 2)
    assert (weights[0, :, 0] > 0.9).all()
    assert (weights[6, :, 1] > 0.9).all()


def test_features_with_few_held_out_entries_are_judged_by_the_others(rng):
    features = np.repeat([0, 1], [1000, 1])
    errors = rng.normal(size=(1001, 2)) * [1, 4]
    errors[-1] = [4, 1]

    weights = mix_weights(errors, features, np.zeros(1001, int), 2)

    assert weights[0, 1, 0] > 0.8


def test_predictions_without_errors_have_weights(rng):
    weights = mix_weights(np.zeros((60, 3)), rng.integers(0, 2, 60), np.zeros(60, int), 2)

    np.testing.assert_allclose(weights.sum(axis=2), 1)
