"""Dictionaries fitted along a path of stages, on all folds of a table at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from hirank._text import plural
from hirank._typing import Array, BoolArray
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.models.stacking import selection_loss
from hirank.optim.early_stopping import AS_GOOD, gains_nothing, is_past_minimum
from hirank.optim.lbfgs import LBFGS
from hirank.optim.path import PathPoint, Setting, SolverConfig, Stage, minimize_path
from hirank.optim.restarts import restart_samples
from hirank.optim.trace import TrialFinished
from hirank.selection.growth import Growing
from hirank.selection.trial import SearchData


@dataclass(frozen=True)
class DictionarySpec:
    """What defines a dictionary before it is fitted: its kernel, path and number of points."""

    name: str  # of the kernel
    kernel: Kernel
    stages: tuple[Stage, ...]
    n_components: int
    first: int = 0  # the stage to begin with; the earlier ones would undo a good start


class StageEnd(NamedTuple):
    """The state of the fit of one fold at the end of a stage."""

    X: Array  # n x v
    D: Array  # r x v
    setting: Setting
    objective: float = np.nan


@dataclass(frozen=True)
class PathTrial:
    """A dictionary fitted on all folds: `ends[stage][fold]`, from the stage `first` on."""

    data: SearchData = field(repr=False)  # that it was fitted to
    spec: DictionarySpec
    first: int
    ends: list[list[StageEnd]]
    losses: list[float]  # at held-out entries, one per stage
    seconds: float
    n_passes: int = 1  # how often the path was fitted with all points

    @property
    def best(self) -> int:
        """The latest stage, counted from `first`, that is as good as any."""
        lowest = min(self.losses)
        return max(i for i, loss in enumerate(self.losses) if loss <= AS_GOOD * lowest)

    @property
    def last_stage(self) -> int:
        """The number of that stage on the whole path."""
        return self.first + self.best

    @property
    def loss(self) -> float:
        return self.losses[self.best]

    @property
    def filled(self) -> list[Array]:
        """The imputed tables, n x v, one per fold."""
        return [end.X for end in self.ends[self.best]]

    @property
    def label(self) -> str:
        return f"dictionary ({self.spec.name}, {plural(self.spec.n_components, 'point')})"


@dataclass(frozen=True)
class PathFitter:
    """Fits dictionaries to the folds of a table along the stages of a specification.

    A search has the first fold only; the others are fitted to what it has found.
    """

    data: SearchData
    solver: SolverConfig
    restarts: bool = True  # of rows that fit badly, between stages
    rough: bool = False  # True: a path ends with the first stage that gains less than `min_gain`
    min_gain: float = 0.0

    def is_finished(self, trial: PathTrial) -> bool:
        """Return whether no further stage of a trial is worth fitting."""
        all_fitted = trial.first + len(trial.ends) == len(trial.spec.stages)
        return all_fitted or self._is_over(trial.losses)

    def _is_over(self, losses: Sequence[float]) -> bool:
        return gains_nothing(losses, self.min_gain) if self.rough else is_past_minimum(losses)

    def probe(
        self,
        spec: DictionarySpec,
        tables: Sequence[Array],
        n_stages: int | None,
        max_first: float = np.inf,
    ) -> PathTrial:
        """Fit the first stages (None: all), starting from one imputed table, n x v, per fold.

        With more than `max_first` of loss after the first stage, the path ends.
        """
        starts = [
            (X, self.sample_points(X, training, spec.n_components, prefer_observed=fold == 0))
            for fold, (X, training) in enumerate(zip(tables, self.data.training, strict=True))
        ]
        last = len(spec.stages) if n_stages is None else spec.first + n_stages
        return self._fit_folds(spec, starts, spec.first, last, max_first=max_first)

    def resume(self, trial: PathTrial) -> PathTrial:
        """Fit the stages that are left."""
        stage = trial.first + len(trial.ends)
        starts = [
            self._restart(stage - 1, end, training, trial.spec)
            for end, training in zip(trial.ends[-1], self.data.training, strict=True)
        ]
        more = self._fit_folds(trial.spec, starts, stage, len(trial.spec.stages), trial.losses)
        return replace(
            trial,
            ends=trial.ends + more.ends,
            losses=trial.losses + more.losses,
            seconds=trial.seconds + more.seconds,
        )

    def enlarge(self, trial: PathTrial, r: int, max_loss: float) -> PathTrial:
        """Fit more points from the best stage on; later stages too if the loss is low enough.

        The first of these stages ends early if the loss does not fall from the start.
        """
        first = trial.last_stage
        starts = []
        for end, training in zip(trial.ends[trial.best], self.data.training, strict=True):
            new = self.sample_points(end.X, training, r - len(end.D))
            starts.append((end.X, np.vstack([end.D, new])))
        spec = replace(trial.spec, n_components=r)
        larger = self._fit_folds(spec, starts, first, first + 1, required=max_loss / trial.loss)
        if self.is_finished(larger) or self.data.monitor.late or larger.loss > max_loss:
            return larger
        return self.resume(larger)

    def repeat(self, trial: PathTrial) -> PathTrial:
        """Fit the whole path with all points of a dictionary that grew, from its imputed tables."""
        starts = [
            (end.X, self.sample_points(end.X, training, trial.spec.n_components))
            for end, training in zip(trial.ends[trial.best], self.data.training, strict=True)
        ]
        again = self._fit_folds(trial.spec, starts, trial.spec.first, trial.last_stage + 1)
        return replace(again, n_passes=trial.n_passes + 1)

    def fit_other_folds(self, trial: PathTrial, tables: Sequence[Array]) -> PathTrial:
        """Return a trial on some folds with the others, from one imputed table per fold.

        They are fitted with all points from the first stage on, also if the dictionary grew, and as
        often as the first folds were.
        """
        spec, last = trial.spec, trial.best
        began, ends = perf_counter(), [[*stage] for stage in trial.ends[: last + 1]]
        done = len(ends[0])
        for X, training in zip(tables[done:], self.data.training[done:], strict=True):
            for _ in range(trial.n_passes):
                D = self.sample_points(X, training, spec.n_components)
                numbers = range(spec.first, trial.last_stage + 1)
                fitted = self.fit_stages(training, spec, X, D, numbers)
                X = fitted[-1].X
            fitted += fitted[-1:] * (trial.last_stage + 1 - spec.first - len(fitted))  # stopped
            for stage, end in zip(ends, fitted[trial.first - spec.first :], strict=True):
                stage.append(end)
        seconds = trial.seconds + perf_counter() - began
        losses = trial.losses[: last + 1]
        return replace(trial, data=self.data, ends=ends, losses=losses, seconds=seconds)

    def sample_points(
        self, X: Array, observed: BoolArray, r: int, *, prefer_observed: bool = False
    ) -> Array:
        """Return r rows of X, n x v, at random, or those with the most observed entries."""
        order = self.data.rng.random(len(X))
        if prefer_observed:
            order += observed.sum(axis=1)
        return X[np.sort(np.argsort(-order)[:r])].copy()

    def fit_stages(
        self,
        observed: BoolArray,
        spec: DictionarySpec,
        X: Array,
        D: Array,
        numbers: range,
        solver: LBFGS | None = None,
    ) -> list[StageEnd]:
        """Fit some stages of a path to one table, and return the state at the end of each."""
        ends: list[StageEnd] = []
        stages = [spec.stages[i] for i in numbers]

        def between(number: int, end: PathPoint) -> tuple[Array, Array]:
            ends.append(StageEnd(end.X, end.D, end.setting))
            last = number + 1 == len(stages)
            return (
                (end.X, end.D) if last else self._restart(numbers[number], ends[-1], observed, spec)
            )

        data, solver = self.data, solver or self._solver(observed)
        result = minimize_path(
            solver, spec.kernel, stages, (X, D), self.solver, data.monitor, between
        )
        if len(ends) == len(result.settings):
            ends.pop()
        return [*ends, StageEnd(result.X, result.D, result.settings[-1], result.objective)]

    def _fit_folds(
        self,
        spec: DictionarySpec,
        starts: Sequence[tuple[Array, Array]],
        first: int,
        last: int,
        losses_before: Sequence[float] = (),
        required: float | None = None,
        max_first: float = np.inf,
    ) -> PathTrial:
        """Fit stages `first` to `last` stage by stage, so that all folds stop at the same one."""
        began, losses = perf_counter(), [*losses_before]
        ends: list[list[StageEnd]] = []
        states = list(starts)
        for stage in range(first, last):
            ends.append(self._fit_stage(spec, states, stage, required))
            losses.append(self.data.loss([end.X for end in ends[-1]]))
            # A refit to all entries gains more than the stages that would take its time.
            over = self._is_over(losses) or (stage == first and losses[-1] > max_first)
            if self.data.monitor.late or over or stage + 1 == last:
                break
            states = [
                self._restart(stage, end, observed, spec)
                for end, observed in zip(ends[-1], self.data.training, strict=True)
            ]
        own = losses[len(losses_before) :]
        trial = PathTrial(self.data, spec, first, ends, own, perf_counter() - began)
        error = self.data.error(trial.filled)
        self.data.monitor.notify(
            TrialFinished("dictionary", trial.label, error, self.data.monitor.seconds)
        )
        return trial

    def _fit_stage(
        self,
        spec: DictionarySpec,
        states: Sequence[tuple[Array, Array]],
        stage: int,
        required: float | None,
    ) -> list[StageEnd]:
        """Fit a stage on all folds, from their tables and points."""

        def fit(fold: int) -> StageEnd:
            X, D = states[fold]
            solver = self._solver(training[fold])
            if required is not None:
                solver = self._on_approval(solver, fold, X, required)
            numbers = range(stage, stage + 1)
            return self.fit_stages(training[fold], spec, X, D, numbers, solver)[-1]

        data, training = self.data, self.data.training
        cost = len(training) * data.step_cost(len(states[0][1]))
        return [*data.workers.map(fit, range(len(training)), cost)]

    def _solver(self, observed: BoolArray) -> LBFGS:
        data = self.data
        return LBFGS(observed, data.workers, bounds=data.bounds, tol=self.solver.tol)

    def _on_approval(self, solver: LBFGS, fold: int, X: Array, required: float) -> Growing:
        """Return a solver that ends when X, n x m, does not improve at the entries of a fold."""
        held_out, data = self.data.folds[fold], self.data
        truth = data.X[held_out]

        def loss(X: Array) -> float:
            return selection_loss(X[held_out] - truth)

        return Growing(
            solver.observed,
            solver.workers,
            bounds=solver.bounds,
            tol=solver.tol,
            loss=loss,
            before=loss(X),
            required=required,
            config=data.config.growth,
        )

    def _restart(
        self, stage: int, end: StageEnd, observed: BoolArray, spec: DictionarySpec
    ) -> tuple[Array, Array]:
        """Return where the next stage starts: some samples from better places."""
        if not self.restarts or stage not in RESTART_AFTER or stage + 1 >= len(spec.stages):
            return end.X, end.D
        data = self.data
        return restart_samples(end.X, end.D, observed, end.setting, data.workers, data.bounds)
