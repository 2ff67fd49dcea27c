"""Imputers of scikit-learn that the applications are compared with."""

from warnings import simplefilter

from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import Ridge

simplefilter("ignore", ConvergenceWarning)  # of 30 rounds
# Ridge() instead of the default BayesianRidge(), which is worse (docs/applications.md).
IMPUTERS = {
    "column mean": SimpleImputer(),
    "k nearest neighbors": KNNImputer(),
    "iterative ridge": IterativeImputer(Ridge(), max_iter=30, tol=1e-2, random_state=0),
}
