"""Weights of predictions in the compiled core and in NumPy."""

import numpy as np
import pytest

from hirank import _compiled
from hirank.online.mixing import AGES, MixConfig, PredictionMix

CONFIG = MixConfig()


@pytest.fixture(params=[1, 2, 4])
def mix(request):
    """A mix of predictions with correlated errors, in some features and ages."""
    rng, K = np.random.default_rng(request.param), request.param
    mix = PredictionMix.start(6, np.linspace(1, 9, K))
    spread = rng.normal(size=(K, K))
    for _ in range(300):
        at = rng.permutation(5)[:3]
        errors = spread @ rng.normal(size=(K, 3))
        mix = mix.score(errors, at, rng.choice([1.0, 1.0, 4.0, 40.0], 3), np.ones(3), CONFIG)
    return mix


@pytest.mark.usefixtures("core")
def test_the_compiled_weights_are_those_of_numpy(mix):
    features = np.repeat(np.arange(6), len(AGES))
    ages, unit = np.tile(AGES, 6), np.linspace(0.1, 5, 6 * len(AGES))
    found = mix.weights(features, ages, unit, CONFIG)
    with _compiled.using("off"):
        expected = mix.weights(features, ages, unit, CONFIG)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("core")
def test_entries_of_other_features_are_refused(mix):
    with pytest.raises(ValueError, match="features"):
        mix.weights(np.array([6]), np.ones(1), np.ones(1), CONFIG)
