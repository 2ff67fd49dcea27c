"""The estimators of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank._typing import Array
from hirank.baselines import DLSR, GROUSE, LRF, NLMC, NNM, VMC, OnlineLRF, SoftImpute
from reproduction.cells import Method
from reproduction.published import Algorithm1, Formula, OutOfSampleKFMC, OutOfSampleLRF


class Interpolation:
    """Linear interpolation of each feature, in the order of the rows."""

    def fit_transform(self, X: Array) -> Array:
        """Impute X, n x m with NaN for missing entries; beyond the ends, by the nearest entry."""
        filled, rows = X.copy(), np.arange(len(X))
        for column in filled.T:
            observed = ~np.isnan(column)
            if observed.any():
                column[:] = np.interp(rows, rows[observed], column[observed])
            else:
                column[:] = 0.0
        return filled


class LastValue:
    """The last observed entry of each feature: the simplest method for a stream in order."""

    def fit_transform(self, X: Array) -> Array:
        """Impute X, n x m with NaN for missing entries; by 0 before the first entry."""
        rows = np.arange(len(X))[:, None]
        last = np.maximum.accumulate(np.where(np.isnan(X), -1, rows), axis=0)
        found = np.take_along_axis(X, np.maximum(last, 0), axis=0)
        return np.where(last < 0, 0.0, found)


ESTIMATORS: dict[str, Callable[..., Any]] = {
    "Imputer": Imputer,
    "KFMC": KFMC,
    "OnlineImputer": OnlineImputer,
    "OnlineKFMC": OnlineKFMC,
    "LRF": LRF,
    "NNM": NNM,
    "SoftImpute": SoftImpute,
    "VMC": VMC,
    "NLMC": NLMC,
    "OnlineLRF": OnlineLRF,
    "GROUSE": GROUSE,
    "DLSR": DLSR,
    "Algorithm 1": Algorithm1,
    "L-BFGS": Formula,
    "OSE-LRF": OutOfSampleLRF,
    "OSE-KFMC": OutOfSampleKFMC,
    "interpolation": Interpolation,
    "last value": LastValue,
    "mean": SimpleImputer,
}


def make_estimator(method: Method, seed: int, **more: Any) -> Any:
    """Return the estimator of a method; `more` settings override its own."""
    settings = {**method.settings, **more}
    kind = ESTIMATORS[method.estimator]
    if "random_state" in signature(kind).parameters:
        settings.setdefault("random_state", seed)
    return kind(**settings)
