import numpy as np
import pytest

from hirank.exceptions import StopReason
from hirank.kernels import RBF
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, SolverConfig, Stage, minimize_path
from hirank.optim.trace import Monitor


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_algorithm_1_matches_the_authors_code(kernel, reference):
    """Within 1e-8 after 1, 3, 10 and 50 iterations; Z is that of the point before the last step."""
    observed = reference["observed"]
    solver = Newton(observed)
    X = np.where(observed, reference["X"], 0)
    state = solver.init(PathPoint(reference.settings[kernel], X, reference["D0"]))
    for k in range(1, 51):
        before, state = state, solver.step(state)
        if k in (1, 3, 10, 50):
            key = f"offline_{kernel}_{k}"
            assert np.abs(state.X() - reference[f"{key}/X"]).max() < 1e-8
            assert np.abs(state.D() - reference[f"{key}/D"]).max() < 1e-8
            assert np.abs(before.Z - reference[f"{key}/Z"]).max() < 1e-8


def test_observed_entries_never_move(reference):
    observed = reference["observed"]
    solver = Newton(observed)
    state = solver.init(PathPoint(reference.settings["rbf"], reference["X"], reference["D0"]))
    for _ in range(5):
        state = solver.step(state)
    assert (state.X()[observed] == reference["X"][observed]).all()


def test_with_nothing_missing_only_the_dictionary_moves(reference):
    X = reference["X"]
    solver = Newton(np.ones(X.shape, bool))
    first = solver.init(PathPoint(reference.settings["rbf"], X, reference["D0"]))
    state = first
    for _ in range(20):
        state = solver.step(state)
    assert state.X() is X
    assert state.objective < 0.9 * first.objective


def test_divergence_ends_with_a_reason_and_the_best_point(reference):
    observed = reference["observed"]
    X = np.where(observed, reference["X"], 0)
    solver = Newton(observed, momentum=1.5)
    start, monitor = (X, reference["D0"]), Monitor()
    config = SolverConfig(max_iter=300)
    result = minimize_path(solver, RBF(), [Stage(1.0, 1e-3)], start, config, monitor)
    assert result.reason is StopReason.DIVERGED
    assert np.isfinite(result.X).all()
    assert np.isfinite(result.D).all()
    finite = monitor.trace["objective"][np.isfinite(monitor.trace["objective"])]
    assert result.objective <= finite.min()
