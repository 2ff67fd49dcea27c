"""Factor analysis is a Gaussian with a covariance of low rank but for its diagonal."""

import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.models.factor_analysis import FactorAnalyzer
from hirank.models.fit_factors import FactorConfig, fit_factors, ranks_for, select_factors
from hirank.models.mixture import Mixture
from hirank.optim.trace import Monitor


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def model(rng):
    return FactorAnalyzer(rng.normal(size=6), rng.normal(size=(2, 6)), rng.uniform(0.1, 1, 6))


def as_mixture(model):
    covariance = model.loadings.T @ model.loadings + np.diag(model.noise)
    return Mixture(np.ones(1), model.mean[None], covariance[None])


def some_rows(rng, model, n=30):
    z = rng.normal(size=(n, len(model.loadings)))
    X = model.mean + z @ model.loadings + np.sqrt(model.noise) * rng.normal(size=(n, model.width))
    observed = rng.random(X.shape) < 0.6
    observed[0], observed[1] = False, True
    return X, observed


def test_conditionals_are_those_of_the_gaussian_with_this_covariance(rng, model):
    X, observed = some_rows(rng, model)

    means, deviations = model.conditional(X, observed)

    expected_means, expected_deviations = as_mixture(model).conditional(X, observed)
    np.testing.assert_allclose(means, expected_means, atol=1e-12)
    np.testing.assert_allclose(deviations, expected_deviations, atol=1e-12)
    np.testing.assert_allclose(model.complete(X, observed), expected_means, atol=1e-12)


def test_rows_are_the_same_alone_and_in_a_batch(rng):
    model = FactorAnalyzer(np.zeros(70), rng.normal(size=(9, 70)), np.full(70, 0.1))
    X, observed = some_rows(rng, model, 40)

    together = model.complete(X, observed)

    for i in range(len(X)):
        assert (model.complete(X[i : i + 1], observed[i : i + 1])[0] == together[i]).all()


def test_draws_have_the_conditional_moments(rng, model):
    x, seen = some_rows(rng, model, 3)[0][2], np.array([True, False, True, False, True, False])
    X, observed = np.tile(x, (40_000, 1)), np.tile(seen, (40_000, 1))

    draws = model.draw(np.where(observed, X, np.nan), observed, rng)

    means, deviations = model.conditional(X[:1], observed[:1])
    assert (draws[observed] == X[observed]).all()
    # The standard errors of means and deviations of 40 000 draws are .005 and .0035.
    z = (draws[:, ~seen] - means[0, ~seen]) / deviations[0, ~seen]
    assert np.abs(z.mean(axis=0)).max() < 0.025
    assert np.abs(z.std(axis=0) - 1).max() < 0.02


def test_a_model_without_factors_imputes_means(rng):
    model = FactorAnalyzer(np.arange(3.0), np.zeros((0, 3)), np.ones(3))
    X, observed = some_rows(rng, model, 5)

    means, deviations = model.conditional(X, observed)

    assert (means[~observed] == np.broadcast_to(model.mean, X.shape)[~observed]).all()
    assert (deviations == ~observed).all()


def fit(start, X, observed, max_iter, monitor=None, **config):
    return fit_factors(
        start,
        np.where(observed, X, 0),
        observed,
        workers=Workers(1),
        monitor=monitor or Monitor(),
        max_iter=max_iter,
        config=FactorConfig(**config),
    )


def test_mean_and_covariance_are_recovered(rng):
    truth = FactorAnalyzer(rng.normal(size=8), rng.normal(size=(2, 8)), rng.uniform(0.1, 0.5, 8))
    X, observed = some_rows(rng, truth, 4000)
    start = FactorAnalyzer(np.zeros(8), rng.normal(size=(2, 8)), np.ones(8))

    found = as_mixture(fit(start, X, observed, 100, tol=0.0).model).covariances[0]

    expected = as_mixture(truth).covariances[0]
    scale = np.sqrt(np.diag(expected))
    # The standard error of a covariance of 4000 rows, of which 1440 observe both features: .026.
    assert np.abs((found - expected) / np.outer(scale, scale)).max() < 0.1


def test_the_likelihood_rises_but_for_the_prior_of_the_loadings(rng, model):
    X, observed = some_rows(rng, model, 200)
    monitor = Monitor()
    start = FactorAnalyzer(np.zeros(6), rng.normal(size=(2, 6)), np.ones(6))

    fit(start, X, observed, 30, monitor, tol=0.0, min_noise=1e-12)

    likelihood = -monitor.trace["objective"]
    assert likelihood[-1] > likelihood[0] + 0.1
    # The prior counts as one of 200 rows.
    assert np.diff(likelihood).min() > -1e-3


def test_the_rank_is_selected_on_held_out_entries(rng):
    truth = FactorAnalyzer(np.zeros(60), rng.normal(size=(8, 60)), np.full(60, 0.3))
    X, observed = some_rows(rng, truth, 150)
    observed[:, 0] = True
    held_out = observed & (rng.random(X.shape) < 0.1)
    training = observed & ~held_out

    def loss(tables):
        return float(np.sqrt(np.mean((tables[0] - X)[held_out] ** 2)))

    table = (np.where(training, X, 0), training)
    (found,) = select_factors([table], loss, FactorConfig(), Workers(1), Monitor())

    assert len(found.model.loadings) == 8
    assert loss([found.filled]) < 0.75


@pytest.mark.parametrize(
    ("shape", "largest"),
    [((500, 20), 0), ((200, 60), 24), ((2000, 2900), 80), ((500, 10_000), 64)],
)
def test_ranks_are_limited_by_the_shape_of_the_table(shape, largest):
    assert max(ranks_for(shape, FactorConfig()), default=0) == largest


def test_rows_without_a_finite_likelihood_are_an_error(rng, model):
    X, observed = rng.normal(size=(20, 6)), np.ones((20, 6), bool)
    X[0, 0] = 1e200

    with pytest.raises(FloatingPointError, match="not finite"), np.errstate(all="ignore"):
        fit(model, X, observed, 3)


@pytest.mark.parametrize(
    ("mean", "noise"), [(1e200, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, 1e-300), (0.0, 1e300)]
)
def test_numbers_whose_squares_overflow_are_rejected(mean, noise):
    with pytest.raises(ValueError, match="noise must be positive"):
        FactorAnalyzer(np.full(3, mean), np.ones((1, 3)), np.full(3, noise)).check()
