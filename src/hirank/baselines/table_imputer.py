"""What the baselines share as estimators of a whole table; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hirank._checks import Rule, count, number
from hirank._typing import Array, BoolArray
from hirank.estimators.base import BaseImputer, FitData
from hirank.estimators.fitted import FittedTable
from hirank.exceptions import StopReason
from hirank.models.dictionary import RowModel
from hirank.models.low_rank import Subspace
from hirank.optim.trace import Monitor

TABLE_RULES: dict[str, Rule] = {"max_iter": count(), "tol": number(least=0)}


class TableFit(NamedTuple):
    """The result of a fit to a scaled table."""

    filled: Array  # n x v
    model: RowModel
    reason: StopReason
    details: dict[str, Any]  # further fitted attributes, by name without the underscore
    stage: tuple[int, int] | None = None  # as in `describe_stop`


@dataclass(eq=False, repr=False)
class TableImputer(BaseImputer[FittedTable]):
    """An imputer whose fit runs under the one loop.

    A subclass declares the rules of its parameters (``_rules``) and fits a scaled table
    (``_fit_table``).
    """

    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4

    _rules: ClassVar[dict[str, Rule]] = TABLE_RULES
    _quantity: ClassVar[str] = "the objective"  # that `tol` limits the change of

    @property
    def objective_(self) -> float:
        return self._fitted.run.objective

    @abstractmethod
    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        """Fit a model to scaled rows, n x v, each with an observed entry.

        With v = 0 there is nothing to fit.
        """

    def _fit_data(self, data: FitData) -> tuple[FittedTable, Array, dict[str, Any]]:
        monitor, X, observed = Monitor(data.callback), data.X, data.known
        fit = self._fit_table(X, observed, monitor)
        run = monitor.finish(
            fit.reason,
            tol=self.tol,
            max_iter=self.max_iter,
            quantity=self._quantity,
            stage=fit.stage,
        )
        fitted = FittedTable(data.columns, fit.model, run, data.seconds)
        return fitted, np.where(observed, X, fit.filled), fit.details

    def _in_data_units(self, basis: Array) -> Array:
        """Return rows of a basis, r x v or wider, in the units of the kept features, r x k."""
        spread = self._fitted.columns.scaling.spread
        varying = spread > 0
        rows = np.zeros((len(basis), len(spread)))
        rows[:, varying] = basis[:, : varying.sum()] * spread[varying]
        return rows


@dataclass(eq=False, repr=False)
class LinearImputer(TableImputer):
    """An imputer that completes new rows from a subspace."""

    @property
    def components_(self) -> Array:
        model = self._fitted.model
        assert isinstance(model, Subspace)
        return self._in_data_units(model.basis)


NO_SUBSPACE = Subspace(np.zeros((0, 0)), 1.0)  # the model of rows of which no feature varies
