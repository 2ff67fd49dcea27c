"""Estimators with settings that make tests fast, and tables for them."""

from typing import Any

import numpy as np

from hirank import KFMC, Imputer, OnlineImputer, OnlineKFMC
from hirank.core.masking import MaskingConfig
from hirank.models.em import EMConfig
from hirank.selection.config import DictionaryConfig, SchattenConfig, SearchConfig

ONLINE = {"n_warmup": 40, "batch_size": 20, "max_iter": 5, "random_state": 0}
"""Of both streaming estimators."""
WINDOW = {"window": 60, "time": None, **ONLINE}
FAST = {"max_iter": 5, "random_state": 0}
FAST_SEARCH = SearchConfig(
    masking=MaskingConfig(max_folds=2),
    mixture=EMConfig(max_components=4),
    schatten=SchattenConfig(bandwidths=(3.0,), smoothing=1e-2, n_models=1),
    dictionary=DictionaryConfig(max_points=15, n_models=1),
    n_models=1,
)
"""Two folds, few Gaussians and one small dictionary: where accuracy is not the point."""


class FastImputer(Imputer):
    """Imputer with a fast search."""

    _config = FAST_SEARCH


def fast_imputer(**changes: Any) -> FastImputer:
    return FastImputer(**{**FAST, **changes})


def fast_kfmc(n_components: int | str = 30, **changes: Any) -> KFMC:
    return KFMC(n_components, **{"max_iter": 30, "random_state": 0, **changes})


def fast_online(kind: type, **changes: Any) -> OnlineImputer | OnlineKFMC:
    settings = WINDOW if kind is OnlineImputer else ONLINE
    return kind(**{**settings, **changes})


def remove_entries(rng: np.random.Generator, X: np.ndarray, share: float = 0.2) -> np.ndarray:
    """Return X with a share of its entries missing; each row keeps one."""
    observed = rng.random(X.shape) >= share
    observed[:, 0] |= ~observed.any(axis=1)
    return np.where(observed, X, np.nan)
