import numpy as np
import pytest

from hirank.models.dynamics import MAX_DAMPING, Operator, _growth
from hirank.models.timeline import Timeline


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def parts(rng):
    """Damping, coupling and uneven steps of two groups, 3 features and 14 rows."""
    timeline = Timeline(np.cumsum(rng.exponential(size=14)), np.repeat([0, 1], [8, 6]))
    return rng.uniform(0, 0.9, 3), rng.normal(size=(3, 6)) / 5, timeline.steps(1.0)


def test_the_transpose_is_the_transpose(parts, rng):
    operator = Operator(*parts)
    X, e = rng.normal(size=(2, 3, 14))

    forward, backward = operator.residuals(X), operator.transposed(e)

    np.testing.assert_allclose(np.vdot(forward, e), np.vdot(X, backward), rtol=1e-12)


def test_bands_are_how_a_feature_depends_on_its_own_rows(parts):
    operator = Operator(*parts)
    X = np.zeros((3, 14))
    X[1, 4] = 1.0

    e = operator.residuals(X)[1]

    now, last, second = (np.broadcast_to(band, X.shape)[1] for band in operator.bands())
    np.testing.assert_allclose(e[4:7], [now[4], last[5], second[6]], atol=1e-12)


def test_a_random_walk_leaves_steps_over_the_root_of_their_length():
    times = np.array([0.0, 1, 3, 3.5])
    steps = Timeline(times).steps(1.0)

    e = Operator(np.zeros(1), np.zeros((1, 0)), steps).residuals(np.array([[0.0, 2, 3, 5]]))

    np.testing.assert_allclose(e, [[0, 2, 1 / 2**0.5, 2 / 0.5**0.5]])


def test_an_integrated_random_walk_leaves_nothing_of_a_line_in_uneven_time(rng):
    steps = Timeline(np.cumsum(rng.uniform(0.2, 5, size=40))).steps(1.0)
    line = np.cumsum(steps.length)[None]

    e = Operator(np.array([MAX_DAMPING]), np.zeros((1, 0)), steps).residuals(line)

    # Steps fade by a thousandth per unit of time.
    assert np.abs(e[:, 2:]).max() < 0.01


@pytest.mark.parametrize("f", [0.0, 0.5, 0.9, MAX_DAMPING])
def test_the_noise_of_a_whole_step_is_the_sum_of_its_parts(f):
    length = np.array([1.0, 2, 7])

    found = _growth(np.full(3, f), length)

    parts = ((1 - f ** np.arange(1, 8)) / (1 - f)) ** 2
    np.testing.assert_allclose(found, np.cumsum(parts)[[0, 1, 6]], rtol=1e-5)
