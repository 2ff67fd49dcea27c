"""scikit-learn's own checks, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hirank import KFMC, OnlineKFMC

KERNELS, SOLVERS = ("rbf", "poly"), ("lbfgs", "newton")
ESTIMATORS = [
    KFMC(max_iter=5, n_starts=1),
    *(
        KFMC(kernel=k, bandwidth="path", mix=False, max_iter=20, solver=s)
        for k in KERNELS
        for s in SOLVERS
    ),
    *(OnlineKFMC(kernel=k, mode=m) for k in ("rbf", "poly") for m in ("window", "paper")),
]


# The array API check needs an environment variable that must be set before SciPy is imported;
# scikit-learn skips it, and says so in a warning.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Only [0-9]+ entries are observed:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)
