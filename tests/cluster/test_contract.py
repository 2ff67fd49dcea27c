"""scikit-learn's own checks, with no expected failure."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hirank.cluster import SSC


# The array API check needs an environment variable that must be set before SciPy is imported;
# scikit-learn skips it, and says so in a warning.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([SSC()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([SSC(affine=False)])
def test_scikit_learn_with_linear_subspaces(estimator, check):
    check(estimator)
