import numpy as np
import pytest

from hirank.core.threads import Workers
from hirank.datasets import polynomial_manifolds
from hirank.kernels import RBF, Poly
from hirank.metrics import missing_relative_error
from hirank.models.fit_dictionary import DictionaryProblem, fit_dictionary
from hirank.models.out_of_sample import BLOCK, complete_samples, paper_samples
from hirank.optim.path import SolverConfig, default_path, rescale_ridges


@pytest.mark.parametrize(("kernel", "relaxation"), [("rbf", 1.1), ("poly", 1.0)])
def test_algorithm_3_matches_the_authors_code(kernel, relaxation, reference):
    observed = reference["observed"]
    X = np.where(observed, reference["X"], 0)
    basis = reference.settings[kernel].basis(reference["D0"])
    filled, Z = paper_samples(X, observed, basis, relaxation=relaxation)
    assert np.abs(filled - reference[f"ose_{kernel}/X"]).max() < 1e-5
    assert np.abs(Z - reference[f"ose_{kernel}/Z"]).max() < 1e-5


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


def complete(fitted, rows, threads=1):
    D, settings, truth, observed = fitted
    with Workers(threads) as workers:
        return complete_samples(
            np.where(observed, truth, 0)[rows], observed[rows], D, settings, workers
        )


def test_new_samples_are_recovered(fitted):
    _, _, truth, observed = fitted
    filled = complete(fitted, slice(None))
    assert missing_relative_error(filled, truth, observed) < 0.15
    assert (filled[observed] == truth[observed]).all()


def test_a_sample_does_not_depend_on_its_neighbors(fitted):
    together = complete(fitted, slice(None))
    assert len(together) > BLOCK
    for rows in (slice(5, 6), slice(3, 50), slice(390, 400), np.arange(400)[::-1]):
        np.testing.assert_allclose(complete(fitted, rows), together[rows], rtol=0, atol=1e-9)


def test_threads_do_not_change_the_result(fitted):
    assert (complete(fitted, slice(None)) == complete(fitted, slice(None), threads=3)).all()


def test_a_table_without_rows_is_returned(fitted):
    assert complete(fitted, slice(0, 0)).shape == (0, 12)
