"""GROUSE: a subspace that turns towards every row."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.online import OnlineBaseline
from hirank.models.als import start_subspace

RIDGE = 1e-4  # of the start: so small that the rank alone guards against noise, as later


@dataclass(eq=False, repr=False)
class GROUSE(OnlineBaseline["TurningSubspace"]):
    """Imputation of streams by a linear subspace that is tracked on the Grassmannian.

    Grassmannian rank-one update subspace estimation (Balzano, Nowak and Recht 2010): for every row
    the subspace turns along the geodesic that reduces the misfit of the row's observed entries.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Dimension of the subspace, at most the features. ``"auto"`` takes the rank that
        :class:`hirank.baselines.LRF` selects for the first rows with next to no ridge, but at most
        half of the entries that a row usually has: codes are not regularized.
    step : float, default=0.1
        Share of the greedy angle, at which the subspace would fit the row. 1 is fastest; less
        averages over rows, as noise needs.
    cut : float, default=0.03
        Directions of which the observed entries of a row contain less than this share are left out
        of its codes; 0 is plain GROUSE.
    n_warmup : int, default=200
        Rows that a model is started from; ``partial_fit`` holds rows until then.
    n_passes : int, default=20
        Passes of ``fit`` over its table, in random order, at most.
    tol : float, default=1e-4
        Passes end when the misfit changes by less than this fraction in one.
    memory : float, optional
        Rows after which ``partial_fit`` forgets the units of the features (to 1/e). By default they
        stay. How fast the subspace forgets is up to `step`; with ``scale=False`` there is nothing
        else to forget.
    random_state : int, RandomState or None, default=None
        Determines the order of the passes.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    components_ : array, rank x n_features_kept
        A basis of the subspace, in the units of the data, without the mean.
    n_samples_seen_ : int
        Rows learned from, counted once in each pass.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`, after ``fit``. The objective is the squared misfit of all
        observed entries as they came in the last pass.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import GROUSE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = GROUSE(rank=2, scale=False, random_state=0).partial_fit(X_missing[:300])
    >>> filled = model.partial_fit_transform(X_missing[300:])
    >>> bool(np.abs(filled - X[300:]).mean() < 0.01)
    True
    """

    rank: int | str = "auto"
    step: float = 0.1
    _: KW_ONLY
    cut: float = 0.03

    def _start(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> TurningSubspace:
        V, _ = start_subspace(X, observed, self.rank, rng, RIDGE)
        if self.rank == "auto":
            V = V[: max(1, int(np.median(observed.sum(axis=1))) // 2)]
        return TurningSubspace(np.linalg.qr(V.T)[0], self.step, self.cut)

    @property
    def components_(self) -> Array:
        return self._in_data_units(self._model.U.T)


@dataclass(frozen=True)
class TurningSubspace:
    """The span of the columns of U."""

    U: Array  # m x r, orthonormal
    step: float
    cut: float

    def complete(self, X: Array, observed: BoolArray) -> Array:
        codes = np.array([_codes(self.U, x, o, self.cut) for x, o in zip(X, observed, strict=True)])
        return np.where(observed, X, codes @ self.U.T)

    def learn(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        """Take a geodesic step for each row; `keep` is not used."""
        U, misfit = self.U.copy(), 0.0
        for x, o in zip(X, observed, strict=True):
            w = _codes(U, x, o, self.cut)
            projection = U @ w
            residual = np.where(o, x - projection, 0)
            p, r = np.linalg.norm(projection), np.linalg.norm(residual)
            misfit += float(r**2)
            if min(p, r) <= 1e-14 * np.linalg.norm(x):
                continue
            angle = self.step * np.arctan(r / p)
            turn = (np.cos(angle) - 1) * projection / p + np.sin(angle) * residual / r
            U += np.outer(turn, w / p)
        # Rounding of thousands of turns adds up.
        return replace(self, U=np.linalg.qr(U)[0]), misfit

    def rescale(self, ratio: Array) -> Self:
        return replace(self, U=np.linalg.qr(self.U * ratio[:, None])[0])


def _codes(U: Array, x: Array, observed: BoolArray, cut: float) -> Array:
    """Return least squares codes, r, of the observed entries of x, m."""
    rcond = max(cut, 1e-10)
    return np.linalg.lstsq(U[observed], x[observed], rcond=rcond)[0]
