"""Walks of dictionaries along their paths, on all folds of a table at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import Bounds
from hirank.kernels import Kernel
from hirank.models.fit_dictionary import RESTART_AFTER
from hirank.optim.early_stopping import AS_GOOD, HOPELESS, PATIENCE
from hirank.optim.lbfgs import LBFGS
from hirank.optim.path import PathPoint, Setting, SolverConfig, Stage, minimize_path
from hirank.optim.restarts import restart_samples
from hirank.selection.candidates import Bench, Tried


@dataclass(frozen=True)
class Recipe:
    """What makes a dictionary: its kernel, path and size."""

    name: str
    kernel: Kernel
    stages: tuple[Stage, ...]
    n_components: int


class Step(NamedTuple):
    """Where the walk of one fold stood at the end of a stage."""

    X: Array  # n x v
    D: Array  # r x v
    setting: Setting
    objective: float = np.nan


@dataclass(frozen=True)
class Walks:
    """A recipe tried on all folds: `steps[stage][fold]`, from the stage `first` on."""

    recipe: Recipe
    first: int
    steps: list[list[Step]]
    errors: list[float]
    seconds: float

    @property
    def best(self) -> int:
        """The latest stage, counted from `first`, that is as good as any."""
        lowest = min(self.errors)
        return max(i for i, error in enumerate(self.errors) if error <= AS_GOOD * lowest)

    @property
    def error(self) -> float:
        return self.errors[self.best]

    @property
    def ended(self) -> bool:
        """Whether there is no further stage to try."""
        return self.first + len(self.steps) == len(self.recipe.stages) or _is_past(self.errors)


@dataclass(frozen=True)
class Walker:
    """Walks dictionaries of a bench's table along the stages of a recipe."""

    bench: Bench
    options: SolverConfig
    bounds: Bounds | None
    rng: np.random.Generator

    def probe(self, recipe: Recipe, tables: Sequence[Array], stages: int | None) -> Walks:
        """Walk the first stages of a recipe (None: all), from one table, n x v, per fold."""
        starts = [
            (X, self.points(X, seen, recipe.n_components, chance=fold > 0))
            for fold, (X, seen) in enumerate(zip(tables, self.bench.seen(), strict=True))
        ]
        return self._walks(recipe, starts, 0, stages or len(recipe.stages))

    def further(self, walks: Walks) -> Walks:
        """The stages that are left."""
        stage = walks.first + len(walks.steps)
        more = self._walks(
            walks.recipe,
            [
                self._looked(stage - 1, step, seen, walks.recipe)
                for step, seen in zip(walks.steps[-1], self.bench.seen(), strict=True)
            ],
            stage,
            len(walks.recipe.stages),
            walks.errors,
        )
        return replace(
            walks,
            steps=walks.steps + more.steps,
            errors=walks.errors + more.errors,
            seconds=walks.seconds + more.seconds,
        )

    def larger(self, walks: Walks, r: int, enough: float) -> Walks:
        """More points, from where fewer have led; on to later stages if the error is low enough."""
        first = walks.first + walks.best
        starts = []
        for step, seen in zip(walks.steps[walks.best], self.bench.seen(), strict=True):
            new = self.points(step.X, seen, r - len(step.D), chance=True)
            starts.append((step.X, np.vstack([step.D, new])))
        recipe = replace(walks.recipe, n_components=r)
        larger = self._walks(recipe, starts, first, first + 1)
        if larger.ended or self.bench.record.late or larger.error > enough:
            return larger
        return self.further(larger)

    def again(self, walks: Walks) -> Walks:
        """The whole path with all points of a dictionary that grew on its way, from its fills."""
        r = walks.recipe.n_components
        starts = [
            (step.X, self.points(step.X, seen, r, chance=True))
            for step, seen in zip(walks.steps[walks.best], self.bench.seen(), strict=True)
        ]
        return self._walks(walks.recipe, starts, 0, walks.first + walks.best + 1)

    def points(self, X: Array, seen: BoolArray, r: int, *, chance: bool) -> Array:
        """Some rows of X, n x v: those with the most entries, or any."""
        weight = self.rng.random(len(X))
        if not chance:
            weight += seen.sum(axis=1)
        return X[np.sort(np.argsort(-weight)[:r])].copy()

    def _walks(
        self,
        recipe: Recipe,
        starts: Sequence[tuple[Array, Array]],
        first: int,
        last: int,
        before: Sequence[float] = (),
    ) -> Walks:
        """Stages `first` to `last` on all folds, one stage at a time so that all end together."""
        began, errors = perf_counter(), [*before]
        steps: list[list[Step]] = []
        seen, states = self.bench.seen(), list(starts)
        for stage in range(first, last):
            ends = [
                self.walk(o, recipe, X, D, range(stage, stage + 1))[-1]
                for o, (X, D) in zip(seen, states, strict=True)
            ]
            steps.append(ends)
            errors.append(self.bench.error([step.X for step in steps[-1]]))
            if self.bench.record.stopped or _is_past(errors) or stage + 1 == last:
                break
            states = [
                self._looked(stage, step, o, recipe)
                for step, o in zip(steps[-1], seen, strict=True)
            ]
        own = errors[len(before) :]
        walks = Walks(recipe, first, steps, own, perf_counter() - began)
        self.bench.tell(tried(walks, self.bench))
        return walks

    def _looked(
        self, stage: int, step: Step, seen: BoolArray, recipe: Recipe
    ) -> tuple[Array, Array]:
        if stage not in RESTART_AFTER or stage + 1 >= len(recipe.stages):
            return step.X, step.D
        return restart_samples(step.X, step.D, seen, step.setting, self.bench.workers, self.bounds)

    def walk(
        self,
        seen: BoolArray,
        recipe: Recipe,
        X: Array,
        D: Array,
        numbers: range,
    ) -> list[Step]:
        """Some stages of a recipe on one table; where each ended."""
        steps: list[Step] = []
        stages = [recipe.stages[i] for i in numbers]

        def between(number: int, end: PathPoint) -> tuple[Array, Array]:
            setting, X, D = end
            steps.append(Step(X, D, setting))
            last = number + 1 == len(stages)
            return (X, D) if last else self._looked(numbers[number], steps[-1], seen, recipe)

        config = self.options
        solver = LBFGS(seen, self.bench.workers, bounds=self.bounds, tol=config.tol)
        result = minimize_path(
            solver, recipe.kernel, stages, (X, D), config, self.bench.record, between
        )
        if len(steps) == len(result.settings):
            steps.pop()
        return [*steps, Step(result.X, result.D, result.settings[-1], result.objective)]


def _is_past(errors: Sequence[float]) -> bool:
    """Whether the last stages were all too bad to go on."""
    if len(errors) <= PATIENCE:
        return False
    return all(error > HOPELESS * min(errors) for error in errors[-PATIENCE:])


def tried(walks: Walks, bench: Bench) -> Tried:
    """What came of a recipe, as other candidates tell it."""
    recipe, best = walks.recipe, walks.best
    stage = recipe.stages[walks.first + best]
    settings: dict[str, Any] = {
        "kernel": recipe.name,
        "n_components": recipe.n_components,
        "bandwidth": stage.bandwidth,
        "beta": stage.beta,
    }
    fills = [step.X for step in walks.steps[best]]
    return Tried("kernelized", settings, fills, walks.error, walks.seconds, walks)
