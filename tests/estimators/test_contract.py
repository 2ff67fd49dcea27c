"""scikit-learn's own checks of estimators, with no expected failure."""

import pytest
from helpers.estimators import FastImputer
from sklearn.utils.estimator_checks import parametrize_with_checks

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC

pytestmark = [
    # The array API check needs an environment variable that must be set before SciPy is imported;
    # scikit-learn skips it, with a warning.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    pytest.mark.filterwarnings("ignore::hirank.exceptions.FewEntriesWarning"),
]

ONE_OF_EACH = [FastImputer(max_iter=2), KFMC(max_iter=10), OnlineImputer(), OnlineKFMC()]
OTHERS = [
    Imputer(max_iter=5, n_init=1),
    KFMC(max_iter=20, solver="newton"),
    KFMC(max_iter=20, kernel="poly"),
    KFMC(max_iter=20, kernel="poly", solver="newton"),
    OnlineImputer(kernel="poly"),
    OnlineKFMC(kernel="poly"),
]


@parametrize_with_checks(ONE_OF_EACH)
def test_estimators_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_other_kernels_and_solvers_keep_it_too(estimator, check):
    check(estimator)
