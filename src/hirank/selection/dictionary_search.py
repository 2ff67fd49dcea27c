"""Kernel dictionaries as a family: which kernel, which path, how many points, where to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hirank._typing import Array, IntArray
from hirank.core.bounds import clip_missing
from hirank.core.init import soft_impute
from hirank.kernels import RBF, Poly
from hirank.models.fit_dictionary import default_n_components
from hirank.optim.path import FIRST_BETA, default_path
from hirank.selection.config import DictionaryConfig
from hirank.selection.dictionary_path import DictionarySpec, PathFitter, PathTrial
from hirank.selection.dictionary_refit import (
    default_n_models,
    dictionary_from_fold,
    refit_all,
    refit_from_start,
)
from hirank.selection.low_rank_kernels import LowRankKernels
from hirank.selection.routed import Routed
from hirank.selection.row_sample import fit_all_rows, sample_rows, take_rows
from hirank.selection.trial import FIT_FAILURES, Refit, SearchData, Trial


@dataclass(frozen=True)
class FittedPath:
    """The state of a trial: the path that was fitted, and how exactly refits are to be made."""

    fitter: PathFitter
    path: PathTrial
    start: Trial | None = None  # whose imputed tables the dictionary started from


@dataclass(frozen=True)
class Dictionaries:
    """Dictionaries of points in data space, with the RBF and the polynomial kernel."""

    family: ClassVar[str] = "dictionary"

    def trials(self, data: SearchData, best: Trial | None) -> Iterator[Trial]:
        """Yield the dictionaries that were fitted; the preferred one is last.

        Dictionaries start from the imputed tables of the best trial of other families, and are
        abandoned where they are far behind it. They are compared on the first fold; the preferred
        one is fitted to the others if it can improve the best trial.
        """
        config = data.config.dictionary
        too_wide = data.X.shape[1] > config.max_features
        if best is not None and (data.monitor.late or too_wide or best.loss < config.perfect_error):
            return
        if best is not None and Routed.is_ahead(best, config.max_ratio_routed):
            return  # one dictionary cannot have as many points (docs/notes/routed.md)
        n, compared = len(data.X), data.compared_folds()
        ahead = best is not None and LowRankKernels.is_ahead(best, config.max_ratio_start)
        if ahead and data.observed.all():
            # Landmarks of a complete table have no imputed entries after the refit, those of the
            # folds do: errors at held-out entries are too large (docs/notes/schatten.md).
            return
        specs = _specs(n, config)
        if best is not None and ahead:
            # Which folds recover all rows is left to chance, so that one fold shows too little.
            specs, compared = _specs_from_good_start(n, config, best.params["kernel"]), data
        start = best
        if best is not None and isinstance(best.candidate, LowRankKernels) and not ahead:
            start = best.state.before  # the same mistakes twice would not stack well
        starts = _starts(data, start)
        search = _begin_search(compared, starts, best)
        *others, path = search.run(specs, _max_points(n, config))
        for other in others:
            yield replace(self._scored(FittedPath(search.fitter, other, start)), rejected=True)
        trial = self._scored(FittedPath(search.fitter, path, start))
        behind = best is not None and ahead and trial.loss > config.min_gain_late * best.loss
        if behind or path.data is not compared or not compared.can_improve(trial, [best]):
            yield replace(trial, rejected=True)
            return
        fitter = replace(search.fitter, data=data)
        yield self._scored(FittedPath(fitter, fitter.fit_other_folds(path, starts), start))

    def _scored(self, fitted: FittedPath) -> Trial:
        path = fitted.path
        stage = path.spec.stages[path.last_stage]
        params: dict[str, Any] = {
            "kernel": path.spec.name,
            "n_components": path.spec.n_components,
            "bandwidth": stage.bandwidth,
            "beta": stage.beta,
        }
        return Trial.scored(
            self, path.label, params, path.filled, path.data, path.seconds, state=fitted
        )

    def refit(self, trial: Trial, data: SearchData, n_models: int | None) -> list[Refit]:
        """Fit several dictionaries to all observed entries, to be averaged.

        The dictionaries of the folds come first, then others whose points are drawn from the table
        that the first one imputed.
        """
        fitter, path = replace(trial.state.fitter, data=data), trial.state.path
        count = n_models or default_n_models(path, data.config.dictionary)
        try:
            if path.spec.first:
                return refit_from_start(fitter, path, trial.state.start, count)
            return refit_all(fitter, path, count)
        except FIT_FAILURES:
            return [dictionary_from_fold(fitter, path, 0)]


def _specs(n: int, config: DictionaryConfig) -> list[DictionarySpec]:
    """Return the kernels and paths to compare for n rows, the usual one first."""
    usual = default_n_components(n)
    size = min(usual, max(config.min_points, round(config.first_size * usual)))
    smooth = default_path(config.smooth_bandwidths, first_beta=config.smooth_beta * FIRST_BETA)
    return [
        DictionarySpec("rbf", RBF(), default_path(), size),
        DictionarySpec("rbf", RBF(), smooth, size),
        DictionarySpec("poly", Poly(), default_path(), size),
    ]


def _specs_from_good_start(n: int, config: DictionaryConfig, name: str) -> list[DictionarySpec]:
    """Return what to compare if the starting table is far better than linear ones.

    Then nothing is gained by few points or another kernel than that of the start, and the first
    stages, strongly regularized, would undo the start (docs/notes/schatten.md).
    """
    size = default_n_components(n)
    kind, kernel = ("rbf", RBF()) if name == "rbf" else ("poly", Poly())
    return [
        DictionarySpec(kind, kernel, default_path(), size, first) for first in config.later_stages
    ]


def _max_points(n: int, config: DictionaryConfig) -> int:
    return min(n, config.max_points, round(config.max_size * default_n_components(n)))


def _starts(data: SearchData, best: Trial | None) -> list[Array]:
    """Return the tables that dictionaries start from, one per fold."""
    training = data.training
    filled = [soft_impute(data.X, one) for one in training] if best is None else best.filled
    return [clip_missing(data.bounds, X, one) for X, one in zip(filled, training, strict=True)]


def _begin_search(
    data: SearchData, starts: Sequence[Array], best: Trial | None
) -> _DictionarySearch:
    """Return a search on the folds of the data, from imputed tables, n x v, one per fold at least.

    Paths are compared on some rows of a large table.
    """
    config = data.config.dictionary
    noisy = best is not None and data.is_noisy(best.loss)
    count = config.max_rows_noisy if noisy else config.max_rows
    rows = sample_rows(len(data.X), count, data.rng)
    sample = data if len(rows) == len(data.X) else take_rows(data, rows)

    def rival(data: SearchData, rows: IntArray | slice) -> _Rival:
        if best is None:
            return _Rival(np.inf, None)
        filled = [X[rows] for X in best.filled[: len(data.folds)]]
        return _Rival(data.loss(filled), filled)

    return _DictionarySearch(
        PathFitter(sample, data.solver),
        [X[rows] for X in starts[: len(data.folds)]],
        rival(sample, rows),
        None if sample is data else (data, rival(data, slice(None))),
    )


class _Rival(NamedTuple):
    """The best trial of other families on some data."""

    loss: float
    filled: list[Array] | None  # its tables, n x v, one per fold


class _DictionarySearch:
    """Compares paths after a few stages, continues the best one, and lets it grow.

    `rival` is the best trial of other families. If the paths are compared on some rows only,
    `whole` are the data of all rows and the rival there.
    """

    def __init__(
        self,
        fitter: PathFitter,
        starts: Sequence[Array],
        rival: _Rival,
        whole: tuple[SearchData, _Rival] | None = None,
    ) -> None:
        self.fitter, self.starts, self.whole = fitter, starts, whole
        self.rival, self.beside = rival
        self.config = fitter.data.config.dictionary
        self.monitor = fitter.data.monitor

    @property
    def is_noisy(self) -> bool:
        """Whether the other families are far from exact."""
        return self.config.exact_error < self.rival < np.inf

    def run(self, specs: Sequence[DictionarySpec], max_points: int) -> list[PathTrial]:
        """Return all paths that were fitted, the preferred one last.

        On noisy tables, where the loss of other families is large and no dictionary is ahead after
        a few stages, stages are fitted roughly (docs/notes/selection.md). On large tables they also
        are where a dictionary is ahead, unless it is nearly exact.
        """
        config, exact = self.config, self.fitter.solver
        if self.is_noisy:
            rough = replace(exact, tol=config.rough_tol * exact.tol)
            restarts = not self.fitter.data.is_noisy(self.rival)
            self.fitter = replace(self.fitter, solver=rough, restarts=restarts, rough=True)
        done = self._probe(specs)
        best = done[-1]
        if best.loss < config.ahead * self.rival:
            data = self.fitter.data if self.whole is None else self.whole[0]
            stays_rough = data.is_large and best.loss > config.rough_error
            solver = self.fitter.solver if stays_rough else exact
            self.fitter = replace(
                self.fitter,
                solver=solver,
                restarts=True,
                rough=stays_rough,
                min_gain=config.min_gain,
            )
        nearly_exact = self.rival < config.exact_error
        max_ratio = config.max_ratio_exact if nearly_exact else config.max_ratio
        if best.spec.first:
            max_ratio = config.max_ratio_late
        if (
            not (self.fitter.is_finished(best) or self.monitor.late)
            and best.loss < max_ratio * self.rival
        ):
            with suppress(*FIT_FAILURES):  # the stages before remain as good as they were
                done[-1] = self.fitter.resume(best)
        if done[-1].loss < config.max_ratio_late * self.rival:
            self._fit_all_rows(done)
            self._grow(done, max_points)
        self._repeat(done)
        return done

    def _fit_all_rows(self, done: list[PathTrial]) -> None:
        """Fit the best path to all rows, if it was fitted to some of them, and go on with these."""
        if self.whole is None:
            return
        data, (self.rival, self.beside) = self.whole
        self.fitter = replace(self.fitter, data=data)
        done[-1] = fit_all_rows(self.fitter, done[-1])

    def _probe(self, specs: Sequence[DictionarySpec]) -> list[PathTrial]:
        """Fit the first stages of each path; return the paths, best last."""
        n_stages = self.config.probe_stages if len(specs) > 1 or self.rival < np.inf else None
        later = specs[0].first > 0
        n_stages = 1 if later else n_stages
        probes: list[PathTrial] = []
        failure: Exception | None = None
        for spec in specs:
            behind = probes and min(path.loss for path in probes) > self.rival
            if probes and (
                self.monitor.late or (behind and not later and spec.name != specs[0].name)
            ):
                break  # where other families are ahead, another kernel does not make up for it
            try:
                max_first = np.inf
                if probes and self.fitter.data.is_large:
                    max_first = self.config.max_ratio_path * min(one.losses[0] for one in probes)
                probes.append(self.fitter.probe(spec, self.starts, n_stages, max_first))
            except FIT_FAILURES as error:
                failure = error
        if failure is not None and not probes:
            raise failure
        return sorted(probes, key=lambda path: -path.loss)

    def _grow(self, done: list[PathTrial], max_points: int) -> None:
        """Append larger dictionaries as long as they improve enough."""
        config, best = self.config, done[-1]
        r, gain = best.spec.n_components, 1.0
        while r < max_points and best.loss > config.perfect_error and not self.monitor.late:
            if self.is_noisy and gain < config.min_improvement_noisy:
                return
            r = min(max_points, config.growth * r)
            max_loss = self._max_loss(best)
            try:
                larger = self.fitter.enlarge(best, r, max_loss)
            except FIT_FAILURES:
                return
            if larger.loss > max_loss and not self._stacks_better(larger, best):
                done.insert(-1, larger)
                return
            done.append(larger)
            best, gain = larger, 1 - larger.loss / best.loss

    def _stacks_better(self, larger: PathTrial, best: PathTrial) -> bool:
        """Return whether more points gain in the stack what they do not gain alone."""
        if self.beside is None or best.loss < self.rival:
            return False
        data = self.fitter.data
        few, many = (data.stacked_loss([self.beside, one.filled]) for one in (best, larger))
        return many < (1 - self.config.min_improvement_stack) * few

    def _max_loss(self, best: PathTrial) -> float:
        """Return the loss up to which a dictionary with more points is preferred.

        Some tables need many points to be seen: one that remains behind other families must gain
        much, one that gets ahead of them need not.
        """
        config = self.config
        much = (1 - config.min_improvement_behind) * best.loss
        some = (1 - config.min_improvement) * best.loss
        if best.loss < self.rival:
            return some
        return max(much, min(config.ahead * self.rival, some))

    def _repeat(self, done: list[PathTrial]) -> None:
        """Fit the path of a dictionary that grew once more, with all its points from the start."""
        config, best = self.config, done[-1]
        grown = best.first > 0 and best.spec.n_components <= config.max_restart_points
        if (
            self.is_noisy
            or not grown
            or self.monitor.late
            or not config.perfect_error < best.loss < self.rival
        ):
            return
        with suppress(*FIT_FAILURES):
            again = self.fitter.repeat(best)
            better = again.loss < (1 - config.min_improvement) * best.loss
            done.insert(len(done) if better else -1, again)
