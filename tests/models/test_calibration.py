import numpy as np
import pytest
from scipy.stats import norm

from hirank.models.calibration import Calibration, Covariates
from hirank.models.mixture import Mixture


def entries(h, rng, v=6):
    return Covariates(rng.integers(0, v, h), rng.uniform(0.1, 1, h), rng.uniform(0.01, 1, h))


@pytest.mark.parametrize("h", [9, 30, 200])
@pytest.mark.parametrize("heavy", [False, True])
def test_coverage_is_as_requested_whatever_the_errors_are(h, heavy):
    rng = np.random.default_rng(h)
    inside = []
    for _ in range(100):
        c = entries(h + 100, rng)
        r = np.sqrt(c.deviation) * (
            rng.standard_t(2, h + 100) if heavy else rng.normal(size=h + 100)
        )
        known = np.arange(h + 100) < h
        calibration = Calibration.fit(r[known], c.take(known), 6)
        inside.append(np.mean(np.abs(r[~known]) <= calibration.half_width(c.take(~known), 0.8)))
    rank = np.ceil(0.8 * (h + 1)) / (h + 1)  # what the finite number of scores can give
    assert np.mean(inside) == pytest.approx(rank, abs=0.005 + 4 * np.std(inside) / np.sqrt(100))


def test_half_widths_follow_the_true_scale_and_are_short():
    rng = np.random.default_rng(0)
    c = entries(4000, rng)
    true = c.deviation * (1 + (c.features == 2))
    r = true * rng.normal(size=4000)
    known = np.arange(4000) < 1000
    calibration = Calibration.fit(r[known], c.take(known), 6)
    width, error, true = calibration.half_width(c.take(~known), 0.9), np.abs(r), true[~known]
    error, constant = error[~known], np.quantile(error[~known], 0.9)
    assert np.corrcoef(np.log(width), np.log(true))[0, 1] > 0.97
    assert width.mean() < 0.93 * constant
    for part in (true < 0.4, true > 1):
        off = np.mean(error <= width, where=part) - 0.9
        assert abs(off) < 0.7 * abs(np.mean(error <= constant, where=part) - 0.9)


def test_covariates_without_information_change_little():
    rng = np.random.default_rng(1)
    c = entries(60, rng)
    calibration = Calibration.fit(rng.normal(size=60), c, 6)
    width = calibration.half_width(c, 0.9)
    assert width.max() / width.min() < 2


def test_a_few_large_errors_do_not_widen_all_intervals():
    rng = np.random.default_rng(2)
    c = Covariates(np.arange(4000) % 20, np.ones(4000), np.exp(rng.normal(size=4000)))
    r = 0.01 * rng.normal(size=4000)
    bad = rng.random(4000) < np.where(c.spread > 2, 0.2, 0.02)
    r[bad] *= 100
    known = np.arange(4000) < 1000
    calibration = Calibration.fit(r[known], c.take(known), 20)
    width = calibration.half_width(c.take(~known), 0.9)
    assert calibration.power < 1
    assert width.mean() < 1.1 * np.quantile(np.abs(r[~known]), 0.9)


@pytest.mark.parametrize("h", [5, 400])
def test_units_do_not_matter(h):
    rng = np.random.default_rng(3)
    c = entries(h, rng)
    r = c.deviation * rng.normal(size=h)
    width = Calibration.fit(r, c, 6).half_width(c, 0.9)
    tenfold = Covariates(c.features, 10 * c.deviation, 10 * c.spread)
    np.testing.assert_allclose(
        Calibration.fit(10 * r, tenfold, 6).half_width(tenfold, 0.9), 10 * width, rtol=1e-6
    )


@pytest.mark.parametrize("h", [1, 2, 3, 10, 11, 50, 1000])
def test_half_widths_grow_with_coverage_and_stay_finite(h):
    rng = np.random.default_rng(h)
    c = entries(h, rng)
    calibration = Calibration.fit(rng.normal(size=h), c, 6)
    coverages = [0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1 - 1e-9, np.nextafter(1, 0)]
    widths = np.array([calibration.half_width(c, coverage) for coverage in coverages])
    assert np.isfinite(widths).all()
    assert (widths > 0).all()
    assert (np.diff(widths, axis=0) >= 0).all()
    assert (widths[-1] > widths[4]).all()


def test_widths_beyond_the_largest_score_are_about_right():
    rng = np.random.default_rng(4)
    found = []
    for _ in range(100):
        c = Covariates(np.zeros(50, int), np.ones(50), np.zeros(50))
        calibration = Calibration.fit(rng.normal(size=50), c, 1)
        found.append(calibration.half_width(c, 0.999)[0])
    assert 1 < np.mean(found) / norm.ppf(0.9995) < 1.5  # rather too long than too short


def test_features_without_held_out_entries_get_the_common_level():
    rng = np.random.default_rng(5)
    c = Covariates(np.arange(200) % 2, np.ones(200), np.zeros(200))
    calibration = Calibration.fit(rng.normal(size=200), c, 3)
    width = calibration.half_width(Covariates(np.arange(3), np.ones(3), np.zeros(3)), 0.9)
    assert width[:2].min() <= width[2] <= width[:2].max()


def test_widths_are_constant_beyond_the_range_of_the_covariates():
    rng = np.random.default_rng(6)
    c = entries(500, rng)
    calibration = Calibration.fit(c.deviation * rng.normal(size=500), c, 6)
    far = Covariates(np.zeros(2, int), np.array([c.deviation.max(), 1e9]), np.full(2, 0.5))
    width = calibration.half_width(far, 0.9)
    assert width[0] == width[1]


def test_intervals_of_exact_values_have_width_0():
    c = entries(100, np.random.default_rng(7))
    assert (Calibration.fit(np.zeros(100), c, 6).half_width(c, 0.99) == 0).all()
    r = np.zeros(100)
    r[[3, 50]] = 1
    assert (Calibration.fit(r, c, 6).half_width(c, 0.5) == 0).all()
    assert np.isfinite(Calibration.fit(r, c, 6).half_width(c, 0.999)).all()


def test_many_features_with_few_entries_are_calibrated():
    rng = np.random.default_rng(8)
    c = entries(3000, rng, v=20_000)
    assert np.isfinite(Calibration.fit(rng.normal(size=3000), c, 20_000).scores).all()


def test_input_that_cannot_be_used_is_an_error():
    rng = np.random.default_rng(9)
    c, r = entries(20, rng), rng.normal(size=20)
    with pytest.raises(ValueError, match="there must be one"):
        Calibration.fit(r[:0], c.take(np.zeros(20, bool)), 6)
    with pytest.raises(ValueError, match="20 residuals and 19"):
        Calibration.fit(r, c.take(np.arange(20) > 0), 6)
    with pytest.raises(ValueError, match="finite"):
        Calibration.fit(np.append(r[1:], np.nan), c, 6)
    with pytest.raises(ValueError, match="features must be between"):
        Calibration.fit(r, c, 2)
    with pytest.raises(ValueError, match="negative"):
        Calibration.fit(r, Covariates(c.features, -c.deviation, c.spread), 6)
    for coverage in (0, 1, 90):
        with pytest.raises(ValueError, match=r"between 0 and 1"):
            Calibration.fit(r, c, 6).half_width(c, coverage)


def drawn(mixture, n=20_000):
    """Rows that are all alike, with imputed values that are not the mixture's, and one draw."""
    rng = np.random.default_rng(10)
    c = Covariates(np.arange(2000) % 3, np.ones(2000), np.zeros(2000))
    calibration = Calibration.fit(0.3 * (1 + c.features) * rng.normal(size=2000), c, 3)
    observed = np.tile([True, False, False], (n, 1))
    X = np.tile([0.5, 7.0, -3.0], (n, 1))
    missing = ~observed
    deviation = np.zeros(X.shape) if mixture is None else mixture.conditional(X, observed)[1]
    at = Covariates(np.nonzero(missing)[1], deviation[missing], np.zeros(missing.sum()))
    return X, calibration, at, observed, calibration.draw(X, observed, at, mixture, rng)


GAUSSIAN = Mixture(
    np.ones(1), np.zeros((1, 3)), np.array([[[1, 0.5, 0.5], [0.5, 1, 0.8], [0.5, 0.8, 1]]])
)


@pytest.mark.parametrize("mixture", [None, GAUSSIAN])
def test_draws_lie_around_the_imputed_values_as_far_as_intervals(mixture):
    X, calibration, at, observed, table = drawn(mixture)
    assert (table[observed] == X[observed]).all()
    away = (table - X)[:, 1:]
    assert np.abs(away.mean(axis=0)).max() < 0.02
    np.testing.assert_allclose(away.std(axis=0), [0.6, 0.9], rtol=0.1)
    for coverage in (0.5, 0.9, 0.99):
        inside = np.abs(away).ravel() <= calibration.half_width(at, coverage)
        assert inside.mean() == pytest.approx(coverage, abs=0.01)


def test_draws_of_a_row_are_correlated_as_in_the_mixture():
    X, *_, table = drawn(GAUSSIAN)
    given = (0.8 - 0.25) / 0.75  # correlation given the first feature
    assert np.corrcoef((table - X)[:, 1:].T)[0, 1] == pytest.approx(given, abs=0.02)
    X, *_, table = drawn(None)
    assert np.corrcoef((table - X)[:, 1:].T)[0, 1] == pytest.approx(0, abs=0.02)


def test_draws_are_skewed_like_the_mixture():
    means = np.array([[0, -1.0, -1], [0, 1, 1]])
    two = Mixture(np.full(2, 0.5), means, np.tile(0.01 * np.eye(3), (2, 1, 1)))
    X, *_, table = drawn(two)
    away = (table - X)[:, 1:]
    assert (np.sign(away[:, 0]) == np.sign(away[:, 1])).all()
    assert np.quantile(np.abs(away[:, 0]), 0.05) > 0.4  # nothing is in the middle
