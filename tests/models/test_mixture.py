import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from hirank.core.threads import Workers
from hirank.models.em import (
    EMConfig,
    IncompleteTable,
    fit_mixture,
    grow_mixtures,
    independent_gaussian,
    max_components,
    split_components,
)
from hirank.models.mixture import Mixture, groups
from hirank.optim.trace import Monitor


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def gaussians(rng, weights, v, apart=2.0):
    roots = rng.normal(size=(len(weights), v, v + 2))
    covariances = roots @ roots.transpose(0, 2, 1) / v
    return Mixture(np.array(weights), apart * rng.normal(size=(len(weights), v)), covariances)


def drawn(rng, mixture, n):
    which = rng.choice(len(mixture), n, p=mixture.weights)
    rows = [rng.multivariate_normal(mixture.means[k], mixture.covariances[k]) for k in which]
    return np.array(rows), which


def by_the_textbook(mixture, x, seen):
    """Log likelihood of the observed part; mean and covariance of the missing part of a row."""
    o, u = np.flatnonzero(seen), np.flatnonzero(~seen)
    joint, means, covariances = [], [], []
    for weight, mean, S in zip(mixture.weights, mixture.means, mixture.covariances, strict=True):
        density = 0.0
        gain = np.zeros((len(u), len(o)))
        if len(o):
            inside = S[np.ix_(o, o)]
            density = multivariate_normal(mean[o], inside).logpdf(x[o])
            gain = S[np.ix_(u, o)] @ np.linalg.inv(inside)
        joint.append(np.log(weight) + density)
        means.append(mean[u] + gain @ (x[o] - mean[o]))
        covariances.append(S[np.ix_(u, u)] - gain @ S[np.ix_(o, u)])
    total = logsumexp(joint)
    share = np.exp(np.array(joint) - total)
    mean = share @ means
    away = np.array(means) - mean
    covariance = np.tensordot(share, covariances, axes=1) + (away.T * share) @ away
    return total, mean, covariance


@pytest.fixture(params=[[1.0], [0.5, 0.3, 0.2]], ids=["one", "three"])
def table(request, rng):
    """A mixture, 40 rows of it, and a third missing; one row empty, one complete."""
    mixture = gaussians(rng, request.param, 6)
    X, _ = drawn(rng, mixture, 40)
    observed = rng.random(X.shape) < 0.65
    observed[0], observed[1] = False, True
    return mixture, X, observed


def test_means_and_deviations_are_those_of_the_textbook(table):
    mixture, X, observed = table
    means, deviations = mixture.conditional(np.where(observed, X, 1e9), observed)
    for x, seen, mean, deviation in zip(X, observed, means, deviations, strict=True):
        _, expected, covariance = by_the_textbook(mixture, x, seen)
        np.testing.assert_allclose(mean[~seen], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(deviation[~seen] ** 2, np.diag(covariance), rtol=1e-8)
    assert (means[observed] == X[observed]).all()
    assert (deviations[observed] == 0).all()
    np.testing.assert_array_equal(means, mixture.complete(np.where(observed, X, 7), observed))


def test_likelihoods_are_those_of_the_textbook(table):
    mixture, X, observed = table
    for group in groups(observed):
        likelihood, share, _ = mixture.given(X, observed, group)
        expected = [by_the_textbook(mixture, X[i], observed[i])[0] for i in group.rows]
        np.testing.assert_allclose(likelihood, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(share.sum(axis=1), 1)


def test_rows_do_not_depend_on_each_other(table):
    mixture, X, observed = table
    together = mixture.conditional(X, observed)
    for i in range(len(X)):
        alone = mixture.conditional(X[i : i + 1], observed[i : i + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], all_of_them[i], rtol=1e-10, atol=1e-10)


@given(observed=arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 9))))
def test_groups_contain_each_row_once_with_all_its_missing_entries(observed):
    found = groups(observed)
    rows = np.concatenate([group.rows for group in found])
    assert sorted(rows.tolist()) == list(range(len(observed)))
    for group in found:
        assert group.at.shape == group.pad.shape
        assert (group.at[group.pad] == observed.shape[1]).all()
        for row, at, pad in zip(group.rows, group.at, group.pad, strict=True):
            assert sorted(at[~pad].tolist()) == np.flatnonzero(~observed[row]).tolist()
        both = ~group.pad[:, :, None] & ~group.pad[:, None, :]
        assert (group.pairs == both).all()


def test_large_groups_are_split(rng):
    observed = rng.random((30, 5)) < 0.5
    split = groups(observed, chunk=50)
    assert max(len(group.rows) for group in split) <= 10
    assert sorted(np.concatenate([group.rows for group in split])) == list(range(30))


def test_draws_have_the_moments_that_are_known(rng):
    mixture = gaussians(rng, [0.5, 0.5], 4)
    x, seen = drawn(rng, mixture, 1)[0], np.array([True, False, True, False])
    X, observed = np.repeat(x, 40_000, axis=0), np.tile(seen, (40_000, 1))
    draws = mixture.draw(np.where(observed, X, np.nan), observed, rng)
    assert (draws[observed] == X[observed]).all()
    _, mean, covariance = by_the_textbook(mixture, x[0], seen)
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((draws[:, ~seen].mean(axis=0) - mean) / scale).max() < 0.025
    error = np.cov(draws[:, ~seen].T) - covariance
    assert np.abs(error / np.outer(scale, scale)).max() < 0.04


def test_draws_are_reproducible_and_differ_between_rows(table):
    mixture, X, observed = table
    a, b = (mixture.draw(X, observed, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    twice = np.repeat(X[:1], 2, axis=0)
    one, other = mixture.draw(twice, np.zeros(twice.shape, bool), np.random.default_rng(0))
    assert not (one == other).any()


def fit(start, noise, X, observed, max_iter=10, monitor=None, **config):
    return fit_mixture(
        start,
        noise,
        IncompleteTable(np.where(observed, X, 0), observed),
        workers=Workers(1),
        monitor=monitor or Monitor(),
        max_iter=max_iter,
        config=EMConfig(**config),
    )


def test_the_likelihood_never_falls_without_noise(rng):
    X, _ = drawn(rng, gaussians(rng, [1.0], 5), 120)
    observed = rng.random(X.shape) < 0.6
    observed[:, 0] |= ~observed.any(axis=1)
    monitor = Monitor()
    start = independent_gaussian(X, observed)
    fit(start, 0.0, X, observed, 40, monitor, min_variance=1e-14, tol=0)
    likelihood = -monitor.trace["objective"]
    assert len(likelihood) == 40
    assert np.diff(likelihood).min() > -1e-10
    assert likelihood[-1] > likelihood[0] + 0.1


def test_the_likelihood_of_several_components_falls_only_by_pooling_their_covariances(rng):
    """Covariances that lean on the pooled one do not maximize the likelihood."""
    X, _ = drawn(rng, gaussians(rng, [0.5, 0.5], 1, apart=4), 400)
    observed = np.ones(X.shape, bool)
    monitor = Monitor()
    start = split_components(independent_gaussian(X, observed), len(X), 2)
    fit(start, 0.0, X, observed, 30, monitor, min_variance=1e-14, tol=0)
    # One feature: the pooled covariance counts as one row in hundreds.
    assert np.diff(-monitor.trace["objective"]).min() > -1e-5


def test_steps_end_when_imputed_values_hardly_change(rng):
    X, _ = drawn(rng, gaussians(rng, [1.0], 5), 120)
    observed = rng.random(X.shape) < 0.6
    observed[:, 0] |= ~observed.any(axis=1)
    monitor = Monitor()
    fit(independent_gaussian(X, observed), 0.1, X, observed, 500, monitor)
    assert 2 < monitor.steps < 100


def test_mean_and_covariance_are_recovered(rng):
    truth = gaussians(rng, [1.0], 5)
    X, _ = drawn(rng, truth, 4000)
    observed = rng.random(X.shape) < 0.7
    found = fit(independent_gaussian(X, observed), 0.0, X, observed, 60).model
    scale = np.sqrt(np.diag(truth.covariances[0]))
    assert np.abs((found.means[0] - truth.means[0]) / scale).max() < 0.06
    error = (found.covariances[0] - truth.covariances[0]) / np.outer(scale, scale)
    assert np.abs(error).max() < 0.08


def test_noise_is_added_to_the_variances(rng):
    X, _ = drawn(rng, gaussians(rng, [1.0], 4), 300)
    observed = np.ones(X.shape, bool)
    plain, noisy = (
        fit(independent_gaussian(X, observed), noise, X, observed, 3).model.covariances[0]
        for noise in (0.0, 0.1)
    )
    np.testing.assert_allclose(np.diag(noisy), 1.1 * np.diag(plain), rtol=1e-6)
    np.testing.assert_allclose(noisy[0, 1:], plain[0, 1:])


def test_rows_without_a_finite_likelihood_are_an_error(rng):
    X, observed = rng.normal(size=(20, 3)), np.ones((20, 3), bool)
    X[0, 0] = 1e200
    with pytest.raises(FloatingPointError, match="not finite"), np.errstate(all="ignore"):
        fit(independent_gaussian(rng.normal(size=(20, 3)), observed), 0.1, X, observed)


def clusters(rng, n=300):
    """Two far apart, on planes of their own: truth, which, observed."""
    which = rng.random(n) < 0.5
    latent = rng.normal(size=(n, 2))
    maps = rng.normal(size=(2, 2, 6))
    X = np.where(which[:, None], latent @ maps[0] + 8, latent @ maps[1] - 8)
    observed = rng.random(X.shape) < 0.75
    observed[:, 0] |= ~observed.any(axis=1)
    return X, which, observed


def grow(tables, loss, monitor=None):
    tables = [IncompleteTable(np.where(observed, X, 0), observed) for X, observed in tables]
    return grow_mixtures(tables, loss, EMConfig(), Workers(1), monitor or Monitor())


def test_a_mixture_of_separate_components_is_recovered(rng):
    X, which, observed = clusters(rng)
    held_out = observed & (rng.random(X.shape) < 0.1)
    held_out[~(observed & ~held_out).any(axis=1)] = False
    seen = observed & ~held_out

    def error(filled):
        return float(np.mean(np.abs(filled[0] - X)[held_out]))

    one, best = None, None
    for (level,) in grow([(X, seen)], error):
        one = one or level
        if len(level.model) == 2:
            best = level
            break
    assert best is not None
    assert error([best.filled]) < 0.7 * error([one.filled])
    order = np.argsort(-best.model.means[:, 0])
    np.testing.assert_allclose(best.model.weights[order], [which.mean(), 1 - which.mean()])
    for k, rows in zip(order, (which, ~which), strict=True):
        np.testing.assert_allclose(best.model.means[k], X[rows].mean(axis=0), atol=0.4)


def test_growth_ends_at_the_time_limit(rng):
    X, _, observed = clusters(rng, 100)
    fits = list(grow([(X, observed)], lambda filled: 1.0, Monitor(max_time=1e-9)))
    assert len(fits) == 1
    assert np.isfinite(fits[0][0].filled).all()


def test_no_mixture_is_fitted_that_costs_much_and_has_hardly_more_components(rng):
    X, observed = rng.normal(size=(600, 4)), rng.random((600, 4)) < 0.9
    losses = iter(0.5**k for k in range(20))
    one = next(k for k in range(1, 10**6) if max_components(observed, EMConfig(max_row_cost=k)))
    config = EMConfig(max_row_cost=9.0 * one)
    assert max_components(observed, config) == 9

    levels = grow_mixtures(
        [IncompleteTable(np.where(observed, X, 0), observed)],
        lambda _: next(losses),
        config,
        Workers(1),
        Monitor(),
    )

    assert [len(fits[0].model) for fits in levels][-4:] == [1, 2, 4, 8]


def test_mixtures_of_several_tables_grow_together(rng):
    X, _, observed = clusters(rng, 120)
    tables = [(X, observed & (rng.random(X.shape) < 0.9)) for _ in range(2)]
    sizes = [[len(one.model) for one in levels] for levels in grow(tables, lambda _: 1.0)]
    assert all(len(levels) == 2 for levels in sizes)
    assert max(max(levels) for levels in sizes) > 1


def test_a_split_keeps_weight_and_mean(rng):
    mixture = gaussians(rng, [0.7, 0.3], 4)
    larger = split_components(mixture, 1000, 32)
    assert len(larger) == 4
    np.testing.assert_allclose(larger.weights.sum(), 1)
    np.testing.assert_allclose(larger.weights @ larger.means, mixture.weights @ mixture.means)
    assert np.linalg.eigvalsh(larger.covariances).min() > 0


@pytest.mark.parametrize(("n", "most", "size"), [(1000, 3, 3), (15, 32, 2), (25, 32, 3)])
def test_a_component_is_split_only_if_it_has_enough_rows(rng, n, most, size):
    mixture = gaussians(rng, [0.7, 0.3], 4)
    larger = split_components(mixture, n, most)
    assert len(larger) == size
    np.testing.assert_allclose(larger.weights.sum(), 1)


@pytest.mark.parametrize(
    ("shape", "least", "most"),
    [((100, 5), 64, 64), ((100_000, 20), 64, 64), ((20_000, 100), 8, 32), ((500, 1500), 0, 0)],
)
def test_wider_tables_allow_fewer_components(rng, shape, least, most):
    assert least <= max_components(rng.random(shape) < 0.8, EMConfig()) <= most


def test_independent_features_are_imputed_with_their_means(rng):
    X = rng.normal(size=(50, 3)) * [1, 2, 3] + [0, 5, -5]
    observed = rng.random(X.shape) < 0.5
    filled = independent_gaussian(np.where(observed, X, 1e6), observed).complete(X, observed)
    means = np.broadcast_to(np.nanmean(np.where(observed, X, np.nan), axis=0), X.shape)
    np.testing.assert_allclose(filled[~observed], means[~observed])


def test_tables_without_rows_or_columns_are_completed():
    for n, v in ((0, 3), (4, 0), (0, 0)):
        mixture = Mixture(np.ones(1), np.zeros((1, v)), np.eye(v)[None])
        X, observed = np.zeros((n, v)), np.zeros((n, v), bool)
        for one in mixture.conditional(X, observed):
            assert one.shape == (n, v)


def test_large_batches_are_completed_in_blocks(table, monkeypatch):
    mixture, X, observed = table
    expected = mixture.conditional(X, observed)
    monkeypatch.setattr("hirank.models.mixture.BLOCK_COST", 1000.0)
    for one, same in zip(mixture.conditional(X, observed), expected, strict=True):
        np.testing.assert_array_equal(one, same)
