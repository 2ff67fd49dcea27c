"""Updates of a dictionary with the rows of a window."""

import numpy as np
import pytest

from hirank.core.objective import codes, objective
from hirank.core.threads import Workers
from hirank.kernels import RBF
from hirank.models.refine_dictionary import grow_dictionary, refine_dictionary, renew_dictionary
from hirank.optim.path import Setting

SETTING = Setting(RBF(2.0), 1e-3)


@pytest.fixture
def rows():
    t = np.random.default_rng(0).uniform(-1, 1, 60)
    return np.column_stack([t, t**2, t**3])


def test_a_few_steps_lower_the_objective_of_the_rows(rows):
    D = rows[:8] + 0.3

    with Workers(1) as workers:
        refined = refine_dictionary(rows, D, SETTING, workers)

    assert refined.shape == D.shape
    before, after = (SETTING.basis(points) for points in (D, refined))
    assert objective(rows, codes(rows, after), after) < objective(rows, codes(rows, before), before)


def test_a_dictionary_grows_by_rows_up_to_its_size(rows):
    D, observed = rows[:8], np.ones(rows.shape, bool)

    grown = grow_dictionary(D, rows, observed, 20, np.random.default_rng(0))

    assert len(grown) == 20
    assert (grown[:8] == D).all()
    assert all((rows == point).all(axis=1).any() for point in grown[8:])
    assert grow_dictionary(D, rows, observed, 5, np.random.default_rng(0)) is D


def test_the_least_used_points_are_replaced_by_the_newest_rows(rows):
    D = rows[:8].copy()
    D[3] = 50.0  # far from all rows, so that nothing uses it

    renewed = renew_dictionary(D, rows, SETTING, newest=1)

    assert (renewed[3] == rows[-1]).all()
    assert (np.delete(renewed, 3, axis=0) == np.delete(D, 3, axis=0)).all()
    assert (D[3] == 50).all()
    assert (renew_dictionary(D, rows, SETTING, newest=8) != D).any(axis=1).sum() == 2
