"""Nuclear norm minimization by an augmented Lagrangian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from hirank._checks import Rule, number
from hirank._typing import Array, BoolArray
from hirank.baselines.base import NO_SUBSPACE, LinearImputer, TableFit
from hirank.core.svt import shrink, spectral_norm
from hirank.exceptions import StopReason
from hirank.models.low_rank import Subspace, make_basis
from hirank.optim.loop import minimize
from hirank.optim.trace import Monitor

FIRST_WEIGHT = 1.25  # of the constraint, over the largest singular value of the table
# The weight follows the residuals: one that only grows by 1.5 a step ends before the solution
# (docs/notes/baselines.md).
MAX_RATIO = 10.0  # of the two residuals, beyond which the weight changes
FACTOR = 1.5  # by which it does


@dataclass(eq=False, repr=False)
class NNM(LinearImputer):
    """Imputation by nuclear norm minimization: the least sum of singular values that fits.

    Minimizes |A|_* over all tables A that agree with X in the observed entries (Candes and Recht
    2009), by the inexact augmented Lagrangian method: A by singular value thresholding, the missing
    entries, and the multipliers in turn, with the weight of the constraint adapted until both
    residuals vanish. Exact for tables of low rank with few missing entries. There is nothing
    to select.

    Parameters
    ----------
    max_iter : int, default=1000
        Steps, at most.
    tol : float, default=1e-5
        Steps end when both residuals are below this fraction of the table.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`. ``scale=False`` is the problem as its authors state it.

    Attributes
    ----------
    rank_ : int
        Of the completed table, A.
    components_ : array, rank_ x n_features_kept
        Right singular vectors of A, each times the square root of its singular value; in the units
        of the data.
    objective_, n_iter_, stop_reason_, trace_, has_values_, n_features_in_, feature_names_in_
        As in :class:`hirank.KFMC`. The objective is the nuclear norm; it may rise on the way.

    Notes
    -----
    ``transform`` gives a new sample the shortest code in these components that fits its observed
    entries: for fixed components, the same problem for one more sample.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.baselines import NNM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12))
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> model = NNM(scale=False)
    >>> filled = model.fit_transform(X_missing)
    >>> bool(np.abs(filled - X).max() < 1e-2), model.rank_
    (True, 2)
    """

    _: KW_ONLY
    max_iter: int = 1000
    tol: float = 1e-5

    _rules: ClassVar[dict[str, Rule]] = {"tol": number(above=0)}
    _quantity: ClassVar[str] = "the table"

    def _max_steps(self) -> int:
        return self.max_iter

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            return TableFit(X, NO_SUBSPACE, StopReason.NOTHING_TO_FIT, {"rank": 0})
        known, reason = np.where(observed, X, 0), StopReason.NOTHING_TO_FIT
        Z = A = known
        if known.any():
            solver = AugmentedLagrangian(observed, float(np.linalg.norm(known)), self.tol)
            solution = minimize(solver, known, max_iter=self.max_iter, monitor=monitor)
            Z, A, reason = solution.state.Z, solution.state.A, solution.reason
        basis = make_basis(A)
        # Small enough to act as a constraint, large enough for the solve to keep its digits.
        ridge = 1e-8 * float(np.sum(basis**2)) / len(basis)
        return TableFit(Z, Subspace(basis, ridge), reason, {"rank": len(basis)})


@dataclass(frozen=True)
class LagrangianState:
    """The iterates Z and A, multipliers, and residuals in units of the table."""

    Z: Array  # n x m; X with its missing entries free
    A: Array  # n x m; of low rank
    Y: Array  # n x m; multipliers of Z = A
    weight: float  # of the constraint in the next step
    objective: float = np.inf  # nuclear norm of A
    primal: float = np.inf
    dual: float = np.inf


@dataclass(frozen=True)
class AugmentedLagrangian:
    """Solver for the table of least nuclear norm that agrees with X where observed.

    The augmented Lagrangian of Z = A is |A|_* + <Y, Z - A> + w/2 |Z - A|^2. The nuclear norm of A
    rises on the way, since A starts below the table.
    """

    observed: BoolArray  # n x m
    size: float  # of the table, in which residuals are measured
    tol: float
    monotone: ClassVar[bool] = False

    def init(self, start: Array) -> LagrangianState:
        weight = FIRST_WEIGHT / spectral_norm(start)
        return LagrangianState(start, start, np.zeros_like(start), weight)

    def step(self, state: LagrangianState) -> LagrangianState:
        missing, w, Y = ~self.observed, state.weight, state.Y
        A, nuclear = shrink(state.Z + Y / w, 1 / w)
        change = A[missing] - Y[missing] / w - state.Z[missing]
        Z = state.Z.copy()
        Z[missing] += change
        Y = Y + w * (Z - A)
        primal = float(np.linalg.norm(Z - A)) / self.size
        dual = float(np.linalg.norm(change)) / self.size
        if primal > MAX_RATIO * dual:
            w *= FACTOR
        elif dual > MAX_RATIO * primal:
            w /= FACTOR
        return LagrangianState(Z, A, Y, w, nuclear, primal, dual)

    def terminate(self, state: LagrangianState, objectives: Sequence[float]) -> bool:
        return max(state.primal, state.dual) <= self.tol
