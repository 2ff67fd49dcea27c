"""scikit-learn estimators: plumbing around the solvers, no mathematics."""

from hirank.estimators.kfmc import KFMC
from hirank.estimators.online import OnlineKFMC
from hirank.estimators.saving import load
from hirank.estimators.tables import complete

__all__ = ["KFMC", "OnlineKFMC", "complete", "load"]
