"""L-BFGS on one vector: the compiled form takes the steps of the NumPy code up to rounding."""

import tracemalloc

import numpy as np
import pytest

from hirank import _compiled
from hirank.core.bounds import Bounds
from hirank.core.threads import Workers
from hirank.kernels import RBF, Poly
from hirank.optim.irls import IRLS
from hirank.optim.lbfgs import LBFGS
from hirank.optim.path import PathPoint, Setting

KERNELS = [RBF(2.0), Poly(2, 1.0), Poly(3, 0.5), Poly(1, 0.0)]
FORMS = ["off", *_compiled.available()]
compiled = pytest.mark.skipif(not _compiled.available(), reason="there is no compiled core")


class OwnRBF(RBF):
    """A kernel that is not built in."""


def make_table(n=30, m=5, seed=0):
    """Return points near a curve, n x m, and which entries are observed."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 1))
    X = np.hstack([t, t**2, t**3]) @ rng.standard_normal((3, m))
    return X + 0.01 * rng.standard_normal((n, m)), rng.random((n, m)) < 0.7


def begin(form, X, observed, r=8, kernel=KERNELS[0], beta=1e-2, bounds=None):
    """Return the first state of a stage of a dictionary of the first r rows."""
    setting = Setting(kernel, beta, 0.0 if isinstance(kernel, RBF) else beta)
    solver = LBFGS(observed, Workers(1), bounds=bounds)
    with _compiled.using(form):
        return solver, solver.init(PathPoint(setting, X, X[:r].copy()))


def begin_penalty(form, X, observed, kernel, landmarks=None, gamma=1e-2, bounds=None):
    solver = IRLS(observed, Workers(1), bounds=bounds, landmarks=landmarks, power=0.2)
    with _compiled.using(form):
        return solver, solver.init(PathPoint(Setting(kernel, gamma), X, X))


def take_steps(solver, state, count):
    states = [state]
    for _ in range(count):
        states.append(solver.step(states[-1]))
    return states


def assert_same_evaluation(state, reference, n):
    """Compare values in units of n/2, and gradients in units of the largest entry."""
    assert state.objective == pytest.approx(reference.objective, rel=1e-12, abs=1e-14 * n / 2)
    gradient = reference.descent.gradient
    size = np.abs(gradient).max(initial=1e-300)
    assert state.descent.gradient / size == pytest.approx(gradient / size, abs=1e-10)


@compiled
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(
    ("n", "m", "r"), [(30, 5, 8), (30, 1, 4), (12, 3, 1), (20, 4, 20), (70, 9, 66)]
)
def test_values_and_gradients_of_a_dictionary_are_those_of_numpy(n, m, r, kernel):
    X, observed = make_table(n, m)
    observed[-1] = False  # an empty row
    reference = begin("off", X, observed, r, kernel)[1]

    for form in _compiled.available():
        assert_same_evaluation(begin(form, X, observed, r, kernel)[1], reference, n)


@compiled
@pytest.mark.parametrize("landmarks", [None, np.arange(0, 30, 3)], ids=["exact", "landmarks"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_and_gradients_of_a_penalty_are_those_of_numpy(kernel, landmarks):
    X, observed = make_table()
    reference = begin_penalty("off", X, observed, kernel, landmarks)[1]

    for form in _compiled.available():
        state = begin_penalty(form, X, observed, kernel, landmarks)[1]
        # The ridge of landmarks is 1e-10, so products with the root lose some digits.
        assert state.objective == pytest.approx(reference.objective, rel=1e-8)
        size = np.abs(reference.descent.gradient).max()
        difference = state.descent.gradient - reference.descent.gradient
        assert np.abs(difference).max() < 1e-7 * size


@compiled
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_penalty_steps_where_no_eigenvector_matters_to_the_curvature(kernel):
    X, observed = make_table()
    for form in _compiled.available():
        solver, state = begin_penalty(form, X, observed, kernel, gamma=1e12)
        assert solver.step(state).objective <= state.objective


@compiled
@pytest.mark.parametrize("bounds", [None, Bounds(np.full(5, -0.4), np.full(5, 0.5))])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
@pytest.mark.parametrize("start", [begin, begin_penalty], ids=["dictionary", "penalty"])
def test_both_forms_take_the_same_steps(start, kernel, bounds):
    X, observed = make_table()
    if bounds is not None:
        X = np.where(observed, X, np.clip(X, -0.4, 0.5))

    ends = [
        take_steps(*start(form, X, observed, kernel=kernel, bounds=bounds), 12)[-1].X()
        for form in FORMS
    ]

    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-5)
        assert (end[observed] == X[observed]).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", [begin, begin_penalty], ids=["dictionary", "penalty"])
def test_the_objective_never_rises_and_missing_entries_stay_within_bounds(form, start):
    X, observed = make_table(60)
    bounds = Bounds(np.full(5, -0.3), np.full(5, np.inf))
    X = np.where(observed, X, np.maximum(X, -0.3))

    states = take_steps(*start(form, X, observed, kernel=Poly(2, 1.0), bounds=bounds), 60)

    assert (np.diff([state.objective for state in states]) <= 0).all()
    assert states[-1].objective < states[0].objective
    missing = states[-1].X()[~observed]
    assert missing.min() == -0.3


@pytest.mark.parametrize("form", FORMS)
def test_a_step_leaves_its_state_and_repeats_to_the_bit(form):
    solver, state = begin(form, *make_table())
    state = take_steps(solver, state, 5)[-1]
    before, D = state.X(), state.D()

    first, second = (take_steps(solver, state, 3)[-1] for _ in range(2))

    assert (state.X() == before).all()
    assert (state.D() == D).all()
    assert (first.X() == second.X()).all()
    assert (first.D() == second.D()).all()


@compiled
def test_renewed_curvature_keeps_point_and_value():
    X, observed = make_table()
    for form in FORMS:
        solver, state = begin(form, X, observed)
        state = take_steps(solver, state, 5)[-1].descent
        renewed = state.renew()
        assert renewed.value == state.value
        assert (renewed.x == state.x).all()
        assert renewed.step().value < state.value


@compiled
@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only"])
def test_the_layout_of_a_table_does_not_matter(layout):
    X, observed = make_table()
    expected = take_steps(*begin(FORMS[1], X, observed), 3)[-1].X()
    if layout == "fortran":
        X = np.asfortranarray(X)
    elif layout == "strided":
        X = np.repeat(X, 2, axis=1)[:, ::2]
    else:
        X.flags.writeable = False

    assert (take_steps(*begin(FORMS[1], X, observed), 3)[-1].X() == expected).all()


@compiled
def test_a_complete_table_has_only_a_dictionary_to_fit():
    X, observed = make_table()
    observed[:] = True

    ends = [take_steps(*begin(form, X, observed), 5)[-1] for form in FORMS]

    for end in ends:
        assert (end.X() == X).all()
        np.testing.assert_allclose(end.D(), ends[0].D(), atol=1e-7)


@compiled
@pytest.mark.parametrize("scale", [1e-310, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
def test_extreme_values_are_evaluated_as_in_numpy_or_refused_alike(kernel, scale):
    X, observed = make_table()

    results = []
    for form in FORMS:
        with np.errstate(all="ignore"):
            try:
                results.append(begin(form, scale * X, observed, kernel=kernel)[1].objective)
            except np.linalg.LinAlgError as error:
                results.append(str(error))

    for result in results[1:]:
        if isinstance(results[0], str):
            assert result == results[0]
        else:
            assert result == pytest.approx(results[0], rel=1e-8, nan_ok=True)


@compiled
def test_the_number_of_threads_does_not_change_a_bit():
    X, observed = make_table(3000, 10)
    start = PathPoint(Setting(RBF(2.0), 1e-4), X, X[:80].copy())  # large enough to be shared

    ends = []
    for n_threads in (1, 2, 3):
        with Workers(n_threads) as workers, _compiled.using(FORMS[1]):
            solver = LBFGS(observed, workers)
            ends.append(take_steps(solver, solver.init(start), 3)[-1])

    for end in ends[1:]:
        assert end.objective == ends[0].objective
        assert (end.X() == ends[0].X()).all()
        assert (end.D() == ends[0].D()).all()


@compiled
def test_other_kernels_and_single_precision_run_in_numpy():
    X, observed = make_table()
    reference = type(begin("off", X, observed)[1].descent)

    assert type(begin(FORMS[1], X, observed)[1].descent) is not reference
    assert type(begin(FORMS[1], X, observed, kernel=OwnRBF(2.0))[1].descent) is reference
    assert type(begin(FORMS[1], X.astype(np.float32), observed)[1].descent) is reference


@compiled
@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
def test_small_ridges_agree_within_what_the_order_of_points_changes(kernel):
    X, observed = make_table(60, 6)
    D = X[:20]
    order = np.random.default_rng(1).permutation(20)
    k = (~observed).sum()

    def gradient(form, points):
        solver = LBFGS(observed, Workers(1))
        with _compiled.using(form):
            start = solver.init(PathPoint(Setting(kernel, 1e-8), X, points))
        return start.descent.gradient[:k]

    reference = gradient("off", D)
    permuted = np.abs(gradient("off", D[order]) - reference).max()
    for form in _compiled.available():
        # Three times is the rule for medians; single cases of rounding scatter more.
        assert np.abs(gradient(form, D) - reference).max() < 10 * permuted


def test_the_memory_of_a_wide_table_is_linear_in_its_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 4000))
    observed = rng.random(X.shape) < 0.7

    tracemalloc.start()
    states = take_steps(*begin(FORMS[-1], X, observed, r=5, kernel=RBF(60.0)), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert states[-1].objective < states[0].objective
    assert peak < 20 * X.nbytes  # inverses of 4000 x 4000 would be 2000 times X
