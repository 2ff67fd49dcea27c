"""Dictionaries that were chosen, fitted to all entries."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.core.bounds import Bounds
from hirank.models.row_models import Dictionary
from hirank.optim.path import Setting, rescale_ridges, resolve_stage
from hirank.selection.dictionary_path import Recipe, Walker, Walks


class Member(NamedTuple):
    """A dictionary fitted to everything."""

    X: Array  # n x v
    rows: Dictionary
    objective: float


def fit(walker: Walker, walks: Walks, fold: int) -> Member:
    """The last stage once more with everything."""
    bench, end = walker.bench, walks.first + walks.best
    if bench.record.stopped:
        return as_tried(walker, walks, fold)
    step = walks.steps[walks.best][fold]
    X = np.where(bench.observed, bench.X, step.X)
    last = walker.walk(bench.observed, walks.recipe, X, step.D, range(end, end + 1))[-1]
    return Member(last.X, _rows(walker, walks, last.D, fold), last.objective)


def as_tried(walker: Walker, walks: Walks, fold: int) -> Member:
    """As a fold left it, without what was hidden."""
    step = walks.steps[walks.best][fold]
    X = np.where(walker.bench.observed, walker.bench.X, step.X)
    return Member(X, _rows(walker, walks, step.D, fold), step.objective)


def another(walker: Walker, walks: Walks, start: Array, D: Array) -> Member:
    """A fit with everything from other points: the path up to where it is known to end."""
    bench, recipe = walker.bench, walks.recipe
    end = walks.first + walks.best
    X = np.where(bench.observed, bench.X, start)
    walked = walker.walk(bench.observed, recipe, X, D, range(end + 1))
    rows = _dictionary(recipe, walked[-1].D, [step.setting for step in walked], walker.bounds)
    return Member(walked[-1].X, rows, walked[-1].objective)


def members(walker: Walker, walks: Walks, count: int) -> list[Member]:
    """Several dictionaries fitted to everything, side by side.

    Those of the folds first, then others from where the first led, with points at random.
    """
    bench = walker.bench
    # Threads inside threads would wait for each other.
    single = replace(walker, bench=replace(bench, workers=bench.workers.alone()))
    folds = range(min(count, len(bench.folds)))
    if len(folds) == 1:
        found = [fit(walker, walks, 0)]
    else:
        found = [*bench.workers.map(lambda fold: fit(single, walks, fold), folds, np.inf)]
    if bench.record.late:
        return found
    X, r = found[0].X, walks.recipe.n_components
    points = [walker.points(X, bench.observed, r, chance=True) for _ in range(count - len(found))]
    more = bench.workers.map(lambda D: another(single, walks, X, D), points, np.inf)
    return [*found, *more]


def _rows(walker: Walker, walks: Walks, D: Array, fold: int) -> Dictionary:
    """A dictionary with the settings of all stages that lead to where it was learned."""
    steps = [at_stage[fold] for at_stage in walks.steps[: walks.best + 1]]
    # Stages that were left out, because fewer points had walked them, are settled now.
    before = [
        resolve_stage(stage, walks.recipe.kernel, steps[0].X, D, walker.options.alpha)
        for stage in walks.recipe.stages[: walks.first]
    ]
    settings = [*before, *(step.setting for step in steps)]
    return _dictionary(walks.recipe, D, settings, walker.bounds)


def unlearned(recipe: Recipe, X: Array, bounds: Bounds | None) -> Member:
    """Rows of a completed table, n x v, as a dictionary, if none was learned."""
    D = X[: recipe.n_components].copy()
    setting = resolve_stage(recipe.stages[0], recipe.kernel, X, D)
    return Member(X, _dictionary(recipe, D, [setting], bounds), np.nan)


def _dictionary(
    recipe: Recipe, D: Array, settings: list[Setting], bounds: Bounds | None
) -> Dictionary:
    return Dictionary(D, rescale_ridges(settings, recipe.stages, D), bounds=bounds)
