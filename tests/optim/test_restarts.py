import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.optim.path import Setting, Stage, resolve_stage
from hirank.optim.restarts import average_places, restart_samples


@pytest.fixture(scope="module")
def plane():
    """Points on two planes, a dictionary of them, and one sample put on the wrong plane."""
    rng = np.random.default_rng(0)
    bases = rng.standard_normal((2, 2, 8))
    truth = np.concatenate([rng.standard_normal((60, 2)) @ basis for basis in bases])
    observed = rng.random(truth.shape) >= 0.3
    wrong = truth.copy()
    wrong[5] = np.where(observed[5], truth[5], truth[70])
    return truth, wrong, observed


def look(X, D, observed) -> tuple[np.ndarray, np.ndarray, Setting]:
    setting = resolve_stage(Stage(1.0, 1e-3), RBF(), X, D)
    with Workers(2) as workers:
        moved, points = restart_samples(X, D, observed, setting, workers)
    return moved, points, setting


def test_a_sample_in_the_wrong_place_is_moved(plane):
    truth, wrong, observed = plane
    D = np.delete(truth, 5, axis=0)[::2].copy()
    moved, points, _ = look(wrong, D, observed)
    before = np.linalg.norm(wrong[5] - truth[5])
    assert np.linalg.norm(moved[5] - truth[5]) < 0.1 * before
    assert (moved[observed] == truth[observed]).all()
    assert points.shape == D.shape


def test_a_point_that_a_sample_owns_does_not_keep_it_in_place(plane):
    """The sample's wrong place is itself in the dictionary, which makes it look perfect."""
    truth, wrong, observed = plane
    D = np.concatenate([np.delete(truth, 5, axis=0)[::2], wrong[5:6]])
    moved, points, _ = look(wrong, D, observed)
    before = np.linalg.norm(wrong[5] - truth[5])
    assert np.linalg.norm(moved[5] - truth[5]) < 0.1 * before
    np.testing.assert_allclose(points[-1], moved[5])  # the point follows its owner


def test_samples_in_their_place_stay_close(plane):
    truth, _, observed = plane
    moved, _, _ = look(truth, truth[::2].copy(), observed)
    assert missing_relative_error(moved, truth, observed) < 0.2


def test_complete_samples_are_left_alone(plane):
    truth, _, observed = plane
    everything = np.ones_like(observed)
    D = truth[::2].copy()
    moved, points, _ = look(truth, D, everything)
    assert (moved == truth).all()
    assert (points == D).all()


@pytest.fixture(scope="module")
def lines():
    """Two lines, mirror images of each other, and a sample of which they share what is observed."""
    rng = np.random.default_rng(0)
    slopes = np.array([[1, 0.5, -1, 1, 0.3, 1.5], [1, -0.5, 1, -1, -0.3, -1.5]])
    t = np.concatenate([[1.0], rng.uniform(-2, 2, 39)])
    truth = np.concatenate([np.outer(t, slope) for slope in slopes])
    observed = np.ones(truth.shape, bool)
    observed[:, 3] = False
    observed[0, 1:] = False
    return truth, observed, slopes


def average(X, observed, D, bounds=None):
    with Workers(1) as workers:
        return average_places(X, D, observed, Setting(Poly(2, 1.0), 1e-6), workers, bounds)


def test_a_sample_that_fits_two_lines_is_between_them(lines):
    truth, observed, slopes = lines

    averaged = average(truth, observed, truth[1::8])

    assert (averaged[observed] == truth[observed]).all()
    on_first, on_second = slopes[:, 1:]
    step = on_second - on_first
    share = (averaged[0, 1:] - on_first) @ step / (step @ step)
    np.testing.assert_allclose(averaged[0, 1:], on_first + share * step, atol=1e-3)
    assert 0.2 < share < 0.95


def test_samples_that_are_determined_stay_where_they_are(lines):
    truth, observed, _ = lines

    averaged = average(truth, observed, truth[1::8])

    assert (averaged[1:] == truth[1:]).all()


def test_means_of_places_are_within_the_bounds(lines):
    truth, observed, _ = lines
    high = np.where(np.arange(6) == 1, truth[0, 1] + 0.1, np.inf)
    bounds = Bounds(np.full(6, -np.inf), high)
    X = np.where(observed, truth, np.minimum(truth, high))

    averaged = average(X, observed, truth[1::8], bounds)

    assert (averaged[~observed] <= np.broadcast_to(high, X.shape)[~observed]).all()


def test_places_of_a_complete_table_are_not_averaged(lines):
    truth, observed, _ = lines

    assert (average(truth, np.ones_like(observed), truth[1::8]) == truth).all()
