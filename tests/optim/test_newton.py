import numpy as np
import pytest

from hirank.kernels import RBF
from hirank.optim.loop import Options, run
from hirank.optim.newton import Newton
from hirank.optim.path import Stage


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_algorithm_1_matches_the_authors_code(kernel, reference):
    """Within 1e-8 after 1, 3, 10 and 50 iterations; Z is that of the point before the last step."""
    observed = reference["observed"]
    solver = Newton(observed)
    X = np.where(observed, reference["X"], 0)
    state = solver.init(reference.settings[kernel], X, reference["D0"])
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
    state = solver.init(reference.settings["rbf"], reference["X"], reference["D0"])
    for _ in range(5):
        state = solver.step(state)
    assert (state.X()[observed] == reference["X"][observed]).all()


def test_with_nothing_missing_only_the_dictionary_moves(reference):
    X = reference["X"]
    solver = Newton(np.ones(X.shape, bool))
    first = solver.init(reference.settings["rbf"], X, reference["D0"])
    state = first
    for _ in range(20):
        state = solver.step(state)
    assert state.X() is X
    assert state.objective < 0.9 * first.objective


def test_divergence_ends_with_a_reason_and_the_best_point(reference):
    observed = reference["observed"]
    X = np.where(observed, reference["X"], 0)
    solver = Newton(observed, momentum=1.5)
    options = Options(max_iter=300)
    result = run(solver, RBF(), [Stage(1.0, 1e-3)], X, reference["D0"], options)
    assert result.stop_reason.startswith("Diverged")
    assert "solver='lbfgs'" in result.stop_reason
    assert np.isfinite(result.X).all()
    assert np.isfinite(result.D).all()
    finite = result.trace["objective"][np.isfinite(result.trace["objective"])]
    assert result.objective <= finite.min()
