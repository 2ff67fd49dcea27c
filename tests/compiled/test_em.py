"""Mixtures of Gaussians in the compiled core do what the NumPy code does."""

import numpy as np
import pytest
from helpers.compiled import COMPILED, assert_as_numpy, layouts
from hypothesis import given
from hypothesis import strategies as st

from hirank._compiled import core, using
from hirank.core.threads import Workers
from hirank.models import em
from hirank.models.mixture import Mixture
from hirank.optim.trace import Monitor

pytestmark = pytest.mark.skipif(not COMPILED, reason="requires the compiled core")


def gaussians(rng, weights, v):
    roots = rng.normal(size=(len(weights), v, v + 2))
    covariances = roots @ roots.transpose(0, 2, 1) / v
    return Mixture(np.array(weights), 2 * rng.normal(size=(len(weights), v)), covariances)


def moments(mixture, X, observed):
    """Return the results of one E-step as a list of arrays."""
    table = em.IncompleteTable(np.where(observed, X, 0), observed)
    e_step = em._e_step if core() is None else em._compiled_e_step
    done = e_step(mixture, table, Workers(1))
    return [*done.moments, done.imputed, float(done.log_likelihood)]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.4, 0.8, 1.0])
@pytest.mark.parametrize("v", [1, 3, 9, 40])
def test_moments_and_conditionals_are_those_of_numpy(share, v):
    rng = np.random.default_rng(0)
    mixture = gaussians(rng, [0.4, 0.1, 0.2, 0.3, 0.0], v)
    X, observed = 2 * rng.normal(size=(25, v)), rng.random((25, v)) >= share
    observed[3:6] = observed[2]  # rows with the same pattern

    # The precisions of these covariances are known to about 1e-12.
    assert_as_numpy(lambda: moments(mixture, X, observed), rtol=1e-8, atol=1e-8)
    assert_as_numpy(lambda: mixture.conditional(X, observed), rtol=1e-8, atol=1e-8)
    assert_as_numpy(lambda: mixture.shares(X, observed), rtol=1e-8, atol=1e-8)


def apart(rng, K=9, v=12):
    """Return a mixture of components of which a row belongs to few, and rows of it."""
    mixture = gaussians(rng, np.full(K, 1 / K), v)
    means = mixture.means[rng.integers(K, size=60)]
    return mixture, means + rng.normal(size=(60, v)), rng.random((60, v)) >= 0.3


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("v", [3, 12, 40])
def test_components_that_are_not_likely_do_not_change_the_moments(name, v):
    mixture, X, observed = apart(np.random.default_rng(0), v=v)
    table = em.IncompleteTable(np.where(observed, X, 0), observed)

    with using(name):
        whole = em._compiled_e_step(mixture, table, Workers(1))
        part = em._compiled_e_step(mixture, table, Workers(1), whole.likely)

    assert whole.likely.any(axis=1).all()
    assert whole.likely.mean() < 0.9
    np.testing.assert_array_equal(part.likely, whole.likely)
    expected = [*whole.moments, whole.imputed, whole.log_likelihood]
    for found, same in zip(
        [*part.moments, part.imputed, part.log_likelihood], expected, strict=True
    ):
        np.testing.assert_allclose(found, same, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", COMPILED)
def test_rows_count_for_the_components_that_are_marked(name):
    mixture, X, observed = apart(np.random.default_rng(0))
    table = em.IncompleteTable(np.where(observed, X, 0), observed)
    marks = np.zeros((len(X), len(mixture)), bool)
    marks[:20, 2] = marks[20:, 5] = True

    with using(name):
        done = em._compiled_e_step(mixture, table, Workers(1), marks)
        with pytest.raises(ValueError, match="a mark for each row and component"):
            core().mixture_moments(X, observed, *mixture.arrays, marks[:, 1:].copy())

    np.testing.assert_allclose(done.moments.counts, [0, 0, 20, 0, 0, 40, 0, 0, 0])


@pytest.mark.parametrize("name", COMPILED)
def test_rows_without_a_finite_likelihood_belong_to_no_component_that_is_not_marked(name):
    mixture, X, observed = apart(np.random.default_rng(0))
    X[3] = np.nan
    marks = np.zeros((len(X), len(mixture)), bool)
    marks[:, 2], marks[4] = True, False

    with using(name):
        imputed, likely, counts, *_ = core().mixture_moments(X, observed, *mixture.arrays, marks)

    assert np.isnan(imputed[3]).any()
    assert not likely[:, [0, 1, 3, 4, 5, 6, 7, 8]].any()
    assert (counts[[0, 1, 3, 4, 5, 6, 7, 8]] == 0).all()
    assert (imputed[4] == 0).all()


@pytest.mark.parametrize("name", COMPILED)
def test_a_mixture_is_the_same_with_and_without_steps_of_likely_components_only(name):
    mixture, X, observed = apart(np.random.default_rng(0))
    table = em.IncompleteTable(np.where(observed, X, 0), observed)

    with using(name):
        some, all_ = (
            em.fit_mixture(
                mixture,
                0.01,
                table,
                workers=Workers(1),
                monitor=Monitor(),
                max_iter=8,
                config=em.EMConfig(min_sparse=least, tol=0.0),
            )
            for least in (2, 100)
        )

    np.testing.assert_allclose(some.filled, all_.filled, atol=1e-5)
    assert (some.filled != all_.filled).any()


@pytest.mark.parametrize("name", COMPILED)
@given(data=st.data())
def test_rows_are_the_same_to_the_bit_alone_and_in_any_batch(name, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 100)))
    n, v, K = (data.draw(st.integers(1, most)) for most in (11, 19, 6))
    mixture = gaussians(rng, np.full(K, 1 / K), v)
    X, observed = rng.normal(size=(n, v)), rng.random((n, v)) < rng.random()
    order = rng.permutation(n)

    with using(name):
        together = mixture.conditional(X, observed)
        permuted = mixture.conditional(X[order], observed[order])
        for a, b in zip(together, permuted, strict=True):
            np.testing.assert_array_equal(a[order], b)
        for i in range(n):
            alone = mixture.conditional(X[[i]], observed[[i]])
            for a, b in zip(together, alone, strict=True):
                np.testing.assert_array_equal(a[i], b[0])
        np.testing.assert_array_equal(mixture.complete(X, observed), together[0])
        shares = mixture.shares(X, observed)
        np.testing.assert_array_equal(mixture.shares(X[order], observed[order]), shares[order])
        np.testing.assert_array_equal(mixture.shares(X[:1], observed[:1]), shares[:1])


def test_the_layout_of_a_table_does_not_matter():
    rng = np.random.default_rng(0)
    mixture = gaussians(rng, [0.3, 0.7], 6)
    X, observed = rng.normal(size=(12, 6)), rng.random((12, 6)) < 0.6
    expected = mixture.conditional(X, observed)

    for values, known in zip(layouts(X), layouts(observed), strict=True):
        for found, same in zip(mixture.conditional(values, known), expected, strict=True):
            np.testing.assert_array_equal(found, same)
    single = X.astype(np.float32)
    for found, same in zip(
        mixture.conditional(single, observed),
        mixture.conditional(single.astype(np.float64), observed),
        strict=True,
    ):
        np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("value", [1e-310, 1e160, 1e300])
def test_extreme_values_have_the_results_of_numpy(value):
    rng = np.random.default_rng(0)
    mixture = gaussians(rng, [0.3, 0.7], 6)
    X, observed = rng.normal(size=(12, 6)), rng.random((12, 6)) < 0.6
    X[2, 0], observed[2, 0] = value, True

    with np.errstate(all="ignore"):
        assert_as_numpy(lambda: mixture.complete(X, observed), rtol=1e-8, atol=1e-8)


def test_components_of_another_size_are_an_error():
    for name in COMPILED:
        with using(name):
            arrays = gaussians(np.random.default_rng(0), [1.0], 3).arrays
            X, observed = np.zeros((2, 4)), np.ones((2, 4), bool)
            with pytest.raises(ValueError, match="as many features as the mixture"):
                core().mixture_conditional(X, observed, *arrays, True)
