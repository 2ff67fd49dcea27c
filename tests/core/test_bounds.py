"""Bounds of imputed values hold within the solve, not by clipping after it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from hirank.core.bounds import Bounds, Box
from hirank.core.objective import reduced_gradient, sample_gradient
from hirank.core.scaling import Scaling
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly
from hirank.models.dictionary import Dictionary
from hirank.models.fit_dictionary import DictionaryProblem, fit_algorithm1, fit_dictionary
from hirank.optim import quasi_newton as qn
from hirank.optim.newton import Newton
from hirank.optim.path import PathPoint, SolverConfig, Stage, default_path
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import Monitor


def squares(seed, n=120, m=10, missing=0.3):
    """Squares of points on a plane, in scaled units: truth, observed, and that nothing is < 0."""
    rng = np.random.default_rng(seed)
    plane = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.ones(n)]) @ rng.standard_normal((3, m))
    return _scaled(plane**2, rng.random((n, m)) >= missing)


def rain(seed, n=120, m=10, missing=0.3):
    """A curved surface with all that is below 0 cut off: about half of the entries are 0."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    surface = np.column_stack([u, v, u * v, u**2, v**2]) @ rng.standard_normal((5, m))
    return _scaled(np.maximum(surface, 0), rng.random((n, m)) >= missing)


def _scaled(truth, observed):
    observed[:, 0] |= ~observed.any(axis=1)
    scaling = Scaling.measure(truth, observed, scale=True)
    m = truth.shape[1]
    bounds = Bounds(np.zeros(m), np.full(m, np.inf)).scale(scaling)
    return scaling.forward(truth), observed[:, scaling.varying], bounds


def solve(
    X,
    observed,
    bounds,
    *,
    kernel=None,
    stages=None,
    seed=0,
    solver=fit_dictionary,
    monitor=None,
    **config,
):
    stages = default_path() if stages is None else stages
    config = SolverConfig(**{"max_iter": 60, "tol": 1e-3, **config})
    known = np.where(observed, X, 0)
    task = DictionaryProblem(
        known, observed, 40, RBF() if kernel is None else kernel, stages, config, bounds
    )
    with Workers(1) as workers:
        if solver is fit_algorithm1:
            return solver(task, np.random.default_rng(seed), monitor)
        return solver(task, workers, np.random.default_rng(seed), monitor)


def assert_within(X, observed, bounds):
    assert ((bounds.lower <= X) | observed).all()
    assert ((bounds.upper >= X) | observed).all()


def value_at(X, result):
    with Workers(1) as workers:
        return reduced_gradient(X, result.settings[-1].basis(result.D), workers)


def boxed_quadratics(seed, b, N):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((b, N + 2, N))
    c = 2 * rng.standard_normal((b, N + 2))
    lower = -rng.random((b, N))
    upper = np.where(rng.random((b, N)) < 0.3, np.inf, rng.random((b, N)))

    def evaluate(x, rows=slice(None)):
        residual = np.einsum("bij,bj->bi", A[rows], x) - c[rows]
        return (residual**2).sum(axis=1) / 2, np.einsum("bij,bi->bj", A[rows], residual)

    return evaluate, A, c, Box(lower, upper)


def minimize(evaluate, box, rounds, precondition=None):
    x = np.zeros_like(box.lower)
    rows = qn.begin(x, *evaluate(x), 10, precondition, box)
    trail = [rows]
    for _ in range(rounds):
        point = qn.trial(rows)
        rows = qn.update(rows, point, *evaluate(point))
        trail.append(rows)
    return trail


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 7))
def test_every_row_is_minimized_within_its_bounds(seed, b, N):
    evaluate, A, c, box = boxed_quadratics(seed, b, N)
    trail = minimize(evaluate, box, 120)
    for i in range(b):
        best = lsq_linear(A[i], c[i], (box.lower[i], box.upper[i]), tol=1e-13, max_iter=500)
        assert trail[-1].value[i] <= best.cost * (1 + 1e-8) + 1e-10
    for before, after in pairwise(trail):
        assert (after.value <= before.value).all()
        assert ((after.x >= box.lower) & (after.x <= box.upper)).all()


def test_a_precondition_may_couple_held_variables_with_free_ones():
    evaluate, A, _, box = boxed_quadratics(3, 1, 7)
    inverse = np.linalg.inv(A[0].T @ A[0])
    plain = minimize(evaluate, box, 300)[-1]
    guided = minimize(evaluate, box, 30, lambda a: a @ inverse)[-1]
    assert (plain.x == box.lower).any() or (plain.x == box.upper).any()
    np.testing.assert_allclose(guided.x, plain.x, atol=1e-6)


def test_rows_with_bounds_are_independent():
    evaluate, _, _, box = boxed_quadratics(1, 6, 5)
    together = minimize(evaluate, box, 25)[-1]
    for i in range(6):
        own = slice(i, i + 1)
        alone = minimize(
            lambda x, own=own: evaluate(x, own), Box(box.lower[own], box.upper[own]), 25
        )[-1]
        np.testing.assert_allclose(alone.x[0], together.x[i], rtol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(), Poly()], ids=str)
@pytest.mark.parametrize("data", [squares, rain])
def test_imputed_values_are_within_the_bounds_and_the_objective_never_rises(data, kernel):
    truth, observed, bounds = data(0)
    monitor = Monitor()
    result = solve(truth, observed, bounds, kernel=kernel, max_iter=30, monitor=monitor)
    assert_within(result.X, observed, bounds)
    assert data is squares or (bounds.lower == result.X)[~observed].any()
    assert (result.X[observed] == truth[observed]).all()
    for stage in np.unique(monitor.trace["stage"]):
        assert (np.diff(monitor.trace["objective"][monitor.trace["stage"] == stage]) <= 0).all()


@pytest.mark.parametrize("data", [squares, rain])
def test_the_solution_is_better_than_one_clipped_afterwards(data):
    """Same kernel, ridge and start: what differs is where the bounds come in."""
    truth, observed, bounds = data(1)
    fixed = {"kernel": RBF(3.0), "stages": [Stage(1.0, 1e-3)], "max_iter": 400, "tol": 0}
    free, inside = solve(truth, observed, None, **fixed), solve(truth, observed, bounds, **fixed)
    clipped = bounds.clip(free.X, observed)
    assert (clipped != free.X).any()
    assert inside.objective == pytest.approx(value_at(inside.X, inside).value)
    assert inside.objective < value_at(clipped, free).value


def test_no_descent_is_left_within_the_bounds():
    truth, observed, bounds = rain(2, n=60, m=8)
    result = solve(
        truth, observed, bounds, kernel=RBF(3.0), stages=[Stage(1.0, 1e-2)], max_iter=1500, tol=0
    )
    gradient = value_at(result.X, result).X
    at_limit = (bounds.lower == result.X) & ~observed
    projected = np.where(at_limit, np.minimum(gradient, 0), gradient)[~observed]
    start = np.where(observed, truth, np.maximum(0, bounds.lower))
    before = np.abs(value_at(start, result).X[~observed]).max()
    assert at_limit.sum() > 10
    assert gradient[at_limit].max() > 1e-3 * before  # it is the limit that holds them
    assert np.abs(projected).max() < 1e-5 * before


def test_the_error_is_not_worse_than_with_clipping():
    """Up to chance: single tables come out a few percent better or worse."""
    ratios = []
    for seed in range(5):
        truth, observed, bounds = rain(seed, n=60, missing=0.5)
        short = {"stages": default_path()[:4:2], "max_iter": 40}
        free, inside = (solve(truth, observed, b, **short) for b in (None, bounds))
        errors = [
            np.linalg.norm((X - truth)[~observed])
            for X in (inside.X, bounds.clip(free.X, observed))
        ]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) <= 1.03


def test_infinite_bounds_have_no_effect():
    truth, observed, bounds = squares(0)
    infinite = Bounds(np.full_like(bounds.lower, -np.inf), bounds.upper)
    assert (solve(truth, observed, infinite).X == solve(truth, observed, None).X).all()


def test_observed_values_beyond_the_bounds_stay():
    truth, observed, bounds = squares(0)
    tight = Bounds(bounds.lower, np.full_like(bounds.lower, 0.5))
    result = solve(truth, observed, tight, max_iter=20)
    assert (result.X[observed] == truth[observed]).all()
    assert truth[observed].max() > 0.5
    assert_within(result.X, observed, tight)


def test_restarted_samples_stay_within_the_bounds():
    truth, observed, bounds = squares(0)
    start = bounds.clip(np.where(observed, truth, -9.0), observed)
    setting = solve(truth, observed, bounds, max_iter=5).settings[1]
    with Workers(1) as workers:
        moved, _ = restart_samples(start, truth[::3].copy(), observed, setting, workers, bounds)
    assert (moved != start).any()
    assert_within(moved, observed, bounds)


def test_the_steps_of_the_paper_are_projected():
    truth, observed, bounds = squares(0)
    single = {"stages": [Stage(1.0, 1e-3)], "solver": fit_algorithm1, "tol": 0}
    monitor = Monitor()
    result = solve(truth, observed, bounds, monitor=monitor, **single)
    assert_within(result.X, observed, bounds)
    assert (result.X[observed] == truth[observed]).all()
    assert result.objective < 0.5 * monitor.trace["objective"][0]
    end = PathPoint(result.settings[-1], result.X, result.D)
    state = Newton(observed, bounds=bounds).init(end)
    after = Newton(observed, bounds=bounds).step(state)
    np.testing.assert_array_equal(after.last_X, state.samples - after.samples)


@pytest.fixture(scope="module")
def fitted():
    truth, observed, bounds = rain(5, n=260)
    result = solve(truth[:150], observed[:150], bounds)
    return Dictionary(result.D, result.settings, bounds=bounds), truth[150:], observed[150:]


def test_new_samples_are_within_the_bounds_each_on_its_own(fitted):
    rows, truth, observed = fitted
    known = np.where(observed, truth, 0)
    together = rows.complete(known, observed)
    assert_within(together, observed, rows.bounds)
    assert (together == rows.bounds.lower)[~observed].any()
    assert (together[observed] == truth[observed]).all()
    for part in (slice(5, 6), slice(3, 50), np.arange(110)[::-1]):
        alone = rows.complete(known[part], observed[part])
        np.testing.assert_allclose(alone, together[part], rtol=0, atol=1e-9)


def test_new_samples_are_better_than_when_clipped_afterwards(fitted):
    rows, truth, observed = fitted
    known, last = np.where(observed, truth, 0), rows.settings[-1:]
    free = Dictionary(rows.D, last, rounds=60).complete(known, observed)
    inside = Dictionary(rows.D, last, rounds=60, bounds=rows.bounds).complete(known, observed)
    clipped = rows.bounds.clip(free, observed)
    cut = (clipped != free).any(axis=1)
    basis = last[0].basis(rows.D)
    assert cut.sum() > 5
    value, other = sample_gradient(inside[cut], basis)[0], sample_gradient(clipped[cut], basis)[0]
    assert np.mean(value < other) > 0.75
    assert value.sum() < other.sum()


def test_bounds_that_contradict_each_other_are_an_error():
    with pytest.raises(ValueError, match=r"must not exceed.*\[1\].*inf where"):
        Bounds(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match=r"must not exceed.*NaN"):
        Bounds(np.array([np.nan]), np.array([1.0]))
    with pytest.raises(ValueError, match="one bound per column"):
        Bounds(np.zeros(2), np.ones(3))
