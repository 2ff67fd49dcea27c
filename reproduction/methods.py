"""The estimators of the experiments."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from sklearn.impute import SimpleImputer

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank.baselines import (
    DLSR,
    GROUSE,
    LRF,
    NLMC,
    NNM,
    SFMC,
    VMC,
    GroupSparse,
    OnlineLRF,
    SoftImpute,
)
from reproduction.cells import Method
from reproduction.peers import Interpolation, LastValue, ShuffledOnlineKFMC
from reproduction.published import Algorithm1, Formula, OutOfSampleKFMC, OutOfSampleLRF

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
    "SFMC": SFMC,
    "GroupSparse": GroupSparse,
    "OnlineLRF": OnlineLRF,
    "GROUSE": GROUSE,
    "DLSR": DLSR,
    "Algorithm 1": Algorithm1,
    "L-BFGS": Formula,
    "OSE-LRF": OutOfSampleLRF,
    "OSE-KFMC": OutOfSampleKFMC,
    "interpolation": Interpolation,
    "last value": LastValue,
    "OnlineKFMC, shuffled": ShuffledOnlineKFMC,
    "mean": SimpleImputer,
}


def make_estimator(method: Method, seed: int, **more: Any) -> Any:
    """Return the estimator of a method; `more` settings override its own."""
    settings = {**method.settings, **more}
    kind = ESTIMATORS[method.estimator]
    if "random_state" in signature(kind).parameters:
        settings.setdefault("random_state", seed)
    return kind(**settings)
