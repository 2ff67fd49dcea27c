"""Matrix completion by sparse factorization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hirank._typing import Array, BoolArray
from hirank.baselines._recorder import NOTHING, Completed, Recorder
from hirank.baselines.sparse_codes import (
    SparseRows,
    atoms_of,
    best_end,
    improve_codes,
    unit_of,
    vanished,
)
from hirank.estimators.base import Imputer
from hirank.estimators.validation import check_count, check_number, generator
from hirank.optim.path import path_to
from hirank.optim.trace import Callback

PATH = (0.35, 0.18, 0.09, 0.045, 0.02, 0.01, 0.003, 0.001)
"""The path of l1, in units of the root mean square of the entries."""
ATOMS = 3
"""Atoms per feature, if not given. Those that are not needed vanish on the way."""
INNER = 8
"""Accelerated steps for the codes between two steps for the dictionary."""
SOLVE = 5
"""Iterations of conjugate gradients for the dictionary."""
GONE = 1e-6
"""An atom of less than this part of the largest is dropped."""


@dataclass(eq=False, repr=False)
class SFMC(Imputer):
    """Imputation by sparse factorization: each sample is a combination of few atoms.

    Minimizes 1/2 sum over observed entries of (X - Z D)^2 + l1 |Z|_1 + l1/2 |D|^2 over codes Z and
    atoms D (Fan, Zhao and Chow 2018). With more atoms than the rank of the table, and few in use
    for each sample, this reaches tables of full rank whose samples lie in many subspaces.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Atoms at the start, at most the number of samples; those that are not needed vanish.
        ``"auto"`` takes three per feature.
    l1 : float or "auto", default="auto"
        Weight of the codes, in units of the root mean square of the scaled entries: where the path
        ends. ``"auto"`` hides a few observed entries and takes the one that recovers them best.
    max_iter : int, default=40
        Most steps for each l1 on the path.
    tol : float, default=3e-5
        Steps for an l1 end when the objective falls by less than this fraction in one.
    random_state : int, RandomState or None, default=None
        Chooses the samples that the atoms start from, and the entries that are hidden.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`, but without scaling by default: centered features turn linear
        subspaces into affine ones. Use ``scale=True`` if features lie far from 0.

    Attributes
    ----------
    n_components_ : int
        Atoms that are left.
    l1_ : float
    dictionary_ : array, n_components_ x n_features_kept
        The atoms; features in units of the data, without their means if they were scaled.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`.

    Notes
    -----
    Codes take a few accelerated proximal steps, atoms a few steps of conjugate gradients, in turn.
    Where the authors keep l1 fixed, a path of falling l1 is walked here; and sizes are moved
    between each atom and its codes such that both terms are least, which makes atoms that are not
    needed vanish early. ``transform`` gives new samples their sparse codes by the observed entries,
    then refits them by least squares on the atoms in use.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import SFMC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 12))
    >>> holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = SFMC(6, random_state=0).fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 0.05)
    True
    """

    n_components: int | str = "auto"
    l1: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 40
    tol: float = 3e-5
    random_state: int | np.random.RandomState | None = None
    scale: bool | str = False

    def _check_parameters(self) -> None:
        if self.n_components != "auto":
            check_count("n_components (if not 'auto')", self.n_components)
        if self.l1 != "auto":
            check_number("l1 (if not 'auto')", self.l1, above=0)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)

    def _most_steps(self) -> int:
        return (1 + (self.l1 == "auto")) * (len(PATH) + 1) * self.max_iter

    def _learn(
        self, X: Array, observed: BoolArray, callback: Callback
    ) -> tuple[Completed, SparseRows]:
        record = Recorder(callback)
        if not X.shape[1]:
            done = record.finish_with(X, NOTHING, n_components=0, l1=0.0)
            return done, SparseRows(np.zeros((0, 0)), 1.0)
        rng = generator(self.random_state)
        atoms = atoms_of(self.n_components, X.shape, ATOMS)
        unit = unit_of(X, observed)
        known = np.where(observed, X, 0) / unit
        walk = Walk(record, self.max_iter, self.tol)
        start = start_atoms(known, observed, atoms, rng)
        l1 = choose_end(walk, known, observed, start, rng) if self.l1 == "auto" else float(self.l1)
        *_, (l1, model) = walk.along(known, observed, start, path_to(PATH, l1))
        if not len(model.D):
            raise vanished(l1)
        filled = np.where(observed, X, unit * (model.Z @ model.D))
        reason = record.ended() if record.stopped else walk.reason
        done = record.finish_with(filled, reason, n_components=len(model.D), l1=l1)
        # Rows are in their own units, and so are their codes; the atoms stay as they are.
        return done, SparseRows(model.D, l1 * unit)

    def _publish(self, outcome: Any) -> None:
        super()._publish(outcome)
        assert isinstance(self._rows, SparseRows)
        spread = self._scaling.spread
        self.dictionary_ = np.zeros((len(self._rows.D), len(spread)))
        self.dictionary_[:, spread > 0] = self._rows.D * spread[spread > 0]


class Factors(NamedTuple):
    """X ~ Z D."""

    Z: Array  # n x r
    D: Array  # r x m


def start_atoms(X: Array, observed: BoolArray, count: int, rng: np.random.Generator) -> Array:
    """Rows of X as atoms, count x m, of a size that the penalties do not change much.

    Missing entries start near 0; the noise keeps rows that are alike apart.
    """
    D = X[rng.choice(len(X), count, replace=False)]
    D = D + 0.01 * rng.standard_normal(D.shape)
    return D * (np.sqrt(X.shape[1]) / np.linalg.norm(D, axis=1, keepdims=True))


class Walk:
    """The path of falling l1, step by step; each stage starts from the last."""

    def __init__(self, record: Recorder, max_iter: int, tol: float) -> None:
        self.record, self.max_iter, self.tol = record, max_iter, tol
        self.reason = ""

    def along(
        self, X: Array, observed: BoolArray, D: Array, path: tuple[float, ...]
    ) -> Iterator[tuple[float, Factors]]:
        """The factors for each l1 in turn, of X with 0 where not observed.

        An l1 that leaves no atom is passed over: the next starts as the first did.
        """
        start = Factors(np.zeros((len(X), len(D))), D)
        model = start
        for l1 in path:
            model = self._settle(X, observed, model if len(model.D) else start, l1)
            yield l1, model
            if self.record.stopped:
                return

    def _settle(self, X: Array, observed: BoolArray, model: Factors, l1: float) -> Factors:
        Z, D = model
        if not Z.any():
            Z = improve_codes(X, observed, D, Z, l1, 5 * INNER)
        stage, before = self.record.stages, np.inf
        for _ in range(self.max_iter):
            Z, D = balanced(Z, improve_atoms(X, observed, Z, D, l1), l1)
            Z = improve_codes(X, observed, D, Z, l1, INNER)
            objective = objective_of(X, observed, Z, D, l1)
            if self.record.record(objective, stage):
                break
            if before - objective <= self.tol * objective:
                self.reason = self.record.converged(self.tol, "the objective")
                break
            before = objective
        else:
            self.reason = self.record.exhausted(self.max_iter)
        return Factors(Z, D)


def objective_of(X: Array, observed: BoolArray, Z: Array, D: Array, l1: float) -> float:
    """1/2 |observed * (X - Z D)|^2 + l1 |Z|_1 + l1/2 |D|^2."""
    residual = observed * (Z @ D) - X
    return float(np.sum(residual**2) / 2 + l1 * np.abs(Z).sum() + l1 * np.sum(D**2) / 2)


def improve_atoms(X: Array, observed: BoolArray, Z: Array, D: Array, ridge: float) -> Array:
    """Atoms D, r x m, for given codes, by a few conjugate gradients.

    Each feature has a system of its own, over the samples that have it. Preconditioned by the
    system over all samples, which they are close to if entries are missing at random.
    """
    if not len(D):
        return D
    gram = Z.T @ Z
    share = max(float(observed.mean()), 1e-3)
    factor = cho_factor(share * gram + ridge * np.eye(len(gram)))

    def apply(P: Array) -> Array:
        return Z.T @ (observed * (Z @ P)) + ridge * P

    residual = Z.T @ X - apply(D)
    solved = cho_solve(factor, residual)
    direction, size = solved, np.sum(residual * solved, axis=0)
    for _ in range(SOLVE):
        image = apply(direction)
        curvature = np.sum(direction * image, axis=0)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0)
        D = D + step * direction
        residual = residual - step * image
        solved = cho_solve(factor, residual)
        after = np.sum(residual * solved, axis=0)
        direction = solved + direction * np.divide(
            after, size, out=np.zeros_like(size), where=size > 0
        )
        size = after
    return D


def balanced(Z: Array, D: Array, l1: float) -> Factors:
    """The same products Z D with the least l1 |Z|_1 + l1/2 |D|^2, without atoms of no use."""
    codes, atoms = np.abs(Z).sum(axis=0), np.sum(D**2, axis=1)
    keep = (codes > 0) & (atoms > 0)
    size = np.cbrt(codes[keep] / atoms[keep])
    Z, D = Z[:, keep] / size, D[keep] * size[:, None]
    sizes = np.linalg.norm(D, axis=1)
    large = sizes > GONE * sizes.max(initial=0)
    return Factors(Z[:, large], D[large])


def choose_end(
    walk: Walk,
    X: Array,
    observed: BoolArray,
    start: Array,
    rng: np.random.Generator,
) -> float:
    """The l1 on the path that recovers hidden entries of X, n x m, best."""

    def fills(known: Array, seen: BoolArray) -> Iterator[Array]:
        return (model.Z @ model.D for _, model in walk.along(known, seen, start, PATH))

    return best_end(PATH, fills, X, observed, rng)
