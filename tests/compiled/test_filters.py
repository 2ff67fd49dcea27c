"""Filters in the compiled core and in NumPy."""

import numpy as np
import pytest

from hirank import _compiled
from hirank.online.clock import Pace
from hirank.online.filters import KINDS, FilterConfig, GaussianFilter
from hirank.online.moments import RunningMoments

CONFIG = FilterConfig()


def advance(kind, X, pace, core):
    """A filter and the moments after rows X, and what it expected of each."""
    with _compiled.using(core):
        one, moments = (
            GaussianFilter.start(kind, X.shape[1], CONFIG),
            RunningMoments.empty(X.shape[1]),
        )
        found = []
        for y in X:
            step = one.step(y, moments, pace, CONFIG, learn=True)
            alone = one.step(y, moments, pace, CONFIG, learn=False)
            np.testing.assert_array_equal(alone.imputed, step.imputed)
            np.testing.assert_array_equal(alone.variance, step.variance)
            found.append([step.imputed, step.variance])
            one = step.after
            moments, factor = moments.add(y, CONFIG.memory)
            if factor is not None:
                one = one.rescale(factor, moments.rows == 10, CONFIG)
    return np.array(found), one


def same(one, two):
    scale = np.abs(two).max(initial=1e-12)
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-8 * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [1, 2, 7, 30])
@pytest.mark.parametrize("pace", [Pace(), Pace(2.5, 0.4)])
@pytest.mark.usefixtures("core")
def test_the_compiled_filter_is_that_of_numpy(kind, m, pace):
    rng = np.random.default_rng(m)
    X = np.cumsum(rng.normal(size=(60, m)), axis=0) * rng.uniform(0.1, 100, m) + 5
    X[rng.random(X.shape) < 0.4] = np.nan
    X[[0, 20]], X[:30, m // 2] = np.nan, np.nan
    found, one = advance(kind, X, pace, _compiled.instruction_set())
    expected, two = advance(kind, X, pace, "off")
    same(found, expected)
    for name in ("x", "before", "P", "P_cross", "P_before", "Q_sum"):
        same(getattr(one, name), getattr(two, name))
    assert (one.weight, one.seen) == (two.weight, two.seen)


@pytest.mark.usefixtures("core")
def test_parts_of_other_sizes_are_refused():
    one, moments = GaussianFilter.start("level", 3, CONFIG), RunningMoments.empty(4)
    with pytest.raises((ValueError, TypeError)):
        one.step(np.zeros(4), moments, Pace(), CONFIG, learn=True)
