"""The selection of the end of a path of penalties."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from hirank.baselines.penalty_path import PenaltyPath
from hirank.optim.trace import Monitor

TRUTH = np.ones((30, 20))
OBSERVED = np.random.default_rng(0).random(TRUTH.shape) < 0.7


@dataclass(frozen=True)
class Constant:
    """The error of a penalty."""

    error: float = np.inf
    objective: float = 1.0


@dataclass(frozen=True)
class Known:
    """A solver that ends at a known error."""

    error: float
    monotone: ClassVar[bool] = False

    def init(self, start):
        return start

    def step(self, state):
        return Constant(self.error)

    def terminate(self, state, objectives):
        return True


@dataclass(frozen=True)
class KnownPath(PenaltyPath):
    """A path of which each penalty imputes 1 + error, however large the table."""

    errors: tuple = ()
    penalties: ClassVar[tuple] = (8.0, 4.0, 2.0, 1.0)
    patience: ClassVar[int] = 2

    def begin(self, X, observed):
        errors = dict(zip(self.penalties, self.errors, strict=True))
        return Constant(), lambda penalty: Known(errors.get(penalty, 0.0))

    def impute(self, state):
        return TRUTH + state.error


def fit(errors, end="auto", observed=OBSERVED, monitor=None):
    path, rng = KnownPath(5, 0.0, monitor or Monitor(), errors), np.random.default_rng(0)
    return path.fit(np.where(observed, TRUTH, 0), observed, end, rng)


@pytest.mark.parametrize(
    ("errors", "selected"),
    [
        ((0.4, 0.3, 0.2, 0.1), 1.0),
        ((0.4, 0.2, 0.3, 0.4), 4.0),
        ((0.4, 0.2, 0.201, 0.4), 2.0),  # as good, and later
        ((0.1, 0.2, 0.3, 0.0), 8.0),  # the search has ended before
    ],
)
def test_the_last_penalty_that_is_as_good_as_any_is_selected(errors, selected):
    penalty, solution = fit(errors)

    assert penalty == selected
    assert solution.state.error == dict(zip(KnownPath.penalties, errors, strict=True))[selected]


def test_a_given_end_is_reached_without_a_search():
    monitor = Monitor()

    penalty, _ = fit((0.4, 0.3, 0.2, 0.1), end=3.0, monitor=monitor)

    assert penalty == 3.0
    assert monitor.stages == 3  # 8, 4 and 3


def test_a_default_is_taken_if_too_few_entries_are_observed():
    penalty, _ = fit((0.4, 0.3, 0.2, 0.1), observed=np.eye(30, 20) > 0)

    assert penalty == KnownPath.default


def test_a_search_that_is_stopped_returns_the_best_so_far():
    monitor = Monitor(lambda line: line.step == 3)

    penalty, solution = fit((0.4, 0.2, 0.3, 0.1), monitor=monitor)

    assert (penalty, solution.state.error) == (4.0, 0.2)
    assert monitor.steps == 3
