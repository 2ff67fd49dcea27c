"""Paths that are compared on a part of the rows of a large table, and then fitted to all of them.

A dictionary is determined by far fewer rows than a large table has (docs/notes/large_tables.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.models.dictionary import Dictionary
from hirank.optim.path import rescale_ridges, resolve_stage
from hirank.selection.dictionary_path import DictionarySpec, PathFitter, PathTrial, StageEnd
from hirank.selection.trial import SearchData


def sample_rows(n: int, count: int, rng: np.random.Generator) -> IntArray:
    """Return the rows, of n, to compare paths on: so many at random, or all of a smaller table."""
    return np.arange(n) if n <= count else np.sort(rng.choice(n, count, replace=False))


def take_rows(data: SearchData, rows: IntArray) -> SearchData:
    """Return some rows of the data of a search, with what is held out of them."""
    return replace(
        data,
        X=data.X[rows],
        observed=data.observed[rows],
        folds=[held_out[rows] for held_out in data.folds],
        judged=data.judged[rows],
    )


def fit_all_rows(fitter: PathFitter, path: PathTrial) -> PathTrial:
    """Fit the best stage of a path, which was fitted to some rows, to all rows of each fold.

    Not the latest one that is about as good: with more rows, later stages get worse by more.
    """
    best = int(np.argmin(path.losses))
    data, spec, ends = fitter.data, path.spec, path.ends[: best + 1]
    last = [
        fit_last_stage(fitter, spec, [stage[fold] for stage in ends], path.first, training)
        for fold, training in enumerate(data.training)
    ]
    # Losses before are of other entries.
    losses = [np.inf] * best + [data.loss([end.X for end in last])]
    return replace(path, data=data, ends=[*ends[:-1], last], losses=losses)


def fit_last_stage(
    fitter: PathFitter,
    spec: DictionarySpec,
    ends: list[StageEnd],
    first: int,
    observed: BoolArray,
) -> StageEnd:
    """Fit the last stage to all rows, from the stages from `first` on as some rows ended them.

    The rows start from what the dictionary imputes for them, as for new rows.
    """
    start: Array = np.where(observed, fitter.data.X, 0)
    X = make_dictionary(fitter, spec, ends, first).complete(start, observed)
    last = first + len(ends) - 1
    return fitter.fit_stages(observed, spec, X, ends[-1].D, range(last, last + 1))[-1]


def make_dictionary(
    fitter: PathFitter, spec: DictionarySpec, ends: Sequence[StageEnd], first: int
) -> Dictionary:
    """Return the dictionary of the last end, with the settings of all stages that lead to it."""
    D = ends[-1].D
    # Stages before the first one that was fitted are resolved now: new rows go through all.
    before = [
        resolve_stage(stage, spec.kernel, ends[0].X, D, fitter.solver.alpha)
        for stage in spec.stages[:first]
    ]
    settings = [*before, *(end.setting for end in ends)]
    return Dictionary(D, rescale_ridges(settings, spec.stages, D), bounds=fitter.data.bounds)
