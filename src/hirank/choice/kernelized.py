"""Dictionaries as candidates: which kernel, which path, how many points, and where to end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank.choice.candidates import FAILURES, Bench, Tried
from hirank.kernels import Array, Kernel
from hirank.model.bounds import Bounds
from hirank.solvers.fitted import Dictionary
from hirank.solvers.held_out import AS_GOOD, HOPELESS, PATIENCE
from hirank.solvers.lbfgs import LBFGS
from hirank.solvers.loop import Options, run
from hirank.solvers.path import Setting, Stage, resettle, settle
from hirank.solvers.second_look import second_look
from hirank.solvers.table import LOOK_AFTER

PROBE = 3
"""Stages after which paths are compared; only the best goes on."""
GROWTH = 3
"""Times as many points, if more are tried."""
GAIN, MUCH = 0.97, 0.9
"""Times the error with fewer points: what more must bring to be worth their cost."""
BEHIND = 1.1
"""Times the error of others, on noisy tables: from where it is not worth to go on."""
EXACT, FAR_BEHIND = 0.1, 3.0
"""The same on tables where the error of others is below this: there, late stages can gain much."""
ROUGHLY = 10
"""Times `tol` on noisy tables, where the ends of stages are not worth their time."""
AHEAD = 0.95
"""Times the error of others: from where the ends of stages are worth it after all."""
PERFECT = 1e-3
"""Error, in standard deviations, that nobody needs to improve on."""
MODERATE = 240
"""Points up to which a further walk is worth its time: with more, none gained from it."""


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


class Member(NamedTuple):
    """A dictionary fitted to everything."""

    X: Array  # n x v
    rows: Dictionary
    objective: float


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


class Kernelized:
    """Tries dictionaries on the folds of a bench."""

    def __init__(
        self,
        bench: Bench,
        starts: Sequence[Array],
        options: Options,
        bounds: Bounds | None,
        rng: np.random.Generator,
    ) -> None:
        self.bench, self.starts, self.options, self.bounds = bench, starts, options, bounds
        self.rng = rng

    def on(self, bench: Bench) -> Kernelized:
        """The same on another bench."""
        return Kernelized(bench, self.starts, self.options, self.bounds, self.rng)

    def search(self, recipes: Sequence[Recipe], most: int, rival: float) -> list[Walks]:
        """All that was tried, best last: every recipe a little, the best to its end, then larger.

        A dictionary that grew on its way walks it once more, with all its points from the start.
        `most` is the number of points to grow to, if that pays. `rival` is the lowest error of
        other candidates: who is far behind after a little need not go on. Where that error is
        large, and no dictionary is ahead of it after a little, all walks are rough.
        """
        record, exact = self.bench.record, self.options
        if EXACT < rival < np.inf:
            self.options = replace(exact, tol=ROUGHLY * exact.tol)
        stages = PROBE if len(recipes) > 1 or rival < np.inf else None
        probes: list[Walks] = []
        trouble: Exception | None = None
        for recipe in recipes:
            behind = probes and min(walks.error for walks in probes) > rival
            if probes and (record.late or (behind and recipe.name != recipes[0].name)):
                break  # where others are ahead, another kernel won't make up for it
            try:
                probes.append(self._probe(recipe, stages))
            except FAILURES as error:
                trouble = error
        if trouble is not None and not probes:
            raise trouble
        probes.sort(key=lambda walks: -walks.error)
        best = probes[-1]
        if best.error < AHEAD * rival:
            self.options = exact  # who is ahead may become much better yet
        reach = FAR_BEHIND if rival < EXACT else BEHIND
        if not (best.ended or record.late) and best.error < reach * rival:
            with suppress(*FAILURES):  # what was found before that is as good as it was
                best = self._further(best)
        done = self._grown([*probes[:-1], best], most, rival)
        best = done[-1]
        grown = best.first > 0 and best.recipe.n_components <= MODERATE
        if not grown or record.late or not PERFECT < best.error < rival:
            return done
        with suppress(*FAILURES):
            again = self._again(best)
            done.insert(len(done) if again.error < GAIN * best.error else -1, again)
        return done

    def _grown(self, done: list[Walks], most: int, rival: float) -> list[Walks]:
        """The same with larger dictionaries, as far as they pay."""
        best = done[-1]
        r = best.recipe.n_components
        while r < most and not self.bench.record.late:
            r = min(most, GROWTH * r)
            # Who is behind must gain much: some tables need many points to be seen at all.
            enough = (GAIN if best.error < rival else MUCH) * best.error
            try:
                larger = self._larger(best, r, enough)
            except FAILURES:
                break
            if larger.error > enough:
                done.insert(-1, larger)
                break
            done.append(larger)
            best = larger
        return done

    def fit(self, walks: Walks, fold: int) -> Member:
        """The last stage once more with everything."""
        bench, end = self.bench, walks.first + walks.best
        if bench.record.over:
            return self.as_tried(walks, fold)
        step = walks.steps[walks.best][fold]
        X = np.where(bench.observed, bench.X, step.X)
        last = self._walk(bench.observed, walks.recipe, X, step.D, range(end, end + 1))[-1]
        return Member(last.X, self._rows(walks, last.D, fold), last.objective)

    def as_tried(self, walks: Walks, fold: int) -> Member:
        """As a fold left it, without what was hidden."""
        step = walks.steps[walks.best][fold]
        X = np.where(self.bench.observed, self.bench.X, step.X)
        return Member(X, self._rows(walks, step.D, fold), step.objective)

    def another(self, walks: Walks, start: Array, D: Array) -> Member:
        """A fit with everything from other points: the path up to where it is known to end."""
        bench, recipe = self.bench, walks.recipe
        end = walks.first + walks.best
        X = np.where(bench.observed, bench.X, start)
        walked = self._walk(bench.observed, recipe, X, D, range(end + 1))
        rows = _dictionary(recipe, walked[-1].D, [step.setting for step in walked], self.bounds)
        return Member(walked[-1].X, rows, walked[-1].objective)

    def members(self, walks: Walks, count: int) -> list[Member]:
        """Several dictionaries fitted to everything, side by side.

        Those of the folds first, then others from where the first led, with points at random.
        """
        bench = self.bench
        # Threads inside threads would wait for each other.
        single = self.on(replace(bench, workers=bench.workers.alone()))
        folds = range(min(count, len(bench.folds)))
        if len(folds) == 1:
            members = [self.fit(walks, 0)]
        else:
            members = [*bench.workers.map(lambda fold: single.fit(walks, fold), folds, np.inf)]
        if bench.record.late:
            return members
        X, r = members[0].X, walks.recipe.n_components
        points = [
            self._points(X, bench.observed, r, chance=True) for _ in range(count - len(members))
        ]
        more = bench.workers.map(lambda D: single.another(walks, X, D), points, np.inf)
        return [*members, *more]

    def _rows(self, walks: Walks, D: Array, fold: int) -> Dictionary:
        """A dictionary with the settings of all stages that lead to where it was learned."""
        steps = [at_stage[fold] for at_stage in walks.steps[: walks.best + 1]]
        # Stages that were left out, because fewer points had walked them, are settled now.
        before = [
            settle(stage, walks.recipe.kernel, steps[0].X, D, self.options.alpha)
            for stage in walks.recipe.stages[: walks.first]
        ]
        settings = [*before, *(step.setting for step in steps)]
        return _dictionary(walks.recipe, D, settings, self.bounds)

    def _probe(self, recipe: Recipe, stages: int | None) -> Walks:
        """Walk the first stages of a recipe from the start."""
        starts = [
            (X, self._points(X, seen, recipe.n_components, chance=fold > 0))
            for fold, (X, seen) in enumerate(zip(self.starts, self.bench.seen(), strict=True))
        ]
        return self._walks(recipe, starts, 0, stages or len(recipe.stages))

    def _further(self, walks: Walks) -> Walks:
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

    def _larger(self, walks: Walks, r: int, enough: float) -> Walks:
        """More points, from where fewer have led; on to later stages if the error is low enough."""
        first = walks.first + walks.best
        starts = []
        for step, seen in zip(walks.steps[walks.best], self.bench.seen(), strict=True):
            new = self._points(step.X, seen, r - len(step.D), chance=True)
            starts.append((step.X, np.vstack([step.D, new])))
        recipe = replace(walks.recipe, n_components=r)
        larger = self._walks(recipe, starts, first, first + 1)
        if larger.ended or self.bench.record.late or larger.error > enough:
            return larger
        return self._further(larger)

    def _again(self, walks: Walks) -> Walks:
        """The whole path with all points of a dictionary that grew on its way, from its fills."""
        r = walks.recipe.n_components
        starts = [
            (step.X, self._points(step.X, seen, r, chance=True))
            for step, seen in zip(walks.steps[walks.best], self.bench.seen(), strict=True)
        ]
        return self._walks(walks.recipe, starts, 0, walks.first + walks.best + 1)

    def _points(self, X: Array, seen: NDArray[np.bool_], r: int, *, chance: bool) -> Array:
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
                self._walk(o, recipe, X, D, range(stage, stage + 1))[-1]
                for o, (X, D) in zip(seen, states, strict=True)
            ]
            steps.append(ends)
            errors.append(self.bench.error([step.X for step in steps[-1]]))
            if self.bench.record.over or _is_past(errors) or stage + 1 == last:
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
        self, stage: int, step: Step, seen: NDArray[np.bool_], recipe: Recipe
    ) -> tuple[Array, Array]:
        if stage not in LOOK_AFTER or stage + 1 >= len(recipe.stages):
            return step.X, step.D
        return second_look(step.X, step.D, seen, step.setting, self.bench.workers, self.bounds)

    def _walk(
        self,
        seen: NDArray[np.bool_],
        recipe: Recipe,
        X: Array,
        D: Array,
        numbers: range,
    ) -> list[Step]:
        """Some stages of a recipe on one table; where each ended."""
        steps: list[Step] = []
        stages = [recipe.stages[i] for i in numbers]

        def between(number: int, setting: Setting, X: Array, D: Array) -> tuple[Array, Array]:
            steps.append(Step(X, D, setting))
            last = number + 1 == len(stages)
            return (X, D) if last else self._looked(numbers[number], steps[-1], seen, recipe)

        solver = LBFGS(seen, self.bench.workers, bounds=self.bounds)
        result = run(
            solver,
            recipe.kernel,
            stages,
            X,
            D,
            self.options,
            between=between,
            record=self.bench.record,
        )
        if len(steps) == len(result.settings):
            steps.pop()
        return [*steps, Step(result.X, result.D, result.settings[-1], result.objective)]


def unlearned(recipe: Recipe, X: Array, bounds: Bounds | None) -> Member:
    """Rows of a completed table, n x v, as a dictionary, if none was learned."""
    D = X[: recipe.n_components].copy()
    setting = settle(recipe.stages[0], recipe.kernel, X, D)
    return Member(X, _dictionary(recipe, D, [setting], bounds), np.nan)


def _dictionary(
    recipe: Recipe, D: Array, settings: list[Setting], bounds: Bounds | None
) -> Dictionary:
    return Dictionary(D, resettle(settings, recipe.stages, D), bounds=bounds)


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
