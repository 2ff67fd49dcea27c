"""Iteratively reweighted least squares: the penalty of one stage over the missing entries."""

import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.core.init import soft_impute
from hirank.core.schatten import Penalty
from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import RBF, Poly
from hirank.optim.irls import IRLS
from hirank.optim.loop import minimize
from hirank.optim.path import PathPoint, Setting
from hirank.optim.trace import Monitor

LANDMARKS = [None, np.arange(0, 40, 3)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def parabola(rng):
    """Points of a parabola in three dimensions, 40 x 3, and which entries are observed."""
    t = rng.uniform(-1, 1, 40)
    observed = rng.random((40, 3)) >= 0.25
    observed[:, 0] |= ~observed.any(axis=1)
    return np.column_stack([t, t**2, t - t**2]), observed


def start_stage(X, observed, kernel=None, gamma=1e-2):
    filled = soft_impute(np.where(observed, X, 0), observed)
    return PathPoint(Setting(kernel or Poly(2, 1.0), gamma), filled, filled)


def take_steps(solver, start, n_steps):
    """Return the states from the start on."""
    states = [solver.init(start)]
    for _ in range(n_steps):
        states.append(solver.step(states[-1]))
    return states


@pytest.mark.parametrize("landmarks", LANDMARKS, ids=["exact", "landmarks"])
@pytest.mark.parametrize("kernel", [Poly(2, 1.0), RBF(1.0)], ids=["poly", "rbf"])
def test_the_penalty_falls_within_a_stage_and_never_rises(kernel, landmarks, parabola):
    X, observed = parabola
    start = start_stage(X, observed, kernel)
    # Curvature is renewed on the way, too.
    solver = IRLS(observed, Workers(1), power=0.5, landmarks=landmarks, renew=8)

    states = take_steps(solver, start, 30)

    objectives = np.array([state.objective for state in states])
    assert (np.diff(objectives) <= 0).all()
    assert objectives[-1] < 0.95 * objectives[0]
    penalty = Penalty(kernel, start.setting.beta, 0.5)
    assert objectives[0] == pytest.approx(penalty(start.X, landmarks).value)
    assert objectives[-1] == pytest.approx(penalty(states[-1].X(), landmarks).value)


@pytest.mark.parametrize("landmarks", LANDMARKS, ids=["exact", "landmarks"])
def test_fixed_entries_do_not_change_and_landmarks_move_with_their_rows(landmarks, parabola):
    X, observed = parabola
    start = start_stage(X, observed)

    state = take_steps(IRLS(observed, Workers(1), landmarks=landmarks), start, 10)[-1]

    filled = state.X()
    assert (filled[observed] == X[observed]).all()
    assert (filled[~observed] != start.X[~observed]).all()
    assert (state.D() == (filled if landmarks is None else filled[landmarks])).all()


def test_a_lower_power_gives_another_objective(parabola):
    start = start_stage(*parabola)

    high, low = (
        IRLS(parabola[1], Workers(1), power=power).init(start).objective for power in (1.0, 0.2)
    )

    assert high != pytest.approx(low, rel=0.05)


def test_free_entries_stay_within_the_bounds_and_reach_them(parabola):
    X, observed = parabola
    # The second feature goes up to 1, the third down to -2.
    bounds = Bounds(np.array([-np.inf, -np.inf, -0.5]), np.array([np.inf, 0.3, np.inf]))
    start = start_stage(X, observed)
    inside = Bounds(bounds.lower + 0.1, bounds.upper - 0.1).clip(start.X, observed)
    start = start._replace(X=inside, D=inside)

    states = take_steps(IRLS(observed, Workers(1), bounds=bounds), start, 30)

    for state in states:
        filled = state.X()
        assert (filled[observed] == X[observed]).all()
        assert (filled <= bounds.upper)[~observed].all()
        assert (filled >= bounds.lower)[~observed].all()
    filled = states[-1].X()
    assert (filled == bounds.upper)[:, 1][~observed[:, 1]].any()
    assert (filled == bounds.lower)[:, 2][~observed[:, 2]].any()
    assert (filled[:, 1] > 0.3)[observed[:, 1]].any()  # observed values have no bounds
    assert states[-1].objective < states[0].objective


def test_a_stage_ends_once_the_penalty_hardly_falls(parabola):
    X, observed = parabola
    start = start_stage(X, observed)
    monitors = [Monitor(), Monitor()]

    reasons = [
        minimize(IRLS(observed, Workers(1), tol=tol), start, max_iter=500, monitor=monitor).reason
        for tol, monitor in zip((1e-1, 1e-5), monitors, strict=True)
    ]

    assert reasons == [StopReason.CONVERGED] * 2
    assert monitors[0].steps < monitors[1].steps


@pytest.mark.parametrize("landmarks", LANDMARKS, ids=["exact", "landmarks"])
def test_a_point_that_is_out_of_range_has_an_infinite_penalty(landmarks, parabola):
    X, observed = parabola
    start = start_stage(X, observed)
    problem = IRLS(observed, Workers(1), landmarks=landmarks).problem(start)

    value, gradient = problem.evaluate(np.full((~observed).sum(), 1e200), Workers(1))

    assert value == np.inf
    assert not gradient.any()


def test_a_complete_table_has_a_penalty_and_no_entries_to_move(parabola):
    X, _ = parabola
    everything = np.ones(X.shape, bool)
    problem = IRLS(everything, Workers(1)).problem(PathPoint(Setting(Poly(2, 1.0), 0.1), X, X))

    value, gradient = problem.evaluate(np.zeros(0), Workers(1))

    assert value == pytest.approx(Penalty(Poly(2, 1.0), 0.1).exact(X).value)
    assert gradient.shape == (0,)
    assert (problem.X(np.zeros(0)) == X).all()
