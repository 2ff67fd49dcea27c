"""What the baselines share as estimators; no mathematics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

import numpy as np

from hirank._checks import AUTO_COUNT, AUTO_NUMBER, Rule, count, number, optional
from hirank._typing import Array, BoolArray
from hirank.estimators.base import BaseImputer, F, FitData, FitResult
from hirank.estimators.fitted import FittedTable
from hirank.estimators.validation import check_params
from hirank.exceptions import StopReason
from hirank.models.dictionary import RowModel
from hirank.models.low_rank import Subspace
from hirank.optim.trace import Monitor

M = TypeVar("M", bound=RowModel)

# A parameter has the same rule in every baseline that has it.
RULES: dict[str, Rule] = {
    **dict.fromkeys(("n_components", "rank", "n_landmarks"), AUTO_COUNT),
    **dict.fromkeys(("l1", "ridge", "threshold", "bandwidth", "smoothing"), AUTO_NUMBER),
    **dict.fromkeys(("power", "step"), number(above=0, most=1)),
    "cut": number(least=0, most=1),
    "max_iter": count(),
    "tol": number(least=0),
    "n_warmup": count(2),
    "n_passes": count(),
    "memory": optional(number(above=0)),
}


@dataclass(eq=False, repr=False)
class Baseline(BaseImputer[F], Generic[F, M]):
    """An imputer with a model of type M in its fitted record of type F."""

    @property
    def objective_(self) -> float:
        return self._fitted.run.objective

    @property
    def _model(self) -> M:
        return cast("M", self._fitted.model)

    def _check_params(self) -> None:
        super()._check_params()
        own = self.get_params(deep=False)
        check_params(self, {name: rule for name, rule in RULES.items() if name in own})

    def _in_data_units(self, basis: Array) -> Array:
        """Return rows of a basis, r x v or wider, in the units of the kept features, r x k."""
        spread = self._fitted.columns.scaling.spread
        varying = spread > 0
        rows = np.zeros((len(basis), len(spread)))
        rows[:, varying] = basis[:, : varying.sum()] * spread[varying]
        return rows


class TableFit(NamedTuple):
    """The result of a fit to a scaled table."""

    filled: Array  # n x v
    model: RowModel
    reason: StopReason
    details: dict[str, Any]  # further fitted attributes, by name without the underscore
    stage: tuple[int, int] | None = None  # as in `describe_stop`


@dataclass(frozen=True)
class FittedBaseline(FittedTable):
    """What a baseline learned from a table."""

    details: dict[str, Any]  # as in `TableFit`


@dataclass(eq=False, repr=False)
class TableImputer(Baseline[FittedBaseline, M]):
    """An imputer whose fit runs under the one loop.

    A subclass fits a scaled table (``_fit_table``).
    """

    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4

    _quantity: ClassVar[str] = "the objective"  # that `tol` limits the change of

    @abstractmethod
    def _fit_table(self, X: Array, observed: BoolArray, monitor: Monitor) -> TableFit:
        """Fit a model to scaled rows, n x v, each with an observed entry.

        With v = 0 there is nothing to fit.
        """

    def _max_steps(self) -> int | None:
        return None  # how far a path is followed is decided on the way

    def _attributes(self, fitted: FittedBaseline) -> dict[str, Any]:
        return {f"{name}_": value for name, value in fitted.details.items()}

    def _fit_data(self, data: FitData) -> FitResult[FittedBaseline]:
        monitor, X, observed = data.monitor(), data.X, data.known
        fit = self._fit_table(X, observed, monitor)
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "stage": fit.stage}
        run = monitor.finish(fit.reason, quantity=self._quantity, **limits)
        fitted = FittedBaseline(data.columns, fit.model, run, data.seconds, fit.details)
        return FitResult(fitted, np.where(observed, X, fit.filled))


@dataclass(eq=False, repr=False)
class LinearImputer(TableImputer[Subspace]):
    """An imputer that completes new rows from a subspace."""

    @property
    def components_(self) -> Array:
        return self._in_data_units(self._model.basis)


NO_SUBSPACE = Subspace(np.zeros((0, 0)), 1.0)  # the model of rows of which no feature varies
