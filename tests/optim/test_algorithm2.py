from dataclasses import dataclass

import numpy as np
import pytest

from hirank.core.objective import codes, objective
from hirank.kernels import RBF, Kernel, Poly
from hirank.optim.algorithm2 import BANDWIDTH, Algorithm2State, falling_betas, paper_pass
from hirank.optim.path import Setting

pytestmark = pytest.mark.usefixtures("instruction_set")


@dataclass
class Problem:
    """The small problem of the reference values, ready to stream."""

    X: np.ndarray
    observed: np.ndarray
    Z: np.ndarray
    stream: Algorithm2State
    settings: dict[str, Setting]

    def run(self, kernel="rbf", **options):
        return paper_pass(
            self.X, self.observed, self.Z, self.stream, self.settings[kernel], **options
        )


@pytest.fixture
def problem(reference):
    observed = reference["observed"]
    X, D = np.where(observed, reference["X"], 0), reference["D0"]
    Z = np.zeros((len(X), len(D)))
    return Problem(X, observed, Z, Algorithm2State.start(D), reference.settings)


@pytest.mark.parametrize(
    ("key", "kernel", "batch_size", "within"),
    [
        ("online_rbf", "rbf", 1, {1: 1e-7, 3: 1e-7}),
        ("online_poly", "poly", 1, {1: 1e-5, 3: 1e-4}),
        ("minibatch_rbf", "rbf", 8, {1: 1e-7, 3: 1e-7}),
    ],
)
def test_algorithm_2_matches_the_authors_code(key, kernel, batch_size, within, problem, reference):
    """X and D; the authors' own norm is an estimate, which the codes of Poly amplify."""
    X, Z, stream = problem.X, problem.Z, problem.stream
    for k in (1, 2, 3):
        X, Z, stream, _ = paper_pass(
            X,
            problem.observed,
            Z,
            stream.restart(),
            reference.settings[kernel],
            batch_size=batch_size,
            max_inner=20,
        )
        if k in within:
            assert np.abs(X - reference[f"{key}_{k}/X"]).max() < within[k]
            assert np.abs(stream.D - reference[f"{key}_{k}/D"]).max() < within[k]
            assert np.abs(Z - reference[f"{key}_{k}/Z"]).max() < 30 * within[k]
    assert stream.rejected == 0


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize(("batch_size", "cut"), [(1, 1), (1, 17), (8, 16)])
def test_a_pass_cut_in_two_is_one_pass(kernel, batch_size, cut, problem):
    whole = problem.run(kernel, batch_size=batch_size)
    stream, parts = problem.stream, []
    for rows in (slice(cut), slice(cut, None)):
        X, Z, stream, _ = paper_pass(
            problem.X[rows],
            problem.observed[rows],
            problem.Z[rows],
            stream,
            problem.settings[kernel],
            batch_size=batch_size,
        )
        parts.append((X, Z))
    for i in (0, 1):
        assert (np.concatenate([part[i] for part in parts]) == whole[i]).all()
    assert (stream.D == whole[2].D).all()
    assert (stream.last_D == whole[2].last_D).all()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_inputs_and_observed_entries_stay(kernel, problem):
    given = (problem.X, problem.observed, problem.Z, problem.stream.D, problem.stream.last_D)
    copies = [a.copy() for a in given]
    for array in given:
        array.flags.writeable = False
    X, Z, stream, _ = problem.run(kernel)
    for array, copy in zip(given, copies, strict=True):
        assert (array == copy).all()
        assert not any(np.shares_memory(array, a) for a in (X, Z, stream.D, stream.last_D))
    assert (X[problem.observed] == problem.X[problem.observed]).all()
    assert (X[~problem.observed] != problem.X[~problem.observed]).any()


def test_any_layout_and_dtype_will_do(problem):
    expected = problem.run()[0].astype(np.float32)
    X, Z, stream, _ = paper_pass(
        np.asfortranarray(problem.X),
        np.asfortranarray(problem.observed),
        problem.Z.astype(np.float32),
        Algorithm2State.start(np.asfortranarray(problem.stream.D)),
        problem.settings["rbf"],
        tol=1e-5,
        momentum=np.float32(0.5),
    )
    np.testing.assert_allclose(X, expected, atol=1e-5)
    assert {a.dtype for a in (X, Z, stream.D, stream.last_D)} == {np.dtype(np.float64)}


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_with_nothing_missing_only_codes_and_dictionary_move(kernel, problem, reference):
    problem.X, problem.observed = reference["X"], np.ones(reference["X"].shape, bool)
    X, Z, stream, _ = problem.run(kernel)
    assert (X == problem.X).all()
    assert (Z != 0).any()
    assert (stream.D != problem.stream.D).any()


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_samples_with_nothing_observed_do_no_harm(kernel, problem):
    problem.observed = problem.observed.copy()
    problem.observed[::5] = False
    X, _, stream, _ = problem.run(kernel)
    assert np.isfinite(X).all()
    assert np.isfinite(stream.D).all()
    assert stream.rejected == 0


@pytest.mark.parametrize(
    ("kernel", "bad"), [("rbf", np.nan), ("rbf", np.inf), ("poly", np.nan), ("poly", 1e200)]
)
@pytest.mark.parametrize(("batch_size", "lost"), [(1, 1), (4, 4)])
def test_bad_numbers_leave_no_trace_but_a_count(kernel, bad, batch_size, lost, problem):
    good = problem.run(kernel, batch_size=batch_size)
    rows = np.r_[0:8, 8 : 8 + lost, 8:40]
    problem.X, problem.observed = problem.X[rows], problem.observed[rows].copy()
    problem.Z = problem.Z[rows]
    problem.X[8, 0], problem.observed[8, 0] = bad, True
    X, Z, stream, costs = problem.run(kernel, batch_size=batch_size)
    assert stream.rejected == lost
    assert (np.isnan(costs).all(axis=1) == (np.arange(len(X)) // lost == 8 // lost)).all()
    assert (stream.D == good[2].D).all()
    assert (np.delete(X, slice(8, 8 + lost), axis=0) == good[0]).all()
    np.testing.assert_array_equal(X[8], problem.X[8])
    assert (Z[8] == 0).all()


def test_rejected_samples_add_up(problem):
    problem.stream = Algorithm2State(problem.stream.D * np.nan, problem.stream.last_D, rejected=3)
    X, _, stream, _ = problem.run()
    assert stream.rejected == 3 + len(X)
    assert (X == problem.X).all()


@pytest.mark.parametrize("kernel", [RBF(2.0), Poly(2, 1.0), Poly(1, 0.0), Poly(3, 0.0)])
def test_a_singular_kernel_matrix_is_no_obstacle(kernel, problem):
    """Equal points and no ridge."""
    problem.stream = Algorithm2State.start(np.repeat(problem.stream.D[:2], 5, axis=0))
    problem.settings = {"rbf": Setting(kernel, 0.0)}
    X, _, stream, _ = problem.run()
    assert np.isfinite(X).all()
    assert np.isfinite(stream.D).all()
    assert np.abs(X).max() < 1e3


@pytest.mark.parametrize("kernel", [RBF(1.0), Poly(2, 0.0)])
def test_without_curvature_nothing_moves(kernel, problem):
    """Samples so far from D that the kernel is 0, or a kernel that is 0 at the origin."""
    D = problem.stream.D
    problem.stream = Algorithm2State.start(D + 1e6 if isinstance(kernel, RBF) else 0 * D)
    problem.X = np.where(problem.observed, problem.X if isinstance(kernel, RBF) else 0, 0)
    problem.settings = {"rbf": Setting(kernel, 1e-3)}
    X, Z, stream, _ = problem.run()
    assert (X == problem.X).all()
    assert (Z == 0).all()
    assert (stream.D == problem.stream.D).all()
    assert stream.rejected == 0


def test_rbf_does_not_depend_on_the_origin(problem):
    """Far from zero the digits of distances would be lost."""
    near = problem.run()[0]
    problem.X = np.where(problem.observed, problem.X, 0) + 1e6
    problem.stream = Algorithm2State.start(problem.stream.D + 1e6)
    np.testing.assert_allclose(problem.run()[0] - 1e6, near, atol=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_rbf_does_not_depend_on_the_unit(unit, problem):
    """But for the tolerance."""
    expected = problem.run(tol=0)[0]
    setting = problem.settings["rbf"]
    problem.X = problem.X * unit
    problem.stream = Algorithm2State.start(problem.stream.D * unit)
    problem.settings = {"rbf": Setting(RBF(setting.kernel.sigma * unit), setting.beta)}
    np.testing.assert_allclose(problem.run(tol=0)[0] / unit, expected, atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_costs_are_the_objective_of_each_sample_with_the_dictionary_of_its_moment(kernel, problem):
    setting = problem.settings[kernel]
    whole = problem.run(kernel)
    before = problem.stream

    for i in range(3):
        row = slice(i, i + 1)
        basis = setting.basis(before.D)
        Z = codes(whole.X[row], basis)
        size = setting.alpha / 2 * np.trace(basis.gram[0])
        assert whole.costs[i, 0] == pytest.approx(objective(whole.X[row], Z, basis) - size)
        assert whole.costs[i, 1] == pytest.approx(size)
        args = problem.X[row], problem.observed[row], problem.Z[row], before, setting
        before = paper_pass(*args).state


def test_an_empty_table_is_a_pass_too(problem):
    problem.X, problem.observed, problem.Z = problem.X[:0], problem.observed[:0], problem.Z[:0]
    X, Z, stream, _ = problem.run()
    assert X.shape == problem.X.shape
    assert Z.shape == problem.Z.shape
    assert (stream.D == problem.stream.D).all()


def test_passes_lower_the_error(curved):
    X = np.where(curved.observed, curved.truth, 0)
    kernel = RBF().resolve(X, BANDWIDTH)
    stream = Algorithm2State.start(np.random.default_rng(0).standard_normal((30, X.shape[1])))
    Z = np.zeros((len(X), 30))
    start = np.linalg.norm(X - curved.truth)
    for beta in falling_betas(10):
        X, Z, stream, _ = paper_pass(X, curved.observed, Z, stream.restart(), Setting(kernel, beta))
    assert np.linalg.norm(X - curved.truth) < 0.5 * start


def test_restart_drops_the_momentum_only(problem):
    stream = problem.run()[2]
    again = stream.restart()
    assert again.D is stream.D
    assert (stream.last_D != 0).any()
    assert (again.last_D == 0).all()


def test_other_kernels_are_refused(problem):

    class Strange(Kernel):
        bind = diag = diag_gradient = metric = dictionary_curvature = sample_curvature = None

    problem.settings = {"rbf": Setting(Strange(), 1e-3)}
    with pytest.raises(TypeError, match="kernels RBF and Poly"):
        problem.run()
    problem.settings = {"rbf": Setting(RBF(), 1e-3)}
    with pytest.raises(ValueError, match="no sigma yet"):
        problem.run()
