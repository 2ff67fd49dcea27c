"""Online low-rank factorization: least squares that never looks back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.online import BatchModel, OnlineBaseline
from hirank.models.als import start_subspace
from hirank.models.low_rank import Subspace

MIN_RIDGE = 1e-8  # so that matrices keep their digits


@dataclass(eq=False, repr=False)
class OnlineLRF(OnlineBaseline["Regression"]):
    """Imputation of streams by a linear factorization with recursive least squares.

    X ~ Z D: the codes Z of rows by ridge regression on their observed entries; for every feature,
    the column of D by least squares on all rows seen so far, from sums in which old rows may fade.
    The sums include the uncertainty of the codes, and codes are kept at unit covariance, so that
    the ridge means the same throughout. Related to PETRELS (Chi, Eldar and Calderbank 2013) and
    to the paper's OL-LRF.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        At most the features. ``"auto"`` takes the rank that :class:`hirank.baselines.LRF` selects
        for the first rows.
    ridge : float or "auto", default="auto"
        Weight of the size of the codes: the variance of noise, in units of the scaled features.
        ``"auto"`` holds out a few entries of the first rows and takes the variance that the first
        factors leave unexplained there, or that of recent misfits, if that is larger.
    n_warmup : int, default=200
        Rows that a model is started from; ``partial_fit`` holds rows until then.
    n_passes : int, default=20
        Passes of ``fit`` over its table, in random order, at most.
    tol : float, default=1e-4
        Passes end when the misfit changes by less than this fraction in one.
    memory : float, optional
        Rows after which ``partial_fit`` forgets (to 1/e). By default nothing is forgotten.
    random_state : int, RandomState or None, default=None
        Determines the order of the passes.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    components_ : array, rank x n_features_kept
        D, in the units of the data.
    ridge_ : float
    n_samples_seen_ : int
        Rows learned from, counted once in each pass.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`, after ``fit``. The objective is the squared misfit of all
        observed entries as they came in the last pass.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import OnlineLRF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = OnlineLRF(rank=2, ridge=1e-6, scale=False, random_state=0)
    >>> filled = model.partial_fit(X_missing[:300]).partial_fit_transform(X_missing[300:])
    >>> bool(np.abs(filled - X[300:]).mean() < 0.01)
    True
    """

    rank: int | str = "auto"
    ridge: float | str = "auto"

    def _start(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> Regression:
        D, noise = start_subspace(X, observed, self.rank, rng)
        ridge = max(noise, MIN_RIDGE) if self.ridge == "auto" else float(self.ridge)
        return Regression.start(D, ridge, adapt=self.ridge == "auto")

    @property
    def components_(self) -> Array:
        return self._in_data_units(self._model.D)

    @property
    def ridge_(self) -> float:
        return self._model.ridge


@dataclass(frozen=True)
class Regression(BatchModel):
    """X ~ Z D, and the sums over rows from which D follows."""

    D: Array  # r x m
    min_ridge: float  # the noise never counts for less
    noise: float  # running mean of squared misfits
    adapt: bool  # whether the ridge follows the noise
    grams: Array  # sums of z z' over rows with feature j observed, m x r x r
    products: Array  # sums of x_j z, m x r
    second: Array  # sum of z z' over all rows, r x r
    count: float  # rows in that
    batch_size: ClassVar[int] = 10

    @classmethod
    def start(cls, D: Array, ridge: float, *, adapt: bool) -> Self:
        """Return a model that has seen no rows."""
        r, m = D.shape
        sums = np.zeros((m, r, r)), np.zeros((m, r)), np.zeros((r, r))
        return cls(D, ridge, 0.0, adapt, *sums, 0.0)

    @property
    def ridge(self) -> float:
        return max(self.min_ridge, self.noise) if self.adapt else self.min_ridge

    def complete(self, X: Array, observed: BoolArray) -> Array:
        return Subspace(self.D, self.ridge).complete(X, observed)

    def learn_batch(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        r, m = self.D.shape
        fading = keep ** np.arange(len(X) - 1, -1, -1.0)
        seen = np.where(observed[:, None, :], self.D, 0)
        covariance = np.linalg.inv(seen @ self.D.T / self.ridge + np.eye(r))
        Z = (covariance @ (seen @ X[:, :, None]))[:, :, 0] / self.ridge
        misfit = float(np.sum(np.where(observed, X - Z @ self.D, 0) ** 2))
        moments = (Z[:, :, None] * Z[:, None, :] + covariance) * fading[:, None, None]
        past = keep ** len(X)
        new = (observed.T.astype(np.float64) @ moments.reshape(len(X), -1)).reshape(m, r, r)
        grams = past * self.grams + new
        products = past * self.products + X.T @ (Z * fading[:, None])
        second = past * self.second + moments.sum(axis=0)
        count = past * self.count + float(fading.sum())
        share = float(fading.sum()) / count
        noise = (1 - share) * self.noise + share * misfit / max(1, int(observed.sum()))
        D = np.linalg.solve(grams + self.ridge * np.eye(r), products[:, :, None])[:, :, 0].T
        return replace(
            self, D=D, noise=noise, grams=grams, products=products, second=second, count=count
        )._unit_codes(), misfit

    def _unit_codes(self) -> Self:
        """Return the same model with codes of unit covariance."""
        r = len(self.D)
        L = np.linalg.cholesky(self.second / self.count + 1e-9 * np.eye(r))
        inverse = np.linalg.inv(L)
        return replace(
            self,
            D=L.T @ self.D,
            grams=inverse @ self.grams @ inverse.T,
            products=self.products @ inverse.T,
            second=inverse @ self.second @ inverse.T,
        )

    def rescale(self, ratio: Array) -> Self:
        return replace(self, D=self.D * ratio, products=self.products * ratio[:, None])
