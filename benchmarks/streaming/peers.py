"""The methods: start(first rows), then arrive(rows) -> completed rows, learning afterwards.

METHODS maps a name to its settings, each a function of the seed. Where a method has several,
run.py keeps the one that is best on each stream, by the truth: tuned in the peer's favor.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hirank import OnlineImputer, OnlineKFMC
from hirank.baselines import GROUSE, OnlineLRF


class Method(Protocol):
    def start(self, first: np.ndarray) -> None: ...
    def arrive(self, rows: np.ndarray) -> np.ndarray: ...


class RunningMean:
    def start(self, first: np.ndarray) -> None:
        self.n, self.sum = 0, 0
        self._learn(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        filled = np.where(np.isnan(rows), self.sum / np.maximum(self.n, 1), rows)
        self._learn(rows)
        return filled

    def _learn(self, rows: np.ndarray) -> None:
        self.n = self.n + (~np.isnan(rows)).sum(axis=0)
        self.sum = self.sum + np.nansum(rows, axis=0)


class LastValue:
    """The previous observed value of a feature, also from earlier rows of the same batch."""

    def start(self, first: np.ndarray) -> None:
        self.last = np.nan_to_num(np.nanmean(first, axis=0))
        self.arrive(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        filled = rows.copy()
        for row in filled:
            row[:] = self.last = np.where(np.isnan(row), self.last, row)
        return filled


class Windowed:
    """A scikit-learn imputer fitted on the last `window` rows after every `every` new ones.

    `bounded` keeps iterative imputation within the range of the window. Without it ridge
    extrapolates far on motion capture; with it, it misses what is new in gas drift.
    """

    def __init__(self, imputer: Any, every: int = 200, window: int = 600, bounded: bool = False):
        self.model = make_pipeline(StandardScaler(), imputer)
        self.every, self.window, self.bounded = every, window, bounded

    def start(self, first: np.ndarray) -> None:
        self.rows, self.new = first, 0
        self._fit()

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        guess = self.model[0].inverse_transform(self.model.transform(rows))
        filled = np.where(np.isnan(rows), guess, rows)
        self.rows = np.concatenate([self.rows, rows])[-self.window :]
        self.new += len(rows)
        if self.new >= self.every:
            self.new = 0
            self._fit()
        return filled

    def _fit(self) -> None:
        if self.bounded:
            scaled = self.model[0].fit_transform(self.rows)
            low, high = np.nanmin(scaled, axis=0), np.nanmax(scaled, axis=0)
            self.model[-1].set_params(min_value=low, max_value=np.maximum(high, low + 1e-9))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # ten rounds are its default
            self.model.fit(self.rows)


class Copula:
    """gcimpute's online Gaussian copula (Zhao, Landgrebe, Shekhtman and Udell 2022).

    Its `fit_transform` takes a whole stream; this makes the same public calls batch by batch.
    One EM step from the identity is its own start; more of them on the first rows serve it better.
    `live` updates marginals after every sample, its default, in place of every batch.
    """

    def __init__(self, step: float, window: int, seed: int, live: bool = False):
        from gcimpute.gaussian_copula import GaussianCopula

        self.step, self.seed = step, seed
        self.model = GaussianCopula(
            training_mode="minibatch-online",
            random_state=seed,
            const_stepsize=step,
            realtime_marginal=live,
            window_size=window,
        )

    def start(self, first: np.ndarray) -> None:
        np.random.seed(self.seed)  # noqa: NPY002  # gcimpute draws from the global generator
        self.center, self.scale = np.nanmean(first, axis=0), np.nanstd(first, axis=0)
        self.scale[self.scale == 0] = 1.0
        first = (first - self.center) / self.scale
        everything = np.arange(first.shape[1])
        self.model.fit_transform(first, n_train=len(first), continuous=everything)
        for _ in range(20):
            self.model.partial_fit(first, step_size=self.step)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        scaled = (rows - self.center) / self.scale
        filled = self.model.partial_fit_transform(scaled, step_size=self.step)
        return np.where(np.isnan(rows), filled * self.scale + self.center, rows)


class Hirank:
    """An estimator of hirank's own that learns by partial_fit."""

    def __init__(self, model: Any):
        self.model = model

    def start(self, first: np.ndarray) -> None:
        self.model.partial_fit(first)

    def arrive(self, rows: np.ndarray) -> np.ndarray:
        return self.model.partial_fit_transform(rows)


Settings = dict[str, Callable[[int], Method]]

METHODS: dict[str, Settings] = {
    "mean": {"": lambda seed: RunningMean()},
    "last value": {"": lambda seed: LastValue()},
    "GROUSE": {
        f"rank {r}, step {s:g}, cut {c:g}, memory {f}": (
            lambda seed, r=r, s=s, c=c, f=f: Hirank(
                GROUSE(r, s, cut=c, memory=f, random_state=seed)
            )
        )
        for r, s, c, f in product((1, 2, 5, 8), (1, 0.3, 0.05), (0, 0.3), (300, None))
    },
    "online factors": {
        f"rank {r}, ridge {v:g}, memory {f}": (
            lambda seed, r=r, v=v, f=f: Hirank(OnlineLRF(r, v, memory=f, random_state=seed))
        )
        for r, v, f in product((3, 10, 20), (0.001, 0.003, 0.01, 0.1), (20, 40, 75, 300, None))
    },
    # Fitting k-NN only stores rows, so it gets every batch.
    "k-NN": {
        f"k {k}": lambda seed, k=k: Windowed(KNNImputer(n_neighbors=k, weights="distance"), 50)
        for k in (3, 5, 10)
    },
    "iterative ridge": {
        label: lambda seed, b=b: Windowed(IterativeImputer(random_state=seed), bounded=b)
        for label, b in (("free", False), ("bounded", True))
    },
    "iterative trees": {
        "": lambda seed: Windowed(
            IterativeImputer(ExtraTreesRegressor(20, random_state=seed), max_iter=5)
        )
    },
    "gcimpute": {
        f"step {s:g}, window {w}": lambda seed, s=s, w=w: Copula(s, w, seed)
        for s, w in product((0.5, 0.3), (50, 100, 200, 500, 1000))
    },
    "gcimpute live": {
        f"step 0.5, window {w}": lambda seed, w=w: Copula(0.5, w, seed, live=True)
        for w in (100, 500)
    },
    "hirank": {"": lambda seed: Hirank(OnlineImputer(random_state=seed))},
    "OnlineKFMC": {"": lambda seed: Hirank(OnlineKFMC(60, random_state=seed))},
}
SLOW = ("iterative trees", "gcimpute live")  # minutes a stream: only if named
