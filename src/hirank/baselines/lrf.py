"""Low-rank factorization by alternating minimization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from hirank.baselines.subspace import LinearImputer, Subspace, filled_codes, rank_of, ridge_codes
from hirank.estimators.parameters import check_count, check_number
from hirank.kernels import Array
from hirank.model.shrink import spectral_norm
from hirank.solvers.held_out import hide
from hirank.solvers.record import NOTHING, Callback, Completed, Recorder

RIDGES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6)
"""The path of ridges, in units of the largest singular value."""
RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Ranks that the search tries, as far as the table allows."""
BETTER = 0.99
"""Times the lowest error so far: a rank or ridge that is worth going on for."""
PATIENCE = 2
"""Ridges, or ranks, in a row that are not."""
SEARCH_STEPS, SEARCH_TOL = 50, 1e-4
"""While searching, a rough answer will do."""
EXACT = 16
"""Rank beyond which a step fills the holes first: it gains less, but at a fraction of the cost."""
UNJUDGED = 1e-2
"""Ridge for tables with too few entries to judge by."""


@dataclass(eq=False, repr=False)
class LRF(LinearImputer):
    """Imputation by low-rank factorization, X ~ U V, fitted by alternating least squares.

    Minimizes 1/2 sum over observed entries of (X - U V)^2 + ridge/2 (|U|^2 + |V|^2), for U given V
    and V given U in turn, along a path of falling ridges. The linear counterpart of
    :class:`hirank.KFMC`: hard to beat where a table has low rank, and at a loss where not.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        At most the smaller side of the table. ``"auto"`` hides a few observed entries and takes
        the rank, and the ridge unless given, that recovers them best.
    ridge : float or "auto", default="auto"
        Weight of the size of the factors, in units of the largest singular value of the scaled
        table with zeros in its holes: where the path of ridges ends.
    max_iter : int, default=200
        Most steps for each ridge.
    tol : float, default=1e-5
        Steps for a ridge end when the objective falls by less than this fraction in one.
    random_state : int, RandomState or None, default=None
        Chooses the entries that are hidden.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    rank_ : int
    ridge_ : float
    components_ : array, rank_ x n_features_kept
        V, with orthogonal rows in the units of the scaled features, here in those of the data.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`.

    Notes
    -----
    ``transform`` completes new samples by ridge regression of their observed entries on V, with the
    ridge of the fit: OSE-LRF in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import LRF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    >>> holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = LRF(rank=2, ridge=1e-8, scale=False).fit_transform(holes)
    >>> bool(np.abs(filled - X).max() < 1e-3)
    True
    """

    rank: int | str = "auto"
    ridge: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-5
    random_state: int | np.random.RandomState | None = None

    def _check_parameters(self) -> None:
        if self.rank != "auto":
            check_count("rank (if not 'auto')", self.rank)
        if self.ridge != "auto":
            check_number("ridge (if not 'auto')", self.ridge, above=0)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)

    def _most_steps(self) -> int:
        ranks = len(RANKS) if self.rank == "auto" else 1
        return len(RIDGES) * (ranks * SEARCH_STEPS + self.max_iter)

    def _learn(
        self, X: Array, observed: NDArray[np.bool_], callback: Callback
    ) -> tuple[Completed, Subspace]:
        record = Recorder(callback)
        if not X.shape[1]:
            return record.finish(X, NOTHING, rank=0, ridge=0.0), Subspace(np.zeros((0, 0)), 1.0)
        known = np.where(observed, X, 0)
        rank = None if self.rank == "auto" else rank_of(int(self.rank), X.shape)
        ridge = None if self.ridge == "auto" else float(self.ridge)
        als = Alternation(record, self.max_iter, self.tol)
        if rank is None or ridge is None:
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
            rank, ridge, _, factors = choose(known, observed, rank, ridge, rng, record)
        if not record.over:
            *_, (ridge, factors) = als.walk(known, observed, rank, path_to(ridge))
        reason = record.stopped() if record.over else als.reason
        filled = np.where(observed, X, factors.U @ factors.V)
        rows = Subspace(factors.orthogonal(), ridge * spectral_norm(known))
        return record.finish(filled, reason, rank=rank, ridge=ridge), rows


class Factors(NamedTuple):
    """X ~ U V."""

    U: Array  # n x r
    V: Array  # r x m

    def orthogonal(self) -> NDArray[np.float64]:
        """V in coordinates in which its rows and the columns of U are orthogonal, and as long."""
        s, Qt = self._singular()
        return np.sqrt(s) * Qt

    def standard(self) -> NDArray[np.float64]:
        """V in coordinates in which the columns of U are orthogonal, with mean square 1."""
        s, Qt = self._singular()
        return s / np.sqrt(len(self.U)) * Qt

    def _singular(self) -> tuple[Array, Array]:
        _, s, Qt = np.linalg.svd(self.U @ self.V, full_matrices=False)
        r = len(self.V)
        return s[:r, None], Qt[:r]


class Alternation:
    """Alternating least squares, step by step, until it settles."""

    def __init__(self, record: Recorder, max_iter: int, tol: float) -> None:
        self.record, self.max_iter, self.tol = record, max_iter, tol
        self.reason = ""

    def walk(
        self, X: Array, observed: NDArray[np.bool_], rank: int, ridges: tuple[float, ...]
    ) -> Iterator[tuple[float, Factors]]:
        """The factors for each ridge in turn, from those of the table with zeros in its holes."""
        P, s, Qt = np.linalg.svd(X / observed.mean(), full_matrices=False)
        root = np.sqrt(s[:rank])
        factors, unit = Factors(P[:, :rank] * root, root[:, None] * Qt[:rank]), spectral_norm(X)
        for ridge in ridges:
            factors = self._settle(X, observed, factors, ridge * unit)
            yield ridge, factors
            if self.record.over:
                return

    def _settle(
        self, X: Array, observed: NDArray[np.bool_], factors: Factors, weight: float
    ) -> Factors:
        U, V = factors
        stage, before = self.record.stages, np.inf
        for _ in range(self.max_iter):
            if len(V) <= EXACT:
                U = ridge_codes(X, observed, V, weight)
                V = ridge_codes(X.T, observed.T, U.T, weight).T
            else:
                U = filled_codes(np.where(observed, X, U @ V), V, weight)
                V = filled_codes(np.where(observed, X, U @ V).T, U.T, weight).T
            objective = _objective(X, observed, U, V, weight)
            if self.record(objective, stage):
                return Factors(U, V)
            if before - objective <= self.tol * objective:
                self.reason = self.record.converged(self.tol, "the objective")
                return Factors(U, V)
            before = objective
        self.reason = self.record.exhausted(self.max_iter)
        return Factors(U, V)


def _objective(X: Array, observed: NDArray[np.bool_], U: Array, V: Array, weight: float) -> float:
    residual = np.where(observed, X - U @ V, 0)
    return float(np.sum(residual**2) + weight * (np.sum(U**2) + np.sum(V**2))) / 2


def path_to(ridge: float) -> tuple[float, ...]:
    """The path of ridges that ends at a given one."""
    return (*(other for other in RIDGES if other > ridge), ridge)


class Choice(NamedTuple):
    """A rank and a ridge, how well they recover hidden entries, and the factors found."""

    rank: int
    ridge: float
    error: float
    factors: Factors


def choose(
    X: Array,
    observed: NDArray[np.bool_],
    rank: int | None,
    ridge: float | None,
    rng: np.random.Generator,
    record: Recorder,
) -> Choice:
    """The rank and ridge, where not given, that recover hidden entries of X, n x m, best.

    Entries of X that are not observed must be 0.
    """
    hidden = hide(observed, rng, if_complete=True)
    als = Alternation(record, SEARCH_STEPS, SEARCH_TOL)
    if not hidden.any():
        rank, ridge = rank or max(1, min(X.shape) // 2), ridge or UNJUDGED
        *_, (ridge, factors) = als.walk(X, observed, rank, path_to(ridge))
        return Choice(rank, ridge, np.nan, factors)
    best, poor = None, 0
    for r in [r for r in RANKS if r <= min(X.shape)] if rank is None else [rank]:
        found = _best_ridge(X, observed, hidden, r, ridge, als)
        poor = 0 if best is None or found.error < BETTER * best.error else poor + 1
        if best is None or found.error < best.error:
            best = found
        if poor >= PATIENCE or record.over:
            break
    assert best is not None
    return best


def first_subspace(
    X: Array, observed: NDArray[np.bool_], rank: int | str, rng: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    """Where an online method may start: V, r x m, for codes of variance 1, from a few rows, n x m.

    And the variance of what V leaves unexplained, judged by hidden entries. Entries of X that are
    not observed must be 0.
    """
    r = None if rank == "auto" else rank_of(int(rank), X.shape)
    if not X.any():
        return np.eye(r or 1, X.shape[1]), UNJUDGED
    choice = choose(X, observed, r, None, rng, Recorder())
    noise = UNJUDGED if np.isnan(choice.error) else np.pi / 2 * choice.error**2  # if normal
    return choice.factors.standard(), noise


def _best_ridge(
    X: Array,
    observed: NDArray[np.bool_],
    hidden: NDArray[np.bool_],
    rank: int,
    ridge: float | None,
    als: Alternation,
) -> Choice:
    seen, known = observed & ~hidden, np.where(hidden, 0, X)
    best, poor = None, 0
    for step, factors in als.walk(known, seen, rank, RIDGES if ridge is None else path_to(ridge)):
        if ridge not in (None, step) and not als.record.over:
            continue
        error = float(np.mean(np.abs((factors.U @ factors.V - X)[hidden])))
        poor = 0 if best is None or error < BETTER * best.error else poor + 1
        if best is None or error < best.error:
            best = Choice(rank, step, error, factors)
        if poor >= PATIENCE:
            break
    assert best is not None
    return best
