"""What VMC and NLMC share as estimators; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.baselines._recorder import NOTHING, Completed, Recorder
from hirank.baselines.reweighted import Plan, complete_table
from hirank.estimators.base import Imputer
from hirank.estimators.validation import check_count, check_number, generator
from hirank.kernels import Kernel
from hirank.models.row_models import Dictionary
from hirank.optim.path import Stage
from hirank.optim.trace import Callback


@dataclass(eq=False, repr=False)
class IRLSImputer(Imputer):
    """Missing entries chosen such that the Schatten-p penalty of a kernel matrix is low.

    A subclass says which kernels are to be tried (``_plans``).
    """

    _: KW_ONLY
    power: float = 0.5
    smoothing: float | str = "auto"
    n_landmarks: int | str = "auto"
    max_iter: int = 150
    tol: float = 1e-3
    random_state: int | np.random.RandomState | None = None

    @abstractmethod
    def _plans(self, X: Array, observed: BoolArray) -> list[Plan]:
        """The ways to complete X, n x v, among which to choose."""

    def _check_parameters(self) -> None:
        check_number("power", self.power, above=0)
        if self.power > 1:
            raise ValueError(f"power must be at most 1; got {self.power!r}.")
        if self.smoothing != "auto":
            check_number("smoothing (if not 'auto')", self.smoothing, above=0)
        if self.n_landmarks != "auto":
            check_count("n_landmarks (if not 'auto')", self.n_landmarks)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, least=0)

    def _plan(self, kernel: Kernel, bandwidth: float = 1.0) -> Plan:
        return Plan(
            kernel,
            bandwidth,
            float(self.power),
            None if self.n_landmarks == "auto" else int(self.n_landmarks),
            None if self.smoothing == "auto" else float(self.smoothing),
            self.max_iter,
            self.tol,
        )

    def _most_steps(self) -> int:
        anything = np.ones((1, 1))
        plans = self._plans(anything, anything > 0)
        return (len(plans) + 1) * len(plans[0].stages) * self.max_iter

    def _learn(
        self, X: Array, observed: BoolArray, callback: Callback
    ) -> tuple[Completed, Dictionary]:
        record = Recorder(callback)
        if not X.shape[1]:
            plan = self._plans(np.ones((1, 1)), np.ones((1, 1), bool))[0]
            details = self._details(plan.kernel, plan.stages[0])
            return record.finish_with(X, NOTHING, **details), Dictionary(X, ())
        rng = generator(self.random_state)
        found = complete_table(X, observed, self._plans(X, observed), rng, record)
        last = found.plan.stages[len(found.settings) - 1]
        details = self._details(found.settings[-1].kernel, last)
        filled = np.where(observed, X, found.X)
        return record.finish_with(filled, found.reason, **details), Dictionary(
            found.D, found.settings
        )

    def _details(self, kernel: Kernel, last: Stage) -> dict[str, Any]:
        """What a user may want to know of the last stage."""
        details: dict[str, Any] = {"kernel": kernel, "smoothing": last.beta}
        return details | ({"bandwidth": last.bandwidth} if hasattr(self, "bandwidth") else {})
