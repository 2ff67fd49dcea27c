"""Scaled tables with a search over them, for tests of the selection."""

from dataclasses import replace
from typing import Any

import numpy as np

from hirank.core.masking import MaskingConfig, make_folds
from hirank.core.threads import Workers
from hirank.models.em import EMConfig
from hirank.optim.path import SolverConfig
from hirank.optim.trace import Monitor
from hirank.selection.config import DictionaryConfig, SchattenConfig, SearchConfig
from hirank.selection.search import search
from hirank.selection.trial import SearchData, Selected

CONFIG = SearchConfig(
    masking=MaskingConfig(max_folds=2),
    mixture=EMConfig(max_components=8),
    schatten=SchattenConfig(bandwidths=(3.0,), smoothing=1e-3),
)
"""What is tested holds for two folds as for five."""
SMALL = SearchConfig(
    masking=CONFIG.masking,
    mixture=EMConfig(max_components=4),
    schatten=SchattenConfig(bandwidths=(3.0,), smoothing=1e-2, n_models=1),
    dictionary=DictionaryConfig(max_points=15, n_models=1),
)
"""One small dictionary, where accuracy is not the point."""


def solver(max_iter: int = 5) -> SolverConfig:
    return SolverConfig(max_iter=max_iter, tol=1e-3)


def run_search(
    X: np.ndarray,
    observed: np.ndarray,
    config: SearchConfig = SMALL,
    *,
    max_iter: int = 5,
    monitor: Monitor | None = None,
    seed: int = 0,
    **settings: Any,
) -> Selected:
    return search(
        np.where(observed, X, np.nan),
        observed,
        config=config,
        solver=solver(max_iter),
        monitor=monitor or Monitor(),
        rng=np.random.default_rng(seed),
        **settings,
    )


def make_data(
    X: np.ndarray,
    observed: np.ndarray,
    config: SearchConfig = SMALL,
    *,
    kind: type[SearchData] = SearchData,
    monitor: Monitor | None = None,
    max_iter: int = 5,
) -> SearchData:
    """Return what a search compares its candidates on."""
    folds = make_folds(observed, np.random.default_rng(1), config=config.masking)
    return kind(
        X=np.where(observed, X, 0),
        observed=observed,
        folds=folds,
        judged=sum(folds, np.zeros(observed.shape, bool)),
        unlike=0.0,
        means=np.zeros(X.shape[1]),
        spread=np.ones(X.shape[1]),
        config=config,
        solver=solver(max_iter),
        n_init=None,
        bounds=None,
        workers=Workers(1),
        monitor=monitor or Monitor(),
        rng=np.random.default_rng(0),
    )


def missing_error(filled: np.ndarray, X: np.ndarray, observed: np.ndarray) -> float:
    return float(np.abs(filled - X)[~observed].mean())


def with_other_values(data: SearchData, fold: int = 0) -> SearchData:
    """Return the same data with other values at the entries that one fold holds out."""
    X = np.where(data.folds[fold], 50.0 + data.X**2, data.X)
    return replace(data, X=X, monitor=Monitor(), rng=np.random.default_rng(0))
