"""Alternating least squares: factors that grow, the choice of their rank, and starts for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import mask_entries
from hirank.core.svt import spectral_norm
from hirank.exceptions import StopReason
from hirank.models.low_rank import filled_codes, rank_of, ridge_codes
from hirank.optim.trace import Monitor

RIDGES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6)
"""Ridges that the search tries, in units of the largest singular value."""
RANKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
"""Ranks that it tries, as far as the table allows, and through which factors grow."""
BETTER = 0.99
"""Times the lowest error so far: a rank or ridge that is worth going on for."""
PATIENCE = 3
"""Ranks, or ridges, in a row that are not."""
ROUGH_STEPS, ROUGH_TOL = 30, 1e-2
"""On the way to a larger rank, a rough answer will do; a better one is no better start."""
PERFECT = 1e-4
"""Error, over the mean size of hidden entries, with which the search is content."""
EXACT = 16
"""Rank beyond which a step fills the holes first: it gains less, but at a fraction of the cost."""
UNJUDGED = 1e-2
"""Ridge for tables with too few entries to judge by."""


class Factors(NamedTuple):
    """X ~ U V."""

    U: Array  # n x r
    V: Array  # r x m

    def orthogonal(self) -> Array:
        """V in coordinates in which its rows and the columns of U are orthogonal, and as long."""
        s, Qt = self._singular()
        return np.sqrt(s) * Qt

    def standard(self) -> Array:
        """V in coordinates in which the columns of U are orthogonal, with mean square 1."""
        s, Qt = self._singular()
        return s / np.sqrt(len(self.U)) * Qt

    def _singular(self) -> tuple[Array, Array]:
        _, s, Qt = np.linalg.svd(self.U @ self.V, full_matrices=False)
        r = len(self.V)
        return s[:r, None], Qt[:r]


class Alternation:
    """Alternating least squares while the rank grows, and at the last rank until it settles."""

    def __init__(self, record: Monitor, max_iter: int, tol: float) -> None:
        self.record, self.max_iter, self.tol = record, max_iter, tol
        self.reason = StopReason.MAX_ITER

    def grow(
        self, X: Array, observed: BoolArray, ridge: float, ranks: Sequence[int]
    ) -> Iterator[tuple[int, Factors]]:
        """The factors of each rank in turn, from the one below and what it leaves unexplained.

        X, n x m, must be 0 where not observed.
        """
        n, m = X.shape
        factors, weight = Factors(np.zeros((n, 0)), np.zeros((0, m))), ridge * spectral_norm(X)
        for rank in ranks:
            factors = _with_more(X, observed, factors, rank)
            last = rank == ranks[-1]
            steps, tol = (self.max_iter, self.tol) if last else (ROUGH_STEPS, ROUGH_TOL)
            factors = self._settle(X, observed, factors, weight, steps, tol)
            yield rank, factors
            if self.record.stopped:
                return

    def _settle(
        self,
        X: Array,
        observed: BoolArray,
        factors: Factors,
        weight: float,
        steps: int,
        tol: float,
    ) -> Factors:
        U, V = factors
        stage, before = self.record.stages, np.inf
        for _ in range(steps):
            if len(V) <= EXACT:
                U = ridge_codes(X, observed, V, weight)
                V = ridge_codes(X.T, observed.T, U.T, weight).T
            else:
                U = filled_codes(np.where(observed, X, U @ V), V, weight)
                V = filled_codes(np.where(observed, X, U @ V).T, U.T, weight).T
            objective = _objective(X, observed, U, V, weight)
            if self.record.record(objective, stage):
                return Factors(U, V)
            if before - objective <= tol * objective:
                self.reason = StopReason.CONVERGED
                return Factors(U, V)
            before = objective
        self.reason = StopReason.MAX_ITER
        return Factors(U, V)


def _with_more(X: Array, observed: BoolArray, factors: Factors, rank: int) -> Factors:
    """Factors with the leading directions of what they leave unexplained, up to a rank."""
    U, V = factors
    P, s, Qt = np.linalg.svd(np.where(observed, X - U @ V, 0), full_matrices=False)
    new = rank - len(V)
    root = np.sqrt(s[:new])
    return Factors(np.hstack([U, P[:, :new] * root]), np.vstack([V, root[:, None] * Qt[:new]]))


def _objective(X: Array, observed: BoolArray, U: Array, V: Array, weight: float) -> float:
    residual = np.where(observed, X - U @ V, 0)
    return float(np.sum(residual**2) + weight * (np.sum(U**2) + np.sum(V**2))) / 2


def ranks_to(rank: int | None, shape: tuple[int, ...]) -> list[int]:
    """The ranks on the way to a given one, or to the largest, as far as an n x m table goes."""
    most = min(RANKS[-1] if rank is None else rank, *shape)
    return [*(r for r in RANKS if r < most), most]


class Choice(NamedTuple):
    """A rank and a ridge, how well they recover hidden entries, and the factors found."""

    rank: int
    ridge: float
    error: float
    factors: Factors


def choose(
    X: Array,
    observed: BoolArray,
    hidden: BoolArray,
    rank: int | None,
    ridge: float | None,
    record: Monitor,
) -> Choice:
    """The rank and ridge, where not given, that recover hidden entries of X, n x m, best.

    X must be 0 where not observed. Without hidden entries, a guess.
    """
    als = Alternation(record, ROUGH_STEPS, ROUGH_TOL)
    if not hidden.any():
        rank, ridge = rank or max(1, min(X.shape) // 2), ridge or UNJUDGED
        *_, (rank, factors) = als.grow(X, observed, ridge, ranks_to(rank, X.shape))
        return Choice(rank, ridge, np.nan, factors)
    best, poor = None, 0
    for weight in RIDGES if ridge is None else [ridge]:
        found = _best_rank(X, observed, hidden, rank, weight, als)
        poor = 0 if best is None or found.error < BETTER * best.error else poor + 1
        if best is None or found.error < best.error:
            best = found
        if poor >= PATIENCE or record.stopped or best.error < PERFECT * np.mean(np.abs(X[hidden])):
            break
    assert best is not None
    return best


def _best_rank(
    X: Array,
    observed: BoolArray,
    hidden: BoolArray,
    rank: int | None,
    ridge: float,
    als: Alternation,
) -> Choice:
    best, poor = None, 0
    ranks = ranks_to(rank, X.shape)
    for step, factors in als.grow(np.where(hidden, 0, X), observed & ~hidden, ridge, ranks):
        if rank is not None and step != ranks[-1] and not als.record.stopped:
            continue
        error = float(np.mean(np.abs((factors.U @ factors.V - X)[hidden])))
        poor = 0 if best is None or error < BETTER * best.error else poor + 1
        if best is None or error < best.error:
            best = Choice(step, ridge, error, factors)
        if poor >= PATIENCE or error < PERFECT * np.mean(np.abs(X[hidden])):
            break
    assert best is not None
    return best


def completions(X: Array, observed: BoolArray) -> Iterator[Array]:
    """Rough completions of X, n x m, of many ranks and ridges, for others to choose from."""
    X1, seen, _ = with_constant(X, observed)
    als = Alternation(Monitor(), ROUGH_STEPS, ROUGH_TOL)
    for ridge in RIDGES:
        for _, (U, V) in als.grow(X1, seen, ridge, ranks_to(None, X1.shape)):
            yield (U @ V)[:, :-1]


def with_constant(X: Array, observed: BoolArray) -> tuple[Array, BoolArray, float]:
    """X, n x m, with zeros in its holes and a constant feature of the size of the others."""
    n = len(X)
    constant = float(np.sqrt(np.mean(X[observed] ** 2))) or 1.0
    X1 = np.column_stack([np.where(observed, X, 0), np.full(n, constant)])
    return X1, np.column_stack([observed, np.ones(n, bool)]), constant


def first_subspace(
    X: Array,
    observed: BoolArray,
    rank: int | str,
    rng: np.random.Generator,
    ridge: float | None = None,
) -> tuple[Array, float]:
    """Where an online method may start: V, r x m, for codes of variance 1, from a few rows, n x m.

    And the variance of what V leaves unexplained, judged by hidden entries. X must be 0 where not
    observed. A method without a ridge needs a smaller rank, which a small ridge here leads to.
    """
    r = None if rank == "auto" else rank_of(int(rank), X.shape)
    if not X.any():
        return np.eye(r or 1, X.shape[1]), UNJUDGED
    hidden = mask_entries(observed, rng, selecting=True)
    choice = choose(X, observed, hidden, r, ridge, Monitor())
    noise = UNJUDGED if np.isnan(choice.error) else np.pi / 2 * choice.error**2  # if normal
    return choice.factors.standard(), noise
