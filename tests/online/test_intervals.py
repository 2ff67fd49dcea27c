import numpy as np
import pytest
from scipy.stats import norm

from hirank.online.intervals import (
    FIRST_FACTOR,
    LEVELS,
    AdaptiveQuantiles,
    IntervalConfig,
    gaussian_quantiles,
)

CONFIG = IntervalConfig()


def inside(errors, coverage, sizes=None):
    """Which errors lie inside intervals that are calibrated by those before."""
    quantiles, found = AdaptiveQuantiles.start(), []
    for i, error in enumerate(errors):
        size = np.array([1.0 if sizes is None else sizes[i]])
        found.append(error <= quantiles.half_width(size, np.ones(1), coverage)[0])
        quantiles = quantiles.add(error / size, np.ones(1), CONFIG)
    return np.array(found)


def test_before_any_error_intervals_are_wider_than_those_of_a_gaussian():
    half = AdaptiveQuantiles.start().half_width(np.ones(1), np.ones(1), 0.9)[0]
    assert half == pytest.approx(FIRST_FACTOR * norm.ppf(0.95))


@pytest.mark.parametrize("coverage", [0.5, 0.75, 0.9, 0.95])
@pytest.mark.parametrize("kind", ["normal", "standard_cauchy", "exponential"])
def test_the_share_inside_is_the_one_asked_for_whatever_the_errors(kind, coverage):
    errors = np.abs(getattr(np.random.default_rng(0), kind)(size=3000))
    assert inside(errors, coverage)[200:].mean() == pytest.approx(coverage, abs=0.03)


def test_also_after_errors_have_become_larger():
    errors = np.abs(np.random.default_rng(0).normal(size=2000))
    errors[1000:] *= 5
    assert 0.85 < inside(errors, 0.9)[1000:].mean() < 0.92


def test_sizes_that_are_expected_make_intervals_wider():
    quantiles = AdaptiveQuantiles.start()
    half = quantiles.half_width(np.array([1.0, 4.0]), np.ones(2), 0.9)
    assert half[1] == 4 * half[0]


def test_higher_coverage_means_wider_intervals():
    quantiles = AdaptiveQuantiles.start()
    for error in np.abs(np.random.default_rng(0).normal(size=500)):
        quantiles = quantiles.add(np.array([error]), np.ones(1), CONFIG)
    one = np.ones(1)
    half = [quantiles.half_width(one, one, c)[0] for c in (0.3, 0.6, 0.9, 0.97, 0.999)]
    assert (np.diff(half) > 0).all()


def test_old_last_values_have_quantiles_of_their_own():
    quantiles = AdaptiveQuantiles.start()
    rng = np.random.default_rng(0)
    for young, old in np.abs(rng.normal(size=(500, 2))) * [1, 10]:
        quantiles = quantiles.add(np.array([young, old]), np.array([1.0, 50.0]), CONFIG)
    half = quantiles.half_width(np.ones(2), np.array([1.0, 50.0]), 0.9)
    assert half[1] > 4 * half[0]


def test_levels_ascend():
    assert (np.diff(gaussian_quantiles(LEVELS)) > 0).all()
