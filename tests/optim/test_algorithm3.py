import numpy as np
import pytest

from hirank.core.bounds import Bounds
from hirank.core.objective import sample_gradient
from hirank.kernels import RBF, Poly
from hirank.optim.algorithm2 import Algorithm2State, paper_pass
from hirank.optim.algorithm3 import Algorithm3, Algorithm3Config, run_algorithm3
from hirank.optim.path import Setting

KERNELS = ["rbf", "poly"]
PUBLISHED = {"rbf": 1.1, "poly": 1.0}
"""The relaxation of the authors' code, which leaves it out with the polynomial kernel."""


@pytest.fixture
def problem(reference):
    """Return what Algorithm 3 takes by kernel: samples, observed entries and dictionary."""
    observed = reference["observed"]
    X = np.where(observed, reference["X"], 0)
    return lambda kernel: (X, observed, reference.settings[kernel].basis(reference["D0"]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_algorithm_3_matches_the_authors_code(kernel, problem, reference):
    """The differences are 2e-14 and 1e-12 in X; Z is that of the point before the last step."""
    config = Algorithm3Config(relaxation=PUBLISHED[kernel], max_iter=30, tol_change=1e-5)

    end = run_algorithm3(*problem(kernel), config)

    assert np.abs(end.result() - reference[f"ose_{kernel}/X"]).max() < 1e-9
    assert np.abs(end.Z - reference[f"ose_{kernel}/Z"]).max() < 1e-9


def test_relaxation_changes_the_steps_and_not_where_they_end(problem):
    """Where steps depend on it they end within 1e-9; 40 samples."""
    printed, published = (
        run_algorithm3(*problem("poly"), Algorithm3Config(relaxation=tau, max_iter=3)).result()
        for tau in (1.1, 1.0)
    )
    ends = [
        run_algorithm3(*problem("poly"), Algorithm3Config(relaxation=tau, max_iter=2000)).result()
        for tau in (1.1, 1.0)
    ]

    assert np.abs(printed - published).max() > 1e-3
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("momentum", "relaxation"), [(0.5, 1.1), (0.3, 1.4)])
def test_it_is_algorithm_2_without_its_step_of_the_dictionary(
    kernel, momentum, relaxation, problem, reference
):
    X, observed, basis = problem(kernel)
    config = Algorithm3Config(momentum, relaxation, max_iter=50, tol_change=1e-5)
    damping = {"momentum": momentum, "relaxation": relaxation}

    end = run_algorithm3(X, observed, basis, config)

    for i in (0, 7, 39):
        row, start = slice(i, i + 1), Algorithm2State.start(basis.D)
        Z = np.zeros((1, len(basis.D)))
        setting = reference.settings[kernel]
        one = paper_pass(X[row], observed[row], Z, start, setting, max_inner=50, **damping)
        np.testing.assert_allclose(end.result()[row], one.X, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_converged_samples_are_stationary_points(kernel, problem):
    X, observed, basis = problem(kernel)

    end = run_algorithm3(X, observed, basis, Algorithm3Config(max_iter=2000)).result()

    before, after = (np.abs(np.where(observed, 0, sample_gradient(x, basis)[1])) for x in (X, end))
    assert after.max() < 1e-7 * before.max()
    assert (sample_gradient(end, basis)[0] <= sample_gradient(X, basis)[0]).all()
    assert (end[observed] == X[observed]).all()


def test_a_sample_ends_when_its_part_of_the_objective_has_stalled(problem):
    X, observed, basis = problem("rbf")

    ends = [
        run_algorithm3(X, observed, basis, Algorithm3Config(max_iter=2000, tol=tol)).result()
        for tol in (0.1, 1e-6, 0.0)
    ]

    errors = [np.abs(end - ends[-1]).max() for end in ends[:2]]
    assert errors[1] < 1e-2 * errors[0]


def test_the_end_of_a_sample_does_not_depend_on_others(problem):
    X, observed, basis = problem("rbf")
    config = Algorithm3Config(max_iter=300, tol=1e-2)

    together = run_algorithm3(X, observed, basis, config).result()

    for i in (3, 20):
        alone = run_algorithm3(X[[i]], observed[[i]], basis, config).result()
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_steps_are_projected_onto_the_bounds(kernel, problem):
    X, observed, basis = problem(kernel)
    bounds = Bounds(np.full(X.shape[1], -0.2), np.full(X.shape[1], 0.3))
    box = bounds.make_box(observed, X.dtype)

    end = run_algorithm3(X, observed, basis, Algorithm3Config(max_iter=2000), box).result()

    assert (end[~observed] >= -0.2).all()
    assert (end[~observed] <= 0.3).all()
    assert (end[observed] == X[observed]).all()
    gradient = np.where(observed, 0, sample_gradient(end, basis)[1])
    assert np.abs(np.where(box.held(end, gradient), 0, gradient)).max() < 1e-6  # no descent is left
    assert box.held(end, gradient).any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_sample_that_diverges_returns_to_its_best_point(kernel, problem):
    X, observed, basis = problem(kernel)
    config = Algorithm3Config(momentum=0.99, relaxation=0.05, max_iter=500)

    end = run_algorithm3(X, observed, basis, config)

    assert (end.result() != end.X).any()
    assert np.isfinite(end.result()).all()
    assert (sample_gradient(end.result(), basis)[0] <= sample_gradient(X, basis)[0]).all()


@pytest.mark.parametrize("kernel", [RBF(1.0), Poly(2, 0.0)], ids=str)
def test_samples_without_curvature_stay(kernel):
    """They are so far from D that the kernel is 0, or it is 0 at the origin."""
    D = np.full((3, 2), 1e6) if isinstance(kernel, RBF) else np.ones((3, 2))
    X, observed = np.zeros((1, 2)), np.array([[True, False]])

    end = run_algorithm3(X, observed, Setting(kernel, 1e-3).basis(D), Algorithm3Config())

    assert (end.result() == 0).all()


def test_a_sample_that_overflows_does_not_end_the_others(problem):
    X, observed, basis = problem("poly")
    far, seen = np.vstack([X, np.full((1, X.shape[1]), 1e200)]), np.vstack([observed, observed[:1]])
    config = Algorithm3Config(max_iter=100, tol_change=1e-8)

    end = run_algorithm3(far, seen, basis, config)

    expected = run_algorithm3(X, observed, basis, config).result()
    np.testing.assert_allclose(end.result()[:-1], expected, rtol=0, atol=1e-8)


def test_a_stack_of_blocks_is_solved_as_its_blocks_are(problem):
    X, observed, basis = problem("rbf")
    solver = Algorithm3(observed, basis, Algorithm3Config())
    stacked = Algorithm3(observed.reshape(2, 20, -1), basis, Algorithm3Config())
    one, two = solver.init(X), stacked.init(X.reshape(2, 20, -1))
    for _ in range(5):
        one, two = solver.step(one), stacked.step(two)
    np.testing.assert_allclose(two.X.reshape(X.shape), one.X, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        *({"momentum": 1.0}, {"momentum": -0.1}, {"relaxation": 0.0}, {"max_iter": 0}),
        *({"max_iter": 10**6}, {"tol": -1.0}, {"tol_change": -1.0}),
    ],
    ids=str,
)
def test_a_config_that_cannot_be_used_is_rejected(change):
    Algorithm3Config().check()
    with pytest.raises(ValueError, match="must be from"):
        Algorithm3Config(**change).check()
