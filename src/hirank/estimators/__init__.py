"""scikit-learn estimators: parameters, checks and output around the models; no mathematics."""

from hirank.estimators.functional import complete
from hirank.estimators.imputer import Imputer
from hirank.estimators.kfmc import KFMC
from hirank.estimators.online_imputer import OnlineImputer
from hirank.estimators.online_kfmc import OnlineKFMC
from hirank.estimators.saving import load

__all__ = ["KFMC", "Imputer", "OnlineImputer", "OnlineKFMC", "complete", "load"]
