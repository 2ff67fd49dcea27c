"""scikit-learn estimators: plumbing around the solvers, no mathematics."""

from hirank.estimators.functional import complete
from hirank.estimators.kfmc import KFMC
from hirank.estimators.online import OnlineKFMC
from hirank.estimators.saving import load

__all__ = ["KFMC", "OnlineKFMC", "complete", "load"]
