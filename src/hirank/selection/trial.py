"""Records of a search: its data, its trials, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.bounds import Bounds
from hirank.core.threads import Workers
from hirank.models.dictionary import RowModel
from hirank.models.factor_analysis import GaussianModel
from hirank.models.stacking import Stack, selection_loss, stacking_weights
from hirank.models.temporal_smoother import TemporalSmoother
from hirank.optim.path import SolverConfig
from hirank.optim.trace import Monitor, TrialFinished
from hirank.selection.config import SearchConfig

FIT_FAILURES = (np.linalg.LinAlgError, FloatingPointError, ValueError)
"""Errors that a fit may end in for numerical reasons; another family may still succeed."""

MAX_TRIALS, MAX_NAME = 1000, 200
"""Trials, and characters in the names of families and kernels, of a model file."""

PARAMETERS = ("kernel", "n_components", "bandwidth", "beta", "noise", "ridge")
"""Parameters of families, in the order of the columns of ``search_results_``."""


@dataclass(frozen=True)
class SearchData:
    """The table that models are compared on, the entries held out, and what every fit needs."""

    X: Array  # n x v; 0 where not observed
    observed: BoolArray  # n x v
    folds: list[BoolArray]  # entries that are held out together, n x v each
    judged: BoolArray  # n x v; held-out entries that are like the missing ones
    unlike: float  # part of the missing entries that no held-out entry is like
    means: Array  # v; column means, to which errors are relative
    spread: Array  # v; spread of each feature in units of the data
    config: SearchConfig
    solver: SolverConfig  # of the solver of dictionaries
    n_init: int | None  # models of a family to average; None: as many as is worth it
    bounds: Bounds | None
    workers: Workers
    monitor: Monitor
    rng: np.random.Generator
    refits: dict[int, list[Refit]] = field(default_factory=dict, repr=False)  # by id of the trial

    @property
    def truth(self) -> Array:
        """The values of the held-out entries of all folds, h."""
        return np.concatenate([self.X[held_out] for held_out in self.folds])

    @property
    def training(self) -> list[BoolArray]:
        """The entries that each fold leaves to fit on, n x v each."""
        return [self.observed & ~held_out for held_out in self.folds]

    @property
    def is_large(self) -> bool:
        """Whether time counts more than the last percent of an error."""
        return self.X.size >= self.config.large_size

    def step_cost(self, r: int) -> float:
        """Return the multiplications of a step of a dictionary of r points, for `Workers.map`."""
        n, v = self.X.shape
        return 1.0 * n * r * (r + v)

    @property
    def is_narrow(self) -> bool:
        """Whether rows with held-out entries are left with far fewer than incomplete rows have."""
        missing = (~self.observed).sum(axis=1)
        if not missing.any():
            return False
        pairs = zip(self.training, self.folds, strict=True)
        left = np.concatenate([one.sum(axis=1)[np.nonzero(held)[0]] for one, held in pairs])
        observed = float(np.average(self.observed.sum(axis=1), weights=missing))
        return observed > 0 and float(left.mean()) <= self.config.exact.max_left * observed

    def is_noisy(self, loss: float) -> bool:
        """Return whether a table on which the best family has this loss is very noisy."""
        return self.config.noisy_error < loss < np.inf and not self.is_narrow

    def compared_folds(self) -> SearchData:
        """Return the same data with the folds on which the models of a family are compared.

        That is the first one; on narrow tables it is left to chance what one fold recovers.
        """
        return self if self.is_narrow else replace(self, folds=self.folds[:1])

    def can_improve(self, trial: Trial, others: Sequence[Trial | None]) -> bool:
        """Return whether a trial has weight beside the best of others, on the folds of this data.

        Where errors at held-out entries are larger than those at missing ones, any trial may.
        """
        if self.is_narrow:
            return True
        rivals = [one for one in others if one is not None and one is not trial]
        n = len(self.folds)
        best = min(rivals, key=lambda one: self.loss(one.filled[:n]), default=None)
        if best is None:
            return True
        imputed = np.stack([self.at_held_out(one.filled[:n]) for one in (best, trial)], axis=1)
        return bool(stacking_weights(imputed, self.truth)[1] > 0)

    def at_held_out(self, tables: Sequence[Array]) -> Array:
        """Return the held-out entries of tables, n x v, one per fold, as h values."""
        return np.concatenate([T[held_out] for T, held_out in zip(tables, self.folds, strict=True)])

    def loss(self, filled: Sequence[Array]) -> float:
        """Return the loss by which trials are compared: see `selection_loss`."""
        return selection_loss(self.at_held_out(filled) - self.truth)

    def stacked_loss(self, tables: Sequence[Sequence[Array]]) -> float:
        """Return the loss of the stack of several models, of which each has a table per fold."""
        imputed = np.stack([self.at_held_out(one) for one in tables], axis=1)
        return selection_loss(imputed @ stacking_weights(imputed, self.truth) - self.truth)

    def error(self, filled: Sequence[Array]) -> float:
        """Return the root mean square error at held-out entries; that of column means is 1."""
        columns = np.concatenate([np.nonzero(held_out)[1] for held_out in self.folds])
        scale = _rms(self.truth - self.means[columns])
        return _rms(self.at_held_out(filled) - self.truth) / scale if scale else np.nan


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


class Refit(NamedTuple):
    """A model that was fitted to all observed entries."""

    filled: Array  # n x v
    model: RowModel


class Candidate(Protocol):
    """A family of models that can be scored on held-out entries and refitted."""

    family: ClassVar[str]

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield scored models, cheapest first; `best` is the best trial of other families."""

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit the model of `trial` to all observed entries, at most `n_models` times."""


@dataclass(frozen=True)
class Trial:
    """A model that was fitted without the held-out entries, and how well it imputed them."""

    candidate: Candidate
    family: str
    label: str  # the family with its size, for messages
    params: dict[str, Any]
    filled: list[Array] = field(repr=False)  # imputed tables, n x v, one per fold
    loss: float  # by which trials are compared, in standard deviations
    error: float  # root mean square, column mean = 1
    seconds: float
    state: Any = field(default=None, repr=False)  # from which the candidate refits
    linear: bool = False
    rejected: bool = False  # True: another trial of the family is preferred whatever the loss
    failure: str = ""

    @classmethod
    def scored(
        cls,
        candidate: Candidate,
        label: str,
        params: dict[str, Any],
        filled: list[Array],
        data: SearchData,
        seconds: float,
        *,
        family: str = "",
        state: Any = None,
        linear: bool = False,
        rejected: bool = False,
    ) -> Trial:
        """Return a trial with its errors at the held-out entries."""
        return cls(
            candidate,
            family or candidate.family,
            label,
            params,
            filled,
            data.loss(filled),
            data.error(filled),
            seconds,
            state,
            linear,
            rejected,
        )

    @classmethod
    def failed(cls, candidate: Candidate, error: Exception) -> Trial:
        """Return the trial of a family that could not be fitted."""
        name, params = candidate.family, {"n_components": 0}
        return cls(candidate, name, name, params, [], np.inf, np.inf, 0.0, failure=str(error))

    def report(self, data: SearchData) -> Trial:
        """Send the progress event of this trial, and return it."""
        data.monitor.notify(
            TrialFinished(self.family, self.label, self.error, data.monitor.seconds)
        )
        return self

    def result(self, weight: float) -> TrialResult:
        """Return what remains of a trial after the search."""
        return TrialResult(
            self.family,
            self.label,
            {name: self.params[name] for name in PARAMETERS if name in self.params},
            self.loss,
            self.error,
            self.seconds,
            weight,
            self.failure,
        )


@dataclass(frozen=True)
class TrialResult:
    """A row of ``search_results_``."""

    family: str
    label: str
    params: dict[str, str | int | float]
    loss: Annotated[float, Shape("", finite=False)]
    error: Annotated[float, Shape("", finite=False)]
    seconds: float
    weight: float  # in the stack
    failure: str = ""

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if max(map(len, (self.family, str(self.params.get("kernel"))))) > MAX_NAME:
            raise ValueError(f"names must have at most {MAX_NAME} characters")
        for name, value in self.params.items():
            if name not in PARAMETERS or isinstance(value, str) != (name == "kernel"):
                raise ValueError(f"unknown parameter {name!r:.40} with the value {value!r:.40}")
        if not 0 <= self.weight <= 1:
            raise ValueError(f"weight must be between 0 and 1; got {self.weight!r}")


@dataclass(frozen=True)
class HeldOut:
    """The h held-out entries, and what was imputed for them, in scaled units."""

    rows: Annotated[IntArray, Shape("h")]
    columns: Annotated[IntArray, Shape("h")]  # among the v features that vary
    truth: Annotated[Array, Shape("h")]
    imputed: Annotated[Array, Shape("h")]  # by the stack
    by_family: Annotated[Array, Shape("h c")]  # by each family with a positive weight
    linear: Annotated[Array, Shape("h", finite=False)]  # by the best linear family; NaN without one
    deviation: Annotated[Array, Shape("h")]  # given by the mixture; 0 without one

    def take(self, index: BoolArray | slice) -> HeldOut:
        """Return some of the entries."""
        return HeldOut(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def at_rows(self, rows: IntArray) -> HeldOut:
        """Return the entries with their row numbers among `rows` of a larger table."""
        return replace(self, rows=rows[self.rows])

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if not len(self.truth) or not self.by_family.shape[1]:
            raise ValueError("there must be at least one entry and one family")
        if min(self.rows.min(), self.columns.min(), self.deviation.min()) < 0:
            raise ValueError("rows, columns and deviation must not be negative")
        if np.isinf(self.linear).any():
            raise ValueError("linear must be finite or NaN")


@dataclass(frozen=True)
class SearchResult:
    """All trials with their stacking weights, and the held-out entries."""

    trials: tuple[TrialResult, ...]
    held_out: HeldOut | None  # None: too few entries to hold any out
    unlike: float = 0.0  # part of the missing entries that no held-out entry is like

    @property
    def selected(self) -> list[TrialResult]:
        """The trials with a positive weight."""
        return [trial for trial in self.trials if trial.weight]

    def describe(self) -> str:
        """Return what was selected, as a sentence."""
        parts = [f"{round(100 * trial.weight)} % {trial.label}" for trial in self.selected]
        what = self.selected[0].label if len(parts) == 1 else " + ".join(parts)
        if self.held_out is None:
            return f"Fitted without a selection: {what}."
        return f"Selected on {len(self.held_out.truth)} held-out entries: {what}."

    def to_columns(self) -> dict[str, NDArray[Any]]:
        """Return the trials in columns, like ``cv_results_``; NaN or "" where there is no value."""
        columns: dict[str, NDArray[Any]] = {
            "family": np.array([trial.family for trial in self.trials])
        }
        for name in PARAMETERS:
            default: Any = "" if name == "kernel" else np.nan
            columns[name] = np.array([trial.params.get(name, default) for trial in self.trials])
        for name in ("error", "loss", "seconds", "weight"):
            columns[name] = np.array([getattr(trial, name) for trial in self.trials])
        columns["failure"] = np.array([trial.failure for trial in self.trials], dtype=object)
        return columns

    def at_rows(self, rows: IntArray) -> SearchResult:
        """Return the result with held-out entries at `rows` of a larger table."""
        held_out = None if self.held_out is None else self.held_out.at_rows(rows)
        return replace(self, held_out=held_out)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        if len(self.trials) > MAX_TRIALS:
            raise ValueError(f"there must be at most {MAX_TRIALS} trials; got {len(self.trials)}")
        if not self.selected:
            raise ValueError("no trial has a positive weight")
        if not 0 <= self.unlike <= 1:
            raise ValueError(f"unlike must be between 0 and 1; got {self.unlike!r}")


class Selected(NamedTuple):
    """What a search hands to the estimator."""

    filled: Array  # n x v
    spread: Array  # n x v; how far the families of the stack are apart
    stack: Stack
    mixture: GaussianModel | None  # gives the conditional deviations of imputed values
    smoother: TemporalSmoother | None  # only with times
    result: SearchResult
    error_factor: float  # errors of the refitted models over those at held-out entries
