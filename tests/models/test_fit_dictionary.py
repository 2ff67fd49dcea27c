"""The default solver under the loop: what must hold whatever the data."""

import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_dictionary import Task, complete_table
from hirank.optim.loop import Options
from hirank.optim.path import Stage, default_path


@pytest.fixture(scope="module")
def scaled(curved):
    truth = (curved.truth - curved.truth.mean(axis=0)) / curved.truth.std(axis=0)
    return truth, curved.observed


def solve(X, observed, kernel=None, stages=None, seed=0, **options):
    task = Task(
        np.where(observed, X, 0).astype(X.dtype),
        observed,
        40,
        RBF() if kernel is None else kernel,
        default_path() if stages is None else stages,
        Options(**{"max_iter": 40, **options}),
    )
    with Workers() as workers:
        return complete_table(task, workers, np.random.default_rng(seed))


@pytest.mark.parametrize("kernel", [RBF(), Poly()], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_objective_never_rises_within_a_stage(scaled, kernel, dtype):
    truth, observed = scaled
    result = solve(truth.astype(dtype), observed, kernel)
    assert result.X.dtype == result.D.dtype == dtype
    for stage in np.unique(result.trace["stage"]):
        objective = result.trace["objective"][result.trace["stage"] == stage]
        assert (np.diff(objective) <= 0).all()


def test_it_recovers_curved_data(scaled):
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


def test_trace_and_codes_describe_the_result(scaled):
    truth, observed = scaled
    result = solve(truth, observed, stages=[Stage(1.0, 1e-2), Stage(2.0, 1e-3)])
    steps = result.n_iter
    assert steps == len(result.trace) == 40 * len(np.unique(result.trace["stage"]))
    assert (result.trace["step"] == np.arange(1, steps + 1)).all()
    assert (np.diff(result.trace["seconds"]) >= 0).all()
    assert result.trace["objective"][-1] == result.objective
    assert result.Z.shape == (120, 40)
    assert len(result.settings) in (1, 2)
    assert "max_iter=40" in result.stop_reason


def test_a_stage_ends_when_progress_does(scaled):
    truth, observed = scaled
    result = solve(truth, observed, stages=[Stage(1.0, 1e-2)], max_iter=5000, tol=1e-3)
    assert result.stop_reason.startswith("Converged")
    assert result.n_iter < 2000
    objective = result.trace["objective"]
    assert objective[-11] - objective[-1] <= 1e-3 * objective[-1]


def test_a_callback_sees_every_step_and_can_stop(scaled):
    truth, observed = scaled
    seen = []

    def stop_at_seven(line):
        seen.append(line)
        return line.step == 7

    result = solve(truth, observed, callback=stop_at_seven)
    assert [line.step for line in seen] == list(range(1, 8))
    assert result.n_iter == 7
    assert result.stop_reason == "Stopped by the callback at step 7."


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
    assert result.stop_reason.startswith(
        f"Hidden entries were recovered best at stage {len(result.settings)} of 7"
    )
    assert (result.X[observed] == noisy[observed]).all()
