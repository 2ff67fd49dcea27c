import numpy as np
import pytest

from hirank.exceptions import StopReason
from hirank.models import in_time
from hirank.models.in_time import complete_in_time
from hirank.models.mixture import Mixture
from hirank.models.stacking import Stack
from hirank.optim.trace import Monitor


@pytest.fixture
def stack():
    """Two Gaussians, of which the second takes more time."""
    rng = np.random.default_rng(0)
    spread = np.cov(rng.normal(size=(4, 50)))
    cheap = Mixture(np.ones(1), np.zeros((1, 4)), spread[None])
    dear = Mixture(np.full(3, 1 / 3), rng.normal(size=(3, 4)), np.stack([spread] * 3))
    return Stack((dear, cheap), np.array([0.7, 0.3]), ("Gaussian mixture", "Gaussian"))


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(in_time, "BLOCK", 10)
    rng = np.random.default_rng(1)
    X, observed = rng.normal(size=(35, 4)), rng.random((35, 4)) < 0.6
    observed[:, 0] = True
    observed[:, 1] = False
    return np.where(observed, X, 0), observed


@pytest.mark.parametrize("max_time", [None, 60.0])
def test_with_enough_time_all_rows_are_imputed_by_the_stack(stack, rows, max_time):
    monitor = Monitor(max_time=max_time)

    filled, spread = complete_in_time(stack, *rows, monitor)

    assert monitor.finish_search("Selected.").reason is StopReason.CONVERGED

    np.testing.assert_array_equal(filled, stack.complete(*rows))
    assert (spread[~rows[1]] > 0).all()


def test_without_time_rows_are_imputed_by_the_cheapest_model(stack, rows):
    monitor = Monitor(max_time=1e-9)

    filled, spread = complete_in_time(stack, *rows, monitor)

    assert monitor.finish_search("Selected.").reason is StopReason.MAX_TIME
    cheap = Stack(stack.models[1:], np.ones(1), stack.families[1:])
    np.testing.assert_array_equal(filled, cheap.complete(*rows))
    assert not spread.any()


def test_the_last_rows_are_imputed_by_the_cheapest_model_when_the_time_ends(stack, rows):
    class Clock(Monitor):
        left = 2

        @property
        def seconds(self):
            self.left -= 1
            return 0.0 if self.left >= 0 else 1e9

    filled, _ = complete_in_time(stack, *rows, Clock(max_time=100.0))

    cheap = Stack(stack.models[1:], np.ones(1), stack.families[1:])
    np.testing.assert_array_equal(filled[:20], stack.complete(*rows)[:20])
    np.testing.assert_array_equal(filled[20:], cheap.complete(*rows)[20:])
