"""Estimators that experiments name, made from their settings."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from hirank import KFMC, OnlineKFMC
from hirank._typing import Array
from hirank.baselines import DLSR, GROUSE, LRF, NLMC, NNM, VMC, OnlineLRF, SoftImpute
from reproduction.cells import Method
from reproduction.published import Algorithm1, Formula, OutOfSampleKFMC, OutOfSampleLRF


class Interpolation:
    """Straight lines between observed entries of each feature, in the order of the rows."""

    def fit_transform(self, X: Array) -> Array:
        """X, n x m, with NaN where nothing is known; beyond the ends, the nearest entry."""
        filled, rows = X.copy(), np.arange(len(X))
        for column in filled.T:
            known = ~np.isnan(column)
            column[:] = np.interp(rows, rows[known], column[known]) if known.any() else 0.0
        return filled


class LastValue:
    """The last observed entry of each feature: all that a stream in order gives away by itself."""

    def fit_transform(self, X: Array) -> Array:
        """X, n x m, with NaN where nothing is known; 0 before the first entry."""
        rows = np.arange(len(X))[:, None]
        last = np.maximum.accumulate(np.where(np.isnan(X), -1, rows), axis=0)
        found = np.take_along_axis(X, np.maximum(last, 0), axis=0)
        return np.where(last < 0, 0.0, found)


ESTIMATORS: dict[str, Callable[..., Any]] = {
    "KFMC": KFMC,
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


def make(method: Method, seed: int, **more: Any) -> Any:
    """The estimator of a method; `more` settings count over its own."""
    settings = {**method.settings, **more}
    kind = ESTIMATORS[method.estimator]
    if "random_state" in signature(kind).parameters:
        settings.setdefault("random_state", seed)
    return kind(**settings)
