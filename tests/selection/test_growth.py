"""Dictionaries that grow: they end early exactly where more points do not help."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import CONFIG, make_data

from hirank.core.init import soft_impute
from hirank.kernels import RBF
from hirank.optim.path import default_path
from hirank.optim.trace import Monitor
from hirank.selection.dictionary_path import DictionarySpec, PathFitter
from hirank.selection.growth import GrowthConfig

TO_THE_END = GrowthConfig(max_first=np.inf, min_share=-np.inf)


def grow(X, observed, growth, n_points):
    """Return a path, the path with more points, and the steps that these took."""
    config = replace(CONFIG, growth=growth)
    data = make_data(X, observed, config, monitor=Monitor(), max_iter=100).compared_folds()
    fitter = PathFitter(data, data.solver)
    spec = DictionarySpec("rbf", RBF(), default_path(), n_points[0])
    small = fitter.probe(spec, [soft_impute(data.X, one) for one in data.training], 3)
    before = data.monitor.steps
    larger = fitter.enlarge(small, n_points[1], 0.9 * small.loss)
    return small, larger, data.monitor.steps - before


@pytest.fixture
def plane(rng):
    """A plane with much noise, 150 x 6: more points only follow the noise."""
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(150, 6))
    return X / X.std(axis=0), rng.random(X.shape) >= 0.2


@pytest.fixture
def wave(rng):
    """A long curve, 200 x 6, which few points do not follow."""
    t = rng.uniform(-3, 3, size=200)
    X = np.column_stack([f(k * t) for k in (1, 2, 3) for f in (np.sin, np.cos)])
    return X / X.std(axis=0), rng.random(X.shape) >= 0.2


def test_growth_that_does_not_help_ends_early(plane):
    _, larger, steps = grow(*plane, GrowthConfig(), (10, 60))
    small, all_the_way, more_steps = grow(*plane, TO_THE_END, (10, 60))

    assert all_the_way.loss > 0.9 * small.loss  # it would not have been taken
    assert larger.loss > 0.9 * small.loss
    assert steps <= 20 < more_steps


def test_growth_that_helps_goes_on_to_the_same_end(wave):
    small, larger, _ = grow(*wave, GrowthConfig(), (8, 40))
    _, all_the_way, _ = grow(*wave, TO_THE_END, (8, 40))

    assert larger.loss < 0.9 * small.loss
    np.testing.assert_array_equal(larger.filled[0], all_the_way.filled[0])
