"""Imputer on a table for which it selects a low-rank kernel matrix."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.estimators import FAST, FAST_SEARCH, remove_entries

import hirank
from hirank import Imputer
from hirank.models.weighted import WeightedModel
from hirank.selection.config import SchattenConfig

N_FIT = 80
WHOLE_PATH = replace(FAST_SEARCH, schatten=SchattenConfig(bandwidths=(3.0,), n_models=1))


@pytest.fixture(scope="module")
def surface():
    """Return a surface of degree 2 in ten dimensions, without noise, 140 x 10; 25 % missing."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 140))
    monomials = np.column_stack([np.ones(140), a, b, a * b, a**2, b**2])
    truth = monomials @ rng.normal(size=(6, 10)) * np.linspace(1, 20, 10) + 100
    return truth, remove_entries(rng, truth, 0.25)


@pytest.fixture(scope="module")
def fitted(surface):
    """Return a model of the first rows, and these as imputed."""
    model = Imputer(**FAST)
    model._config = WHOLE_PATH  # of the instance: a derived class cannot be saved
    return model, model.fit_transform(surface[1][:N_FIT])


def scaled_errors(filled, truth, observed):
    """Return the absolute errors of missing entries, in standard deviations of features."""
    return (np.abs(filled - truth) / truth.std(axis=0))[~observed]


def test_an_exact_polynomial_table_is_imputed_by_a_low_rank_kernel_matrix(fitted, surface):
    (model, filled), (truth, X) = fitted, surface
    observed = ~np.isnan(X[:N_FIT])

    results = model.search_results_
    assert (filled == X[:N_FIT])[observed].all()
    assert scaled_errors(filled, truth[:N_FIT], observed).mean() < 1e-3  # 2e-7 here
    assert results["family"][results["weight"].argmax()] == "low-rank kernel (poly)"
    assert "low-rank kernel (rbf)" not in results["family"]  # nothing is left to gain
    assert {type(one) for one in model._fitted.model.models} == {WeightedModel}


def test_new_rows_are_imputed_one_by_one_or_together(fitted, surface):
    (model, _), (truth, X) = fitted, surface
    new, observed = X[N_FIT:], ~np.isnan(X[N_FIT:])

    filled = model.transform(new)

    assert (filled == new)[observed].all()
    # All but 8 of 160 are below 1e-6: single rows end on another part of the surface.
    assert np.quantile(scaled_errors(filled, truth[N_FIT:], observed), 0.9) < 1e-3
    np.testing.assert_allclose(model.transform(new[5:7]), filled[5:7], rtol=1e-9)


def test_intervals_and_samples_surround_imputed_values(fitted, surface):
    (model, _), (truth, X) = fitted, surface
    new, missing = X[N_FIT:], np.isnan(X[N_FIT:])

    filled = model.transform(new)
    lower, upper = model.interval(new, coverage=0.9)
    draws = np.stack([*model.sample(new, 20, random_state=0)])

    assert (lower <= filled + 1e-9).all()
    assert (filled <= upper + 1e-9).all()
    inside = (lower <= truth[N_FIT:]) & (truth[N_FIT:] <= upper)
    assert inside[missing].mean() > 0.8
    assert (draws[:, ~missing] == new[~missing]).all()
    spread = draws.std(axis=0)[missing] / np.broadcast_to(truth.std(axis=0), new.shape)[missing]
    assert 0 < np.median(spread) < 0.05


def test_the_summary_names_the_family(fitted):
    summary = fitted[0].summary()

    assert summary["selected"][0]["family"] == "low-rank kernel (poly)"
    assert summary["selected"][0]["kernel"] == "poly"
    assert "low-rank kernel (poly)" in str(summary)
    assert "Nonlinear models pay off" in summary["verdict"]


def test_a_saved_model_imputes_the_same(fitted, surface, tmp_path):
    model, new = fitted[0], surface[1][N_FIT:]
    model.save(tmp_path / "model.hirank")

    loaded = hirank.load(tmp_path / "model.hirank")

    assert {type(one) for one in loaded._fitted.model.models} == {WeightedModel}
    assert (loaded.transform(new) == model.transform(new)).all()
    assert (np.stack(loaded.interval(new)) == np.stack(model.interval(new))).all()
    assert str(loaded.summary()) == str(model.summary())
