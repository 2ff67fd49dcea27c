"""What is fitted to a window: a dictionary, or a low-rank kernel matrix if that is far better."""

from __future__ import annotations

from typing import NamedTuple

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.models.dictionary import Dictionary
from hirank.models.fit_dictionary import DictionaryProblem
from hirank.online.config import WindowConfig
from hirank.online.low_rank import HeldOutError, Landmarks, LowRankFit, LowRankProblem
from hirank.optim.path import PathSolution, Stage, rescale_ridges


class FittedWindow(NamedTuple):
    """What was fitted to a window."""

    X: Array  # imputed rows, n x v
    model: Dictionary | Landmarks
    stages: tuple[Stage, ...]  # those of the model's settings
    n_stages: int  # stages of the path
    fold: Array | None = None  # n x v, as imputed without the held-out entries

    @classmethod
    def from_path(cls, solution: PathSolution, config: WindowConfig) -> FittedWindow:
        """Return the dictionary at the end of a path, for new rows."""
        n = len(solution.settings)
        settings = rescale_ridges(solution.settings, config.stages, solution.D)
        model = Dictionary(solution.D, settings[_thin(n)], config.rounds)
        return cls(solution.X, model, config.stages[:n][_thin(n)], n, solution.fold)

    @classmethod
    def from_low_rank(cls, fit: LowRankFit, config: WindowConfig) -> FittedWindow:
        """Return a low-rank kernel matrix, for new rows."""
        n = len(fit.stages)
        model = Landmarks(fit.model.D, fit.model.settings[_thin(n)], config.rounds)
        return cls(fit.X, model, fit.stages[_thin(n)], n, fit.fold)


def _thin(n_stages: int) -> slice:
    """Return every second stage, counted from the end: nearly as good at half the cost."""
    return slice((n_stages + 1) % 2, None, 2)


def select_model(
    solution: PathSolution,
    problem: DictionaryProblem,
    held_out: BoolArray,
    config: WindowConfig,
    workers: Workers,
    before: Array | None = None,
) -> FittedWindow:
    """Return the dictionary, or a low-rank kernel matrix if that is far better.

    `before`, n x v, is the window as imputed before a refit. If the rows since then have not
    lowered the error, what is left of it is noise, and only the dictionary is considered.
    """
    settings = config.low_rank
    if settings is None or solution.fold is None or not settings.allows(solution.fold):
        return FittedWindow.from_path(solution, config)
    rival = HeldOutError.measure(solution.fold[held_out], problem.X[held_out])
    fit = None
    if before is None or rival.is_ahead(
        HeldOutError.measure(before[held_out], problem.X[held_out]), settings.max_ratio
    ):
        low_rank = LowRankProblem.like(problem, held_out, settings, workers)
        fit = low_rank.fit(solution.fold, rival)
    if fit is None:
        return FittedWindow.from_path(solution, config)
    return FittedWindow.from_low_rank(fit, config)


def refit_low_rank(
    problem: DictionaryProblem,
    held_out: BoolArray,
    start: Array,
    n_stages: int,
    config: WindowConfig,
    workers: Workers,
) -> FittedWindow:
    """Fit a low-rank kernel matrix again; without held-out entries up to the same stage."""
    assert config.low_rank is not None
    low_rank = LowRankProblem.like(problem, held_out, config.low_rank, workers)
    if held_out.any():
        fit = low_rank.fit(start)
        assert fit is not None
    else:
        fit = low_rank.finish(start, min(config.low_rank.refit_stage, n_stages - 1), n_stages - 1)
    return FittedWindow.from_low_rank(fit, config)
