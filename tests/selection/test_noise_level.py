"""Linear models are left out where a mixture is far ahead; curved ones where only noise is left."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.selection import SMALL, make_data, run_search

from hirank.models.als import Factors
from hirank.selection.candidates import ColumnMeans, GaussianMixtures, LowRank
from hirank.selection.noise_level import is_far_from_linear, noise_level, only_noise_left

MASKING = replace(SMALL.masking, max_folds=1)
LARGE = replace(SMALL, masking=MASKING, large_size=5000)


def missing(rng, X):
    return X / X.std(axis=0), rng.random(X.shape) >= 0.2


@pytest.fixture
def plane(rng):
    """Rank 3 and noise, 200 x 60."""
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 60)) + 0.3 * rng.normal(size=(200, 60))
    return missing(rng, X)


@pytest.fixture
def waves(rng):
    """Waves along two latent variables and noise, 200 x 60: of no rank that is much below 60."""
    z = rng.uniform(-1, 1, (200, 2))
    X = np.sin(3 * z @ rng.normal(size=(2, 60)) + rng.uniform(0, 6, 60))
    return missing(rng, X + 0.05 * rng.normal(size=(200, 60)))


def test_the_noise_level_is_that_of_the_entries(rng):
    U, V = rng.normal(size=(300, 4)), rng.normal(size=(4, 41))
    X = (U @ V)[:, :40] + 0.1 * rng.normal(size=(300, 40))
    observed = rng.random(X.shape) < 0.7
    solved = Factors(*(np.linalg.svd(X, full_matrices=False)[i] for i in (0, 2)))
    s = np.linalg.svd(X, compute_uv=False)
    fitted = Factors(solved.U[:, :4] * s[:4], solved.V[:4])

    assert noise_level(fitted, X, np.ones(X.shape, bool)) == pytest.approx(0.1, rel=0.02)
    assert noise_level(Factors(U, V), X, observed & (rng.random(X.shape) < 0.1)) == 0.0


def families(table, config):
    return {trial.family for trial in run_search(*table, config, max_iter=3).result.trials}


def test_curved_models_are_left_out_where_only_noise_is_left(plane):
    small = replace(LARGE, large_size=100_000)

    assert families(plane, LARGE) <= {
        "column means",
        "Gaussian",
        "Gaussian mixture",
        "low rank",
        "factor analysis",
    }
    assert "dictionary" in families(plane, small)


def test_curved_models_are_tried_where_a_linear_model_leaves_more_than_noise(waves):
    data = make_data(*waves, LARGE)
    trials = [*LowRank().trials(data, None)]

    assert not only_noise_left(trials, data)
    assert "dictionary" in families(waves, LARGE)


def test_a_trial_that_is_not_linear_or_another_family_without_low_rank_decides_nothing(plane):
    data = make_data(*plane, LARGE)
    (trial,) = LowRank().trials(data, None)

    assert only_noise_left([trial], data)
    assert not only_noise_left([replace(trial, linear=False)], data)
    assert not only_noise_left([], data)


def test_linear_models_are_left_out_where_a_mixture_is_far_ahead(curve, plane):
    assert "low rank" not in families(curve, SMALL)
    assert "low rank" in families(plane, SMALL)


def test_only_mixtures_decide_whether_linear_models_are_left_out(plane):
    data = make_data(*plane)
    (means,) = ColumnMeans().trials(data, None)
    (gaussian, *_) = GaussianMixtures().trials(data, None)

    assert not is_far_from_linear([], 0.85)
    assert not is_far_from_linear([means], 0.85)
    assert not is_far_from_linear([means, gaussian], 0.85)
    mixture = replace(gaussian, loss=0.8 * gaussian.loss, linear=False)
    assert is_far_from_linear([means, gaussian, mixture], 0.85)
    assert not is_far_from_linear([means, gaussian, mixture], 0.75)
