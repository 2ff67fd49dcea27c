"""Online dictionary learning with sparse codes."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Self

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.online import BatchModel, OnlineBaseline
from hirank.baselines.sfmc import FactorPath, start_atoms
from hirank.baselines.sparse_codes import (
    SparseRows,
    VanishedCodesError,
    count_atoms,
    improve_codes,
    lasso_codes,
    measure_unit,
    refit,
)
from hirank.optim.trace import Monitor

# Measured in docs/notes/baselines_sparse.md.
FADE = 5.0  # rows weigh with this power of their number: early ones were coded by a poor dictionary
FIRST_L1, HALF_LIFE = 0.15, 850  # l1 at the start of a stream, and the rows after which it halves
MIN_L1 = 1e-3  # the smallest l1 that is selected
CODE_STEPS = 150  # accelerated steps for the codes of a batch: as good as exact codes here
SWEEPS = 2  # times that each atom is updated after a batch
START_STEPS, START_TOL = 40, 3e-5  # for each l1 when the first rows are factorized
MIN_USE = 1e-3  # part of the mean use below which an atom is free for rows that do not fit
MIN_MISFIT = 0.1  # part of its size that a row must leave unexplained to become an atom


@dataclass(eq=False, repr=False)
class DLSR(OnlineBaseline["OnlineDictionary"]):
    """Imputation of streams by a few atoms per row, of a dictionary learned as rows arrive.

    Minimizes the sum over rows of 1/2 |x - z D|^2 + l1 |z|_1 on observed entries, over codes z and
    a dictionary D with atoms in the unit ball: OL-DLSR in the paper, online dictionary learning
    (Mairal et al. 2009) on incomplete rows. ``transform`` is its OSE-DLSR.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Atoms, at most the rows that a model is started from. ``"auto"`` takes three per feature.
    l1 : float or "auto", default="auto"
        Weight of the codes, in units of the root mean square of the scaled entries. ``"auto"``
        holds out a few entries of the first rows and takes the one that recovers them best.
    n_warmup : int, default=400
        Rows that a model is started from; ``partial_fit`` holds rows until then.
    n_passes : int, default=20
        Passes of ``fit`` over its table, in random order, at most.
    tol : float, default=1e-4
        Passes end when the misfit changes by less than this fraction in one.
    memory : float, optional
        Rows after which ``partial_fit`` forgets (to 1/e). By default nothing is forgotten, but
        early rows weigh less.
    random_state : int, RandomState or None, default=None
        Selects the rows that the atoms start from, and the order of the passes.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`, but without scaling by default: centered features turn linear
        subspaces into affine ones. Use ``scale=True`` if features lie far from 0.

    Attributes
    ----------
    dictionary_ : array, n_components x n_features_kept
        The atoms, in the units of the data; 0 for those that are not in use.
    l1_ : float
    n_samples_seen_ : int
        Rows learned from, counted once in each pass.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`, after ``fit``. The objective is the squared misfit of all
        observed entries as they came in the last pass.

    Notes
    -----
    The first rows are factorized as by :class:`hirank.baselines.SFMC`, which also finds how many
    atoms are of use; the others stay 0 until rows arrive that the dictionary cannot express. For
    each feature, the sums over the rows that have it of z z' and x z are kept (n_features x
    n_components^2 numbers); after each batch of 50 rows the atoms are updated in turn, each exactly
    within the unit ball. l1 is large at first and halves with every 850 rows until it has the value
    asked for. ``transform`` finds codes exactly, by least angle regression, and refits them by
    least squares on the atoms in use, free of the shrinkage of the l1 term.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import DLSR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = DLSR(6, n_warmup=100, random_state=0).partial_fit(X_missing[:300])
    >>> filled = model.partial_fit_transform(X_missing[300:])
    >>> bool(np.abs(filled - X[300:]).mean() < 0.01)
    True
    """

    n_components: int | str = "auto"
    l1: float | str = "auto"
    _: KW_ONLY
    n_warmup: int = 400
    scale: bool | str = False

    def _start(self, X: Array, observed: BoolArray, rng: np.random.Generator) -> OnlineDictionary:
        """Return a model from a sparse factorization of first rows, n x m, 0 where not observed.

        Atoms there have the size of rows in units of their entries; here they have size 1, and the
        same l1 is smaller by that factor.
        """
        l1, unit = None if self.l1 == "auto" else float(self.l1), measure_unit(X, observed)
        D = np.zeros((count_atoms(self.n_components, X.shape, 3), X.shape[1]))
        if not X.any():
            return OnlineDictionary.start(D, l1 or MIN_L1, unit)
        known, size = X / unit, float(np.sqrt(X.shape[1]))
        path = FactorPath(START_STEPS, START_TOL, Monitor(), start_atoms(known, len(D), rng))
        last = "auto" if l1 is None else l1 * size
        end, solution = path.fit(known, observed, last, rng)
        found = solution.state.D
        D[: len(found)] = found / np.linalg.norm(found, axis=1, keepdims=True)
        l1 = max(end / size, MIN_L1) if l1 is None else l1
        if not lasso_codes(X, observed, D, l1 * unit).any():
            raise VanishedCodesError(l1)
        return OnlineDictionary.start(D, l1, unit)

    @property
    def dictionary_(self) -> Array:
        return self._in_data_units(self._model.D)

    @property
    def l1_(self) -> float:
        return self._model.l1


@dataclass(frozen=True)
class OnlineDictionary(BatchModel):
    """A dictionary, and the sums over rows from which it follows."""

    D: Array  # r x m
    l1: float  # in units of `unit`
    unit: float
    grams: Array  # sums of z z' over rows with feature j observed, m x r x r
    products: Array  # sums of x_j z, m x r
    rows: int  # seen so far
    batch_size: ClassVar[int] = 50

    @classmethod
    def start(cls, D: Array, l1: float, unit: float) -> Self:
        """Return a model that has seen no rows."""
        r, m = D.shape
        return cls(D, l1, unit, np.zeros((m, r, r)), np.zeros((m, r)), 0)

    def complete(self, X: Array, observed: BoolArray) -> Array:
        return SparseRows(self.D, self.l1 * self.unit).complete(X, observed)

    def learn_batch(self, X: Array, observed: BoolArray, keep: float) -> tuple[Self, float]:
        r, m = self.D.shape
        l1 = max(self.l1, FIRST_L1 * 0.5 ** (self.rows / HALF_LIFE))
        used = self.D.any(axis=1)
        Z = np.zeros((len(X), r))
        Z[:, used] = improve_codes(
            X, observed, self.D[used], Z[:, used], l1 * self.unit, CODE_STEPS
        )
        misfit = float(np.sum((observed * (Z @ self.D) - X) ** 2))
        fading = keep ** np.arange(len(X) - 1, -1, -1.0)
        rows = self.rows + len(X)
        past = keep ** len(X) * (self.rows / rows) ** FADE
        moments = (Z[:, :, None] * Z[:, None, :]).reshape(len(X), -1)
        grams = past * self.grams + ((fading[:, None] * observed).T @ moments).reshape(m, r, r)
        products = past * self.products + X.T @ (Z * fading[:, None])
        D = improve_dictionary(self.D, grams, products)
        model = replace(self, D=D, grams=grams, products=products, rows=rows)
        return (model._replace_unused_atoms(X, observed) if l1 <= 2 * self.l1 else model), misfit

    def _replace_unused_atoms(self, X: Array, observed: BoolArray) -> Self:
        """Return the model with rows that it cannot express in place of unused atoms."""
        use = np.einsum("jkk->k", self.grams)
        free = np.flatnonzero(use <= MIN_USE * use.mean())
        if not len(free):
            return self
        codes = refit(X, observed, self.D, lasso_codes(X, observed, self.D, self.l1 * self.unit))
        filled = codes @ self.D
        left = np.sum((observed * filled - X) ** 2, axis=1)
        size = np.sum(X**2, axis=1)
        worst = np.flatnonzero(left > MIN_MISFIT * size)
        worst = worst[np.argsort(-left[worst])][: len(free)]
        if not len(worst):
            return self
        free = free[: len(worst)]
        new = np.where(observed[worst], X[worst], filled[worst])
        D, grams, products = self.D.copy(), self.grams.copy(), self.products.copy()
        D[free] = new / np.linalg.norm(new, axis=1, keepdims=True)
        grams[:, free], grams[:, :, free], products[:, free] = 0, 0, 0
        return replace(self, D=D, grams=grams, products=products)

    def rescale(self, ratio: Array) -> Self:
        D = self.D * ratio
        size = np.maximum(np.linalg.norm(D, axis=1), 1)  # atoms must stay in the ball
        return replace(
            self,
            D=D / size[:, None],
            grams=self.grams * (size[:, None] * size),
            products=self.products * ratio[:, None] * size,
        )


def improve_dictionary(D: Array, grams: Array, products: Array) -> Array:
    """Return atoms, r x m, each in turn the best in the unit ball, given the others.

    What falls is the sum over features j of 1/2 d_j' G_j d_j - d_j' p_j, where d_j is column j of
    D, G_j is grams[j] and p_j is products[j].
    """
    D = D.copy()
    uses = np.einsum("jkk->kj", grams)
    for _ in range(SWEEPS):
        for k in np.flatnonzero(uses.max(axis=1) > 0):
            # A feature that came with no row of this atom stays as it is.
            curvature = np.maximum(uses[k], 1e-12 * uses[k].max())
            slope = products[:, k] - np.einsum("jl,lj->j", grams[:, k], D)
            D[k] = project_to_ball(D[k] + slope / curvature, curvature)
    return D


def project_to_ball(target: Array, curvature: Array) -> Array:
    """Return the d in the unit ball with the least sum of curvature * (d - target)^2, m.

    By Newton's method on the size of the solution, as in trust regions.
    """
    multiplier, d = 0.0, target
    for _ in range(50):
        size = float(np.linalg.norm(d))
        if size <= 1 + 1e-10:
            break
        multiplier += size**2 * (size - 1) / float(np.sum(d**2 / (curvature + multiplier)))
        d = curvature * target / (curvature + multiplier)
    return d / max(1.0, float(np.linalg.norm(d)))
