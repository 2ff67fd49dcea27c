"""What VMC and NLMC share as estimators; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from hirank._checks import Rule, count, number, optional
from hirank._typing import Array, BoolArray
from hirank.baselines.reweighted import PenaltyPath, fit_irls
from hirank.baselines.table_imputer import TABLE_RULES, TableFit, TableImputer
from hirank.estimators.validation import make_rng
from hirank.exceptions import StopReason
from hirank.kernels import Kernel
from hirank.models.dictionary import Dictionary
from hirank.optim.path import Stage
from hirank.optim.trace import Monitor

IRLS_RULES: dict[str, Rule] = {
    "power": number(above=0, most=1),
    "smoothing": optional(number(above=0), "auto"),
    "n_landmarks": optional(count(), "auto"),
    **TABLE_RULES,
}


@dataclass(eq=False, repr=False)
class IRLSImputer(TableImputer):
    """Imputes such that the Schatten-p penalty of a kernel matrix is low.

    A subclass returns the kernels that are compared, with their paths (``_paths``).
    """

    _: KW_ONLY
    power: float = 0.5
    smoothing: float | str = "auto"
    n_landmarks: int | str = "auto"
    max_iter: int = 150
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None

    _rules: ClassVar[dict[str, Rule]] = IRLS_RULES
    _quantity: ClassVar[str] = "the penalty"

    @abstractmethod
    def _paths(self, X: Array, observed: BoolArray) -> list[PenaltyPath]:
        """Return the paths for X, n x v, from which the best is selected."""

    def _path(self, kernel: Kernel, bandwidth: float = 1.0) -> PenaltyPath:
        return PenaltyPath(
            kernel,
            bandwidth,
            float(self.power),
            None if self.n_landmarks == "auto" else int(self.n_landmarks),
            None if self.smoothing == "auto" else float(self.smoothing),
            self.max_iter,
            self.tol,
        )

    def _max_steps(self) -> int:
        paths = self._paths(*_ANY_TABLE)
        return (len(paths) + 1) * len(paths[0].stages) * self.max_iter

    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        if not X.shape[1]:
            path = self._paths(*_ANY_TABLE)[0]
            details = self._details(path.kernel, path.stages[0])
            return TableFit(X, Dictionary(X, ()), StopReason.NOTHING_TO_FIT, details)
        paths, rng = self._paths(X, observed), make_rng(self.random_state)
        fit = fit_irls(X, observed, paths, rng, monitor)
        reached, stages = len(fit.settings), fit.path.stages
        details = self._details(fit.settings[-1].kernel, stages[reached - 1])
        early = (reached, len(stages)) if reached < len(stages) else None
        return TableFit(fit.X, Dictionary(fit.D, fit.settings), fit.reason, details, early)

    def _details(self, kernel: Kernel, last: Stage) -> dict[str, Any]:
        """Return the fitted attributes that describe the last stage."""
        details: dict[str, Any] = {"kernel": kernel, "smoothing": last.beta}
        return details | ({"bandwidth": last.bandwidth} if hasattr(self, "bandwidth") else {})


_ANY_TABLE = np.ones((1, 1)), np.ones((1, 1), bool)
