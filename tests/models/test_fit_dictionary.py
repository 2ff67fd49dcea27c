"""The default solver under the loop: what must hold whatever the data."""

import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.exceptions import StopReason
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary
from hirank.optim.path import SolverConfig, Stage, default_path
from hirank.optim.trace import Monitor


@pytest.fixture(scope="module")
def scaled(curved):
    truth = (curved.truth - curved.truth.mean(axis=0)) / curved.truth.std(axis=0)
    return truth, curved.observed


def solve(X, observed, kernel=None, stages=None, seed=0, monitor=None, **config):
    task = DictionaryProblem(
        np.where(observed, X, 0).astype(X.dtype),
        observed,
        40,
        RBF() if kernel is None else kernel,
        default_path() if stages is None else stages,
        SolverConfig(**{"max_iter": 40, **config}),
    )
    with Workers() as workers:
        return fit_dictionary(task, workers, np.random.default_rng(seed), monitor)


@pytest.mark.parametrize("kernel", [RBF(), Poly()], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_never_rises_within_a_stage(scaled, kernel, dtype):
    truth, observed = scaled
    monitor = Monitor()
    result = solve(truth.astype(dtype), observed, kernel, monitor=monitor)
    assert result.X.dtype == result.D.dtype == dtype
    for stage in np.unique(monitor.trace["stage"]):
        objective = monitor.trace["objective"][monitor.trace["stage"] == stage]
        assert (np.diff(objective) <= 0).all()


def test_curved_data_are_recovered(scaled):
    truth, observed = scaled
    result = solve(truth, observed, max_iter=100)
    assert missing_relative_error(result.X, truth, observed) < 0.05
    assert (result.X[observed] == truth[observed]).all()


def test_the_same_seed_gives_the_same_result(scaled):
    truth, observed = scaled
    one, two = solve(truth, observed), solve(truth, observed)
    other = solve(truth, observed, seed=1)
    assert (one.X == two.X).all()
    assert (one.D == two.D).all()
    assert (one.X != other.X).any()


def test_complete_training_data_needs_no_x_step(scaled):
    truth, _ = scaled
    result = solve(truth, np.ones(truth.shape, bool))
    assert (truth == result.X).all()
    assert result.objective < 1e-3


def test_the_trace_describes_the_result(scaled):
    truth, observed = scaled
    monitor = Monitor()
    stages = [Stage(1.0, 1e-2), Stage(2.0, 1e-3)]
    result = solve(truth, observed, stages=stages, monitor=monitor)
    trace = monitor.trace
    assert monitor.steps == len(trace) == 40 * len(np.unique(trace["stage"]))
    assert (trace["step"] == np.arange(1, monitor.steps + 1)).all()
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert trace["objective"][-1] == result.objective
    assert len(result.settings) in (1, 2)
    assert result.reason is StopReason.MAX_ITER


def test_a_stage_ends_when_the_objective_hardly_falls(scaled):
    truth, observed = scaled
    monitor, stages = Monitor(), [Stage(1.0, 1e-2)]
    result = solve(truth, observed, stages=stages, max_iter=5000, tol=1e-3, monitor=monitor)
    assert result.reason is StopReason.CONVERGED
    assert monitor.steps < 2000
    objective = monitor.trace["objective"]
    assert objective[-11] - objective[-1] <= 1e-3 * objective[-1]


def test_a_callback_sees_every_step_and_can_stop(scaled):
    truth, observed = scaled
    seen = []

    def stop_at_seven(line):
        seen.append(line)
        return line.step == 7

    monitor = Monitor(stop_at_seven)
    result = solve(truth, observed, monitor=monitor)
    assert [line.step for line in seen] == list(range(1, 8))
    assert monitor.steps == 7
    assert result.reason is StopReason.CALLBACK


def test_overflow_at_the_start_is_explained(scaled):
    truth, observed = scaled
    huge = (1e15 * truth).astype(np.float32)
    with pytest.raises(ValueError, match=r"overflow float32.*scale=True"):
        solve(huge, observed, Poly(3))


def test_the_path_ends_before_it_follows_noise():
    """On a noisy plane the last stages fit noise; on clean curved data they are the best."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((150, 2)) @ rng.standard_normal((2, 10))
    noisy = truth + rng.standard_normal(truth.shape)
    observed = rng.random(truth.shape) >= 0.3
    result = solve(noisy, observed, max_iter=60)
    assert len(result.settings) < len(default_path())
    assert (result.X[observed] == noisy[observed]).all()
