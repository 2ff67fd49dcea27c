import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.kernels import RBF
from hirank.metrics import missing_relative_error
from hirank.optim.path import Setting, Stage, resolve_stage
from hirank.optim.restarts import restart_samples


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
