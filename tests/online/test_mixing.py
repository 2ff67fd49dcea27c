import numpy as np

from hirank.online.mixing import AGES, MixConfig, PredictionMix, age_class

CONFIG = MixConfig()


def scored(errors, features=None, ages=1):
    """A mix of three features that has seen errors, rows x K x features."""
    mix = PredictionMix.start(3, np.ones(errors.shape[1]))
    at = np.arange(3) if features is None else features
    for row in errors:
        mix = mix.score(row, at, np.full(3, ages), np.ones(3), CONFIG)
    return mix


def weights(mix, ages=1):
    return mix.weights(np.arange(3), np.full(3, ages), np.ones(3), CONFIG)[0]


def test_before_any_errors_weights_follow_the_prior():
    mix = PredictionMix.start(3, np.array([1.0, 100.0]))
    w = weights(mix)
    np.testing.assert_allclose(w.sum(axis=1), 1)
    assert (w[:, 0] > 0.9).all()


def test_weights_sum_to_one_and_prefer_small_errors():
    errors = np.random.default_rng(0).normal(size=(200, 2, 3)) * [[[0.1], [1.0]]]
    w = weights(scored(errors))
    np.testing.assert_allclose(w.sum(axis=1), 1)
    assert (w >= 0).all()
    assert (w[:, 0] > 0.9).all()


def test_independent_errors_of_one_size_are_averaged():
    errors = np.random.default_rng(0).normal(size=(400, 2, 3))
    np.testing.assert_allclose(weights(scored(errors)), 0.5, atol=0.1)


def test_ages_have_weights_of_their_own():
    rng = np.random.default_rng(0)
    mix = scored(rng.normal(size=(200, 2, 3)) * [[[0.1], [1.0]]], ages=1)
    for row in rng.normal(size=(200, 2, 3)) * [[[1.0], [0.1]]]:
        mix = mix.score(row, np.arange(3), np.full(3, 40), np.ones(3), CONFIG)
    assert (weights(mix, 1)[:, 0] > 0.8).all()
    assert (weights(mix, 40)[:, 1] > 0.8).all()


def test_age_classes_begin_at_their_bounds():
    np.testing.assert_array_equal(age_class(AGES), np.arange(len(AGES)))
    np.testing.assert_array_equal(age_class(np.array([4, 8, 16, 32, 10**6])), [2, 3, 4, 5, 6])
