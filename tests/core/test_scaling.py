"""Scaling of features: exact inverses, and little influence of outliers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hirank.baselines import LRF
from hirank.core.bounds import Bounds
from hirank.core.columns import Columns
from hirank.core.scaling import SCALES, Scaling
from hirank.core.threads import Workers
from hirank.datasets import polynomial_manifolds, uniform_missing
from hirank.kernels import RBF
from hirank.models.dictionary import Dictionary, complete_rows
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary
from hirank.optim.path import SolverConfig, default_path
from hirank.persistence.record import decode, encode

WAYS = (*SCALES, True, False)


def measure(X, scale, observed=None):
    return Scaling.measure(X, np.ones(X.shape, bool) if observed is None else observed, scale=scale)


def mixed(seed=0, n=300):
    """Normal, lognormal, counts, mostly zeros, huge, tiny, constant, and one outlier."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 8))
    x[:, 1] = np.exp(2 * x[:, 1])
    x[:, 2] = rng.poisson(2, n)
    x[:, 3] = np.where(rng.random(n) < 0.8, 0, np.exp(x[:, 3]))
    x[:, 4] *= 1e9
    x[:, 5] *= 1e-6
    x[:, 6] = 7
    x[3, 7] = 1e6
    return x


def assert_inverse(scaling, X):
    """Forth and back to 1e-12 of the value or of the spread, whichever is larger."""
    scaled = scaling.forward(X)
    assert np.isfinite(scaled).all()
    back = scaling.backward(scaled)
    size = np.maximum(np.abs(X), np.maximum(np.abs(scaling.center), scaling.spread))
    assert (np.abs(back - X) <= 1e-12 * size).all()


@pytest.mark.parametrize("scale", WAYS)
def test_backward_inverts_forward(scale):
    X = mixed()
    assert_inverse(measure(X, scale), X)


@pytest.mark.parametrize("scale", WAYS)
def test_backward_inverts_forward_far_beyond_the_measured_values(scale):
    X = mixed()
    far = np.array([[s * 10.0**k] for s in (-1, 1) for k in (0, 3, 9, 30)]) * np.abs(X).max(axis=0)
    scaling = measure(X, scale)
    far[:, ~scaling.varying] = scaling.center[~scaling.varying]
    assert_inverse(scaling, far)


numbers = st.one_of(
    st.floats(-1e12, 1e12), st.floats(-1, 1), st.integers(-3, 3).map(float), st.just(0.0)
)


@given(
    arrays(float, st.tuples(st.integers(1, 40), st.just(2)), elements=numbers),
    st.sampled_from(SCALES),
)
def test_any_values_are_inverted_and_keep_their_order(X, scale):
    scaling = measure(X, scale)
    X[:, ~scaling.varying] = scaling.center[~scaling.varying]
    assert_inverse(scaling, X)
    order = np.sort(X, axis=0)
    assert (np.diff(scaling.forward(order), axis=0) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forward_and_backward_keep_the_dtype(dtype):
    X = mixed()[:, :4].astype(dtype)
    scaling = measure(X, "robust")
    assert scaling.tails is not None
    assert scaling.forward(X).dtype == scaling.backward(scaling.forward(X)).dtype == dtype
    np.testing.assert_allclose(scaling.backward(scaling.forward(X)), X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.5])
def test_clean_tables_are_standardized(missing):
    """To the bit: mean and standard deviation, without compression."""
    for manifolds, degree in ((1, 3), (3, 3), (10, 1)):
        for seed in range(5):
            X = polynomial_manifolds(100, manifolds=manifolds, degree=degree, random_state=seed)
            observed = uniform_missing(X.shape, missing, random_state=seed)
            plain = measure(X, "standard", observed)
            default = measure(X, True, observed)
            assert default.tails is None
            assert (default.center == plain.center).all()
            assert (default.spread == plain.spread).all()


def test_units_do_not_matter():
    X = mixed()[:, [0, 1, 3, 7]]
    units = np.array([1e-30, 1e5, 3e9, 1e20])
    one, two = measure(X, "robust"), measure(X * units, "robust")
    np.testing.assert_allclose(two.forward(X * units), one.forward(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_outliers_are_found_and_ignored(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    outlier = rng.random(X.shape) < 0.01
    outlier[0] = False
    spoiled = np.where(outlier, 1e6 * rng.choice([-1, 1], X.shape), X)
    scaling, clean = measure(spoiled, scale), measure(X, "standard", ~outlier)
    assert outlier.any()
    assert (scaling.inliers(spoiled) == ~outlier).all()
    np.testing.assert_allclose(scaling.center, clean.center)
    np.testing.assert_allclose(scaling.spread, clean.spread)
    np.testing.assert_allclose(scaling.mean, clean.mean)
    new = np.array([[0.5, -3.0, 1e7, 4.0, np.nan]])
    hit = outlier.any(axis=0)
    assert (scaling.inliers(new) == ~(hit & (np.abs(new) > 1e6))).all()


def test_many_far_values_are_a_pattern():
    """A tenth of the days have a flood, which is not an error in the data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 1))
    X[::10] += 1e4
    assert measure(X, "auto").inliers(X).all()


def test_a_tail_without_a_gap_has_no_outliers():
    X = np.exp(3 * np.random.default_rng(0).standard_normal((500, 4)))
    scaling = measure(X, "robust")
    assert scaling.inliers(X).all()
    assert scaling.tails.compressed.all()
    assert np.abs(scaling.forward(X)).max() < 15 < np.abs(measure(X, "standard").forward(X)).max()


def test_by_default_only_amounts_with_heavy_tails_are_compressed():
    rng = np.random.default_rng(0)
    amounts = np.exp(2 * rng.standard_normal(400))
    signed = amounts * rng.choice([-1, 1], 400)
    few = np.abs(rng.standard_normal(400))
    few[:2] = 12
    X = np.column_stack([amounts, signed, few, amounts + 100])
    assert measure(X, "auto").tails.compressed.tolist() == [True, False, False, False]
    assert measure(X, "robust").tails.compressed.tolist() == [True, True, True, True]


def test_tails_are_compressed_and_the_bulk_is_not():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(400), rng.standard_t(1.5, 400)])
    scaling = measure(X, "robust")
    assert scaling.tails.compressed.tolist() == [False, True]
    plain = measure(X, "standard")
    assert (scaling.forward(X)[:, 0] == plain.forward(X)[:, 0]).all()
    z = np.array([-0.1, 0.1]) * scaling.spread[1] + scaling.center[1]
    slope = np.diff(scaling.forward(np.column_stack([z, z]))[:, 1])[0] / 0.2
    assert slope == pytest.approx(1, abs=0.01)


def test_an_imputed_value_beyond_the_tails_is_not_huge():
    X = np.exp(2 * np.random.default_rng(0).standard_normal((300, 1)))
    scaling = measure(X, "robust")
    top = scaling.forward(X).max()
    step = scaling.backward(np.array([[top + 1], [top + 2], [top + 20]])).ravel()
    assert step[2] - step[0] == pytest.approx(19 * (step[1] - step[0]))
    assert step[2] < 50 * X.max()


def test_limits_stay_in_order_when_scaled():
    X = mixed()[:, :4]
    scaling = measure(X, "robust")
    lower, upper = np.array([-np.inf, 0, 0, 0]), np.array([1.0, np.inf, 5, np.inf])
    limits = Bounds(lower, upper).scale(scaling)
    assert (np.isinf(limits.lower) == np.isinf(lower)).all()
    assert (np.isinf(limits.upper) == np.isinf(upper)).all()
    inside = scaling.forward(np.clip(X, lower, upper))
    assert ((inside >= limits.lower) & (inside <= limits.upper)).all()


@pytest.mark.parametrize("scale", WAYS[:-1])
def test_huge_values_do_not_overflow(scale):
    X = mixed(n=60)[:, :3] * 1e300
    assert_inverse(measure(X, scale), X)
    single = np.random.default_rng(0).standard_normal((100, 2))
    single[5, 0] = 1e300
    scaling = measure(single, scale)
    assert np.isfinite(scaling.forward(single)).all()
    assert np.isfinite(scaling.spread).all()


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_degenerate_columns_are_scaled(scale):
    """All equal, all but one equal, two values, one value, equal but for rounding."""
    n = 50
    X = np.column_stack(
        [
            np.full(n, 3.0),
            np.r_[1e6, np.zeros(n - 1)],
            np.arange(n) % 2,
            np.arange(n),
            0.1 + np.spacing(0.1) * (np.arange(n) % 2),
        ]
    )
    observed = np.ones(X.shape, bool)
    observed[1:, 3] = False
    scaling = measure(X, scale, observed)
    assert scaling.varying.tolist() == [False, True, True, False, False]
    assert np.isfinite(scaling.forward(X)).all()
    assert scaling.inliers(X).all()


def test_an_unknown_scale_is_an_error():
    with pytest.raises(ValueError, match=r"scale must be one of .*'standard'.*got 'minmax'"):
        measure(np.ones((2, 2)), "minmax")


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_a_scaling_survives_its_saved_state(scale):
    X = mixed()
    scaling = measure(X, scale)
    again = decode(Scaling, encode(scaling))
    assert scaling.tails is not None
    assert (again.forward(X) == scaling.forward(X)).all()
    assert (again.inliers(X) == scaling.inliers(X)).all()


def test_outliers_do_not_harm_other_imputed_values():
    """One percent at a million standard deviations, in the table and in new rows."""
    rng = np.random.default_rng(0)
    truth = polynomial_manifolds(200, 12, latent=2, degree=2, shuffle=True, random_state=0)
    truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    observed = uniform_missing(truth.shape, 0.25, random_state=1)
    given = np.where(rng.random(truth.shape) < 0.01, 1e6, truth)
    fit, new = slice(0, 140), slice(140, None)
    errors = []
    for X in (truth, given):
        scaling = measure(X[fit], True, observed[fit])
        seen = observed[fit] & scaling.inliers(X[fit])
        options = SolverConfig(max_iter=30)
        task = DictionaryProblem(
            scaling.forward(X[fit]), seen, 30, RBF(), default_path()[:4], options
        )
        with Workers(1) as workers:
            result = fit_dictionary(task, workers, np.random.default_rng(0))
        model = Dictionary(result.D, result.settings)
        table = Columns.measure(X[fit], observed[fit], scale=True).scale(X[new], observed[new])
        scaled = np.concatenate([result.X, complete_rows(model, table)])
        filled = scaling.backward(scaled)
        errors.append(np.sqrt(np.mean((filled - truth)[~observed] ** 2)))
    assert errors[1] < max(2 * errors[0], 0.1)


def test_skewed_features_gain_from_compression():
    """Exponentials of a curved surface, imputed in compressed and in plain units."""
    ratios = []
    for seed in range(3):
        X = polynomial_manifolds(150, 12, latent=2, degree=2, random_state=seed)
        X = np.exp(2 * (X - X.mean(axis=0)) / X.std(axis=0))
        observed = uniform_missing(X.shape, 0.25, random_state=seed)
        errors = []
        for scale in ("robust", "standard"):
            scaling = measure(X, scale, observed)
            given = np.where(observed, scaling.forward(X), np.nan)
            model = LRF(scale=False, random_state=0, max_iter=50)
            filled = scaling.backward(model.fit_transform(given))
            errors.append(np.median(np.abs((filled - X) / X.std(axis=0))[~observed]))
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.8


def test_duplicated_and_constant_features_do_no_harm():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 6))
    X = np.column_stack([X, 3 * X, np.full(80, 5.0)])
    given = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    filled = LRF(random_state=0).fit_transform(given)
    assert np.abs(filled - X).max() < 0.1
