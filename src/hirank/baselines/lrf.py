"""Low-rank factorization by alternating minimization."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines.base import NO_SUBSPACE, LinearImputer, TableFit
from hirank.core.masking import mask_entries
from hirank.core.svt import spectral_norm
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.models.als import ALSConfig, grow_factors, ranks_to, select_rank, with_constant
from hirank.models.low_rank import Subspace, check_rank
from hirank.optim.trace import Monitor


@dataclass(eq=False, repr=False)
class LRF(LinearImputer):
    """Imputation by low-rank factorization, X ~ U V, fitted by alternating least squares.

    Minimizes 1/2 sum over observed entries of (X - U V)^2 + ridge/2 (|U|^2 + |V|^2), for U given V
    and V given U in turn, while the rank grows step by step. A constant feature and one further
    dimension take care of what the means of observed entries miss. The linear counterpart of
    :class:`hirank.KFMC`: hard to beat where a table has low rank, and at a loss where not.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        At most the smaller side of the table. ``"auto"`` holds out a few observed entries and takes
        the rank, and the ridge unless given, that recovers them best.
    ridge : float or "auto", default="auto"
        Weight of the size of the factors, in units of the largest singular value of the scaled
        table with 0 at missing entries.
    max_iter : int, default=200
        Steps at the last rank, at most.
    tol : float, default=1e-4
        They end when the objective falls by less than this fraction in one.
    random_state : int, RandomState or None, default=None
        Selects the entries that are held out.
    scale, missing_values, add_indicator, keep_empty_features, verbose
        As in :class:`hirank.KFMC`.

    Attributes
    ----------
    rank_ : int
    ridge_ : float
    components_ : array, (rank_ + 1) x n_features_kept
        V, in coordinates in which codes are orthogonal; in the units of the data.
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
    >>> X_missing = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    >>> filled = LRF(rank=2, ridge=1e-8, scale=False).fit_transform(X_missing)
    >>> bool(np.abs(filled - X).max() < 1e-3)
    True
    """

    rank: int | str = "auto"
    ridge: float | str = "auto"
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-4
    random_state: int | np.random.RandomState | None = None

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        reason = StopReason.NOTHING_TO_FIT
        if not X.shape[1]:
            return TableFit(X, NO_SUBSPACE, reason, {"rank": 0, "ridge": 0.0})
        rank = None if self.rank == "auto" else check_rank(int(self.rank), X.shape) + 1
        ridge = None if self.ridge == "auto" else float(self.ridge)
        X1, seen, constant = with_constant(X, observed)
        config = ALSConfig(max_iter=self.max_iter, tol=self.tol)
        if rank is None or ridge is None:
            held_out = mask_entries(observed, make_rng(self.random_state), selecting=True)
            held_out = np.column_stack([held_out, np.zeros(len(X), bool)])
            rank, ridge, _, factors = select_rank(
                X1, seen, held_out, rank=rank, ridge=ridge, monitor=monitor, config=config
            )
        if not monitor.stopped:
            ranks = ranks_to(rank, X1.shape, config)
            *_, (rank, solution) = grow_factors(X1, seen, ridge, ranks, monitor, config)
            factors, reason = solution.state.factors, solution.reason
        model = Subspace(factors.orthogonal(), ridge * spectral_norm(X1), constant)
        filled = (factors.U @ factors.V)[:, :-1]
        return TableFit(filled, model, reason, {"rank": max(1, rank - 1), "ridge": ridge})
