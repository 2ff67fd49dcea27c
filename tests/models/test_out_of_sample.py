from dataclasses import replace

import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.datasets import polynomial_manifolds
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary
from hirank.models.out_of_sample import BLOCK, RowImputer, complete_by_algorithm3
from hirank.optim.algorithm3 import Algorithm3Config
from hirank.optim.path import SolverConfig, default_path, rescale_ridges
from hirank.optim.rows import RowRules


@pytest.fixture(scope="module", params=[RBF(), Poly()], ids=str)
def fitted(request):
    """A model of two curved surfaces, and 400 new rows of them with missing entries."""
    truth = polynomial_manifolds(
        300, 12, latent=2, degree=2, manifolds=2, shuffle=True, random_state=0
    )
    truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
    observed = np.random.default_rng(1).random(truth.shape) >= 0.3
    stages = default_path()
    known = np.where(observed, truth, 0)[:200]
    task = DictionaryProblem(known, observed[:200], 60, request.param, stages, SolverConfig())
    with Workers() as workers:
        result = fit_dictionary(task, workers, np.random.default_rng(0))
    settings = rescale_ridges(result.settings, stages, result.D)
    return result.D, settings, truth[200:], observed[200:]


@pytest.fixture(params=["path", "Algorithm 3"])
def complete(request, fitted):
    """Return a function that imputes some of the new rows, along the path or by Algorithm 3."""
    D, settings, truth, observed = fitted
    known = np.where(observed, truth, 0)
    # The last ridge of the path is too small for this algorithm, which has no other.
    basis = replace(settings[-1], beta=1e-3 * settings[-1].kernel.diag(D).mean()).basis(D)
    config = Algorithm3Config(max_iter=200, tol=1e-3)

    def run(rows, threads=1):
        with Workers(threads) as workers:
            if request.param == "path":
                return RowImputer(D, settings).complete(known[rows], observed[rows], workers)
            return complete_by_algorithm3(known[rows], observed[rows], basis, config, workers)

    return run


# The errors are .001 and .11 along the path, .21 and .18 by Algorithm 3: one stage, from zeros.
@pytest.mark.parametrize(
    ("complete", "limit"), [("path", 0.15), ("Algorithm 3", 0.25)], indirect=["complete"]
)
def test_new_samples_are_recovered(complete, limit, fitted):
    _, _, truth, observed = fitted
    filled = complete(slice(None))
    assert missing_relative_error(filled, truth, observed) < limit
    assert (filled[observed] == truth[observed]).all()


def test_a_sample_does_not_depend_on_its_neighbors(complete):
    together = complete(slice(None))
    assert len(together) > BLOCK
    for rows in (slice(5, 6), slice(3, 50), slice(390, 400), np.arange(400)[::-1]):
        np.testing.assert_allclose(complete(rows), together[rows], rtol=0, atol=1e-9)


def test_threads_do_not_change_the_result(complete):
    assert (complete(slice(None)) == complete(slice(None), threads=3)).all()


def test_a_table_without_rows_is_returned(complete):
    assert complete(slice(0, 0)).shape == (0, 12)


def test_rows_are_solved_to_a_small_part_of_the_noise_that_the_ridge_stands_for(fitted):
    D, settings, truth, observed = fitted
    unit = float(settings[2].kernel.diag(D).mean())
    rough = (*settings[:2], replace(settings[2], beta=1e-2 * unit))  # noise of a tenth
    imputer = RowImputer(D, rough)
    with Workers() as workers:
        filled = imputer.complete(np.where(observed, truth, 0), observed, workers)

    solved = filled.copy()
    result = imputer.solvers[-1].minimize(
        solved, observed, RowRules(30, 6, tolerance=1e-9, damping=0.03)
    )

    assert (result.evaluations > 1).any()
    # A tenth of the spread would be the noise. A few rows end later, in another place.
    moved = np.abs(solved - filled).max(axis=1) / imputer.spread
    assert np.quantile(moved, 0.95) < 0.01 * 0.1
