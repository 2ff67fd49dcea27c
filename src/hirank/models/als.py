"""Alternating least squares: factors that grow, and the selection of their rank and ridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import mask_entries
from hirank.core.svt import leading_singular, spectral_norm
from hirank.models.low_rank import Subspace, check_rank, filled_codes, ridge_codes
from hirank.optim.loop import Solution, has_stalled, minimize
from hirank.optim.trace import Monitor


@dataclass(frozen=True)
class ALSConfig:
    """Constants of low-rank factors; ridges are in units of the largest singular value."""

    ridges: tuple[float, ...] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-6)  # that are compared
    ranks: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)  # likewise
    better: float = 0.99  # times the lowest error so far: a rank or ridge that is worth going on
    patience: int = 3  # ranks, or ridges, in a row that are not
    perfect_error: float = 1e-4  # over the mean size of held-out entries: the search ends
    rough_iter: int = 30  # steps on the way to a larger rank: a better start gains nothing
    rough_tol: float = 1e-2
    max_iter: int = 200  # steps at the last rank
    tol: float = 1e-4
    max_exact_rank: int = 16  # beyond it, a step imputes first, which gains less and costs far less
    default_ridge: float = 1e-2  # for tables with too few entries to hold any out
    # In tables with more entries, fewer ridges are compared (docs/notes/large_tables.md), and from
    # the larger of both sizes on fewer ranks (docs/notes/wide_tables.md).
    few_ridges_size: int = 100_000
    large_size: int = 500_000
    large_ridges: tuple[float, ...] = (1e-2, 1e-4, 1e-6)
    large_ranks: tuple[int, ...] = (4, 8, 16, 24, 32, 48, 64)
    large_rough_iter: int = 10

    def for_table(self, shape: tuple[int, ...]) -> ALSConfig:
        """Return the constants for a table of this shape, n x m."""
        size = shape[0] * shape[1]
        if size <= self.few_ridges_size:
            return self
        few = replace(self, ridges=self.large_ridges)
        if size <= self.large_size:
            return few
        return replace(
            few,
            ranks=self.large_ranks,
            rough_iter=self.large_rough_iter,
        )


class Factors(NamedTuple):
    """X ~ U V."""

    U: Array  # n x r
    V: Array  # r x m

    def orthogonal(self) -> Array:
        """Return V in coordinates in which its rows and the columns of U are orthogonal."""
        s, Qt = self._singular()
        return np.sqrt(s) * Qt

    def standard(self) -> Array:
        """Return V in coordinates in which the columns of U are orthogonal, of mean square 1."""
        s, Qt = self._singular()
        return s / np.sqrt(len(self.U)) * Qt

    def _singular(self) -> tuple[Array, Array]:
        # The singular values of U V are those of an r x r matrix: U V is never formed.
        R = np.linalg.qr(self.U, mode="r")
        Q, S = np.linalg.qr(self.V.T)
        _, s, Qt = np.linalg.svd(R @ S.T, full_matrices=False)
        return s[:, None], Qt @ Q.T


@dataclass(frozen=True)
class ALSState:
    """Factors, and their penalized squared error."""

    factors: Factors
    objective: float = np.inf


@dataclass(frozen=True)
class ALS:
    """Alternating ridge regressions for U and V."""

    X: Array  # n x m; 0 where not observed
    observed: BoolArray
    penalty: float
    tol: float
    max_exact_rank: int
    monotone: ClassVar[bool] = True

    def init(self, start: Factors) -> ALSState:
        return ALSState(start)

    def step(self, state: ALSState) -> ALSState:
        X, observed, (U, V) = self.X, self.observed, state.factors
        if len(V) <= self.max_exact_rank:
            U = ridge_codes(X, observed, V, self.penalty)
            V = ridge_codes(X.T, observed.T, U.T, self.penalty).T
        else:
            U = filled_codes(np.where(observed, X, U @ V), V, self.penalty)
            V = filled_codes(np.where(observed, X, U @ V).T, U.T, self.penalty).T
        residual = np.where(observed, X - U @ V, 0)
        sizes = np.sum(U**2) + np.sum(V**2)
        objective = float(np.sum(residual**2) + self.penalty * sizes) / 2
        return ALSState(Factors(U, V), objective)

    def terminate(self, state: ALSState, objectives: Sequence[float]) -> bool:
        return has_stalled(objectives, self.tol)


def grow_factors(
    X: Array,
    observed: BoolArray,
    ridge: float,
    ranks: Sequence[int],
    monitor: Monitor,
    config: ALSConfig,
    *,
    rough: bool = False,
) -> Iterator[tuple[int, Solution[ALSState]]]:
    """Yield factors of each rank in turn, started from the rank below and what it leaves over.

    X, n x m, must be 0 where not observed. With `rough`, the last rank is fitted as the others are.
    """
    n, m = X.shape
    factors, penalty = Factors(np.zeros((n, 0)), np.zeros((0, m))), ridge * spectral_norm(X)
    for rank in ranks:
        last = rank == ranks[-1] and not rough
        max_iter, tol = config.rough_iter, config.rough_tol
        if last:
            max_iter, tol = config.max_iter, config.tol
        solver = ALS(X, observed, penalty, tol, config.max_exact_rank)
        start = _extend_factors(X, observed, factors, rank)
        solution = minimize(solver, start, max_iter=max_iter, monitor=monitor)
        factors = solution.state.factors
        yield rank, solution
        if monitor.stopped:
            return


def _extend_factors(X: Array, observed: BoolArray, factors: Factors, rank: int) -> Factors:
    """Return factors of a larger rank, with leading directions of the residual."""
    U, V = factors
    P, s, Qt = leading_singular(np.where(observed, X - U @ V, 0), rank - len(V))
    root = np.sqrt(s)
    return Factors(np.hstack([U, P * root]), np.vstack([V, root[:, None] * Qt]))


def ranks_to(rank: int | None, shape: tuple[int, ...], config: ALSConfig) -> list[int]:
    """Return the ranks on the way to a given one, or to the largest that n x m allows."""
    last = min(config.ranks[-1] if rank is None else rank, *shape)
    return [*(r for r in config.ranks if r < last), last]


class RankSelection(NamedTuple):
    """A rank and a ridge, their mean absolute error on held-out entries, and the factors."""

    rank: int
    ridge: float
    error: float  # NaN if no entries were held out
    factors: Factors


def select_rank(
    X: Array,
    observed: BoolArray,
    held_out: BoolArray,
    *,
    rank: int | None = None,
    ridge: float | None = None,
    monitor: Monitor,
    config: ALSConfig,
) -> RankSelection:
    """Select the rank and ridge, where not given, that recover held-out entries of X best.

    X, n x m, must be 0 where not observed. Without held-out entries, defaults are taken.
    """
    config = config.for_table(X.shape)
    if not held_out.any():
        rank, ridge = rank or max(1, min(X.shape) // 2), ridge or config.default_ridge
        ranks = ranks_to(rank, X.shape, config)
        *_, (rank, solution) = grow_factors(X, observed, ridge, ranks, monitor, config, rough=True)
        return RankSelection(rank, ridge, np.nan, solution.state.factors)
    perfect = config.perfect_error * float(np.mean(np.abs(X[held_out])))
    best, poor = None, 0
    for weight in config.ridges if ridge is None else [ridge]:
        found = _select_rank(X, observed, held_out, rank, weight, perfect, monitor, config)
        poor = 0 if best is None or found.error < config.better * best.error else poor + 1
        if best is None or found.error < best.error:
            best = found
        if poor >= config.patience or monitor.stopped or best.error < perfect:
            break
    assert best is not None
    return best


def _select_rank(
    X: Array,
    observed: BoolArray,
    held_out: BoolArray,
    rank: int | None,
    ridge: float,
    perfect: float,
    monitor: Monitor,
    config: ALSConfig,
) -> RankSelection:
    """Select the rank for one ridge; with a given rank, only the last on the way is scored."""
    best, poor = None, 0
    ranks, training = ranks_to(rank, X.shape, config), observed & ~held_out
    growing = grow_factors(
        np.where(held_out, 0, X), training, ridge, ranks, monitor, config, rough=True
    )
    for reached, solution in growing:
        if rank is not None and reached != ranks[-1] and not monitor.stopped:
            continue
        factors = solution.state.factors
        error = float(np.mean(np.abs((factors.U @ factors.V - X)[held_out])))
        poor = 0 if best is None or error < config.better * best.error else poor + 1
        if best is None or error < best.error:
            best = RankSelection(reached, ridge, error, factors)
        if poor >= config.patience or error < perfect:
            break
    assert best is not None
    return best


def fit_low_rank(
    X: Array, observed: BoolArray, selection: RankSelection, monitor: Monitor, config: ALSConfig
) -> tuple[Array, Subspace]:
    """Fit factors of a selected rank, constant feature included, to X, n x v.

    Returns X imputed, and the subspace that completes further rows. If the monitor stops the fit on
    the way, the factors of the selection are taken.
    """
    X1, seen, constant = with_constant(X, observed)
    config = config.for_table(X1.shape)
    ranks = ranks_to(selection.rank, X1.shape, config)
    *_, (rank, solution) = grow_factors(X1, seen, selection.ridge, ranks, monitor, config)
    factors = solution.state.factors if rank == selection.rank else selection.factors
    model = Subspace(factors.orthogonal(), selection.ridge * spectral_norm(X1), constant)
    return np.where(observed, X, (factors.U @ factors.V)[:, :-1]), model


def with_constant(X: Array, observed: BoolArray) -> tuple[Array, BoolArray, float]:
    """Return X, n x m, with 0 where missing and a constant feature of the size of the others."""
    n = len(X)
    constant = float(np.sqrt(np.mean(X[observed] ** 2))) or 1.0
    X1 = np.column_stack([np.where(observed, X, 0), np.full(n, constant)])
    return X1, np.column_stack([observed, np.ones(n, bool)]), constant


def start_subspace(
    X: Array,
    observed: BoolArray,
    rank: int | str,
    rng: np.random.Generator,
    ridge: float | None = None,
) -> tuple[Array, float]:
    """Return V, r x m, for codes of variance 1, and the variance that it leaves unexplained.

    For online methods, which start from the first rows, n x m, with 0 where not observed. The
    variance is that on held-out entries. A method without a ridge needs a smaller rank, which a
    small ridge here leads to.
    """
    config = ALSConfig()
    r = None if rank == "auto" else check_rank(int(rank), X.shape)
    if not X.any():
        return np.eye(r or 1, X.shape[1]), config.default_ridge
    held_out = mask_entries(observed, rng, selecting=True)
    selection = select_rank(
        X, observed, held_out, rank=r, ridge=ridge, monitor=Monitor(), config=config
    )
    if np.isnan(selection.error):
        return selection.factors.standard(), config.default_ridge
    # The mean absolute value of a normal variable is sqrt(2 / pi) standard deviations.
    return selection.factors.standard(), np.pi / 2 * selection.error**2
