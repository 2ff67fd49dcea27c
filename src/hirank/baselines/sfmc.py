"""Matrix completion by sparse factorization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hirank._typing import Array, BoolArray
from hirank.baselines.base import TableFit, TableImputer
from hirank.baselines.penalty_path import Begin, PenaltyPath
from hirank.baselines.sparse_codes import (
    SparseRows,
    VanishedCodesError,
    conjugate_gradients,
    count_atoms,
    improve_codes,
    measure_unit,
)
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.optim.loop import has_stalled
from hirank.optim.trace import Monitor

ATOMS_PER_FEATURE = 3  # if n_components is "auto"; those that are not needed vanish on the way
CODE_STEPS = 8  # accelerated steps for the codes between two steps for the dictionary
ATOM_STEPS = 5  # iterations of conjugate gradients for the dictionary
MIN_ATOM = 1e-6  # part of the largest atom below which an atom is dropped


@dataclass(eq=False, repr=False)
class SFMC(TableImputer[SparseRows]):
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
        ends. ``"auto"`` holds out a few observed entries and takes the one that recovers them best.
    max_iter : int, default=40
        Steps for each l1 on the path, at most.
    tol : float, default=3e-5
        Steps for an l1 end when the objective falls by less than this fraction in one.
    random_state : int, RandomState or None, default=None
        Selects the samples that the atoms start from, and the entries that are held out.
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
    Where the authors keep l1 fixed, a path of falling l1 is followed here; and sizes are moved
    between each atom and its codes such that both terms are least, which makes atoms that are not
    needed vanish early. ``transform`` gives new samples their sparse codes by the observed entries,
    then refits them by least squares on the atoms in use.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import SFMC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 12))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = SFMC(6, random_state=0).fit_transform(X_missing)
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

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            model = SparseRows(np.zeros((0, 0)), 1.0)
            return TableFit(X, model, StopReason.NOTHING_TO_FIT, {"n_components": 0, "l1": 0.0})
        rng, unit = make_rng(self.random_state), measure_unit(X, observed)
        n_atoms = count_atoms(self.n_components, X.shape, ATOMS_PER_FEATURE)
        known = np.where(observed, X, 0) / unit
        path = FactorPath(self.max_iter, self.tol, monitor, start_atoms(known, n_atoms, rng))
        l1, solution = path.fit(known, observed, self.l1, rng)
        factors = solution.state
        if not len(factors.D):
            raise VanishedCodesError(l1)
        # Rows are in their own units, and so are their codes; the atoms stay as they are.
        model = SparseRows(factors.D, l1 * unit)
        details = {"n_components": len(factors.D), "l1": l1}
        return TableFit(unit * (factors.Z @ factors.D), model, solution.reason, details)

    @property
    def dictionary_(self) -> Array:
        return self._in_data_units(self._model.D)


@dataclass(frozen=True)
class Factors:
    """X ~ Z D."""

    Z: Array  # n x r
    D: Array  # r x m
    objective: float = np.inf


@dataclass(frozen=True)
class Factorization:
    """Solver for one l1: atoms and codes in turn."""

    X: Array  # n x m; 0 where not observed
    observed: BoolArray
    atoms: Array  # r x m, to start from if there are none
    l1: float
    tol: float
    monotone: ClassVar[bool] = True

    def init(self, start: Factors) -> Factors:
        Z, D = start.Z, start.D
        if not len(D):  # the l1 before was so large that no atom was left
            Z, D = np.zeros((len(self.X), len(self.atoms))), self.atoms
        if not Z.any():
            Z = improve_codes(self.X, self.observed, D, Z, self.l1, 5 * CODE_STEPS)
        return Factors(Z, D)

    def step(self, state: Factors) -> Factors:
        X, observed, l1 = self.X, self.observed, self.l1
        Z, D = balance_factors(state.Z, improve_atoms(X, observed, state.Z, state.D, l1), l1)
        Z = improve_codes(X, observed, D, Z, l1, CODE_STEPS)
        return Factors(Z, D, penalized_error(X, observed, Z, D, l1))

    def terminate(self, state: Factors, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol)


@dataclass(frozen=True)
class FactorPath(PenaltyPath[Factors]):
    """Values of l1 in units of the root mean square of the entries."""

    atoms: Array  # r x m, to start from
    # From 1 the path leaves too few atoms; lower starts keep atoms that only fit missing entries
    # (docs/notes/baselines_sparse.md).
    penalties: ClassVar[tuple[float, ...]] = (0.35, 0.18, 0.09, 0.045, 0.02, 0.01, 0.003, 0.001)

    def begin(self, X: Array, observed: BoolArray) -> Begin[Factors]:
        start = Factors(np.zeros((len(X), 0)), self.atoms[:0])
        return start, lambda l1: Factorization(X, observed, self.atoms, l1, self.tol)

    def impute(self, state: Factors) -> Array:
        return state.Z @ state.D


def penalized_error(X: Array, observed: BoolArray, Z: Array, D: Array, l1: float) -> float:
    """Return 1/2 |observed * (X - Z D)|^2 + l1 |Z|_1 + l1/2 |D|^2."""
    residual = observed * (Z @ D) - X
    return float(np.sum(residual**2) / 2 + l1 * np.abs(Z).sum() + l1 * np.sum(D**2) / 2)


def start_atoms(X: Array, count: int, rng: np.random.Generator) -> Array:
    """Return rows of X as atoms, count x m, of a size that the penalties do not change much.

    Missing entries start near 0; the noise keeps rows that are alike apart.
    """
    D = X[rng.choice(len(X), count, replace=False)]
    D = D + 0.01 * rng.standard_normal(D.shape)
    return D * (np.sqrt(X.shape[1]) / np.linalg.norm(D, axis=1, keepdims=True))


def improve_atoms(X: Array, observed: BoolArray, Z: Array, D: Array, ridge: float) -> Array:
    """Return atoms D, r x m, for given codes, by a few conjugate gradients.

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

    return conjugate_gradients(
        apply,
        D,
        Z.T @ X - apply(D),
        ATOM_STEPS,
        precondition=lambda residual: cho_solve(factor, residual),
        axis=0,
    )


def balance_factors(Z: Array, D: Array, l1: float) -> tuple[Array, Array]:
    """Return the same products Z D with the least l1 |Z|_1 + l1/2 |D|^2, without unused atoms."""
    codes, atoms = np.abs(Z).sum(axis=0), np.sum(D**2, axis=1)
    keep = (codes > 0) & (atoms > 0)
    size = np.cbrt(codes[keep] / atoms[keep])
    Z, D = Z[:, keep] / size, D[keep] * size[:, None]
    sizes = np.linalg.norm(D, axis=1)
    large = sizes > MIN_ATOM * sizes.max(initial=0)
    return Z[:, large], D[large]
