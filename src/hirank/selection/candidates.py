"""Linear and locally linear candidates: tried on folds, then fitted to everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.threads import Workers
from hirank.models.als import ALSConfig, fit_low_rank, select_rank, with_constant
from hirank.models.em import (
    EMConfig,
    EMFit,
    fit_mixture,
    grow_mixtures,
    independent_gaussian,
    max_components,
)
from hirank.models.mixture import Mixture
from hirank.models.row_models import RowModel
from hirank.models.stacking import typical
from hirank.optim.trace import Monitor, TrialFinished

FAILURES = (np.linalg.LinAlgError, FloatingPointError, ValueError)
"""What a candidate may end in, its input being what it is; another one may still do."""
REFIT_STEPS = 12


@dataclass(frozen=True)
class Bench:
    """The table that candidates are tried on, what is hidden from them, and who does the work."""

    X: Array  # n x v; 0 where not observed
    observed: BoolArray
    folds: list[BoolArray]
    workers: Workers
    record: Monitor

    @property
    def truth(self) -> Array:
        """The hidden entries of all folds, h."""
        return np.concatenate([self.X[hidden] for hidden in self.folds])

    def hidden(self, fills: Sequence[Array]) -> Array:
        """The same entries of tables, n x v, one per fold."""
        return np.concatenate([F[hidden] for F, hidden in zip(fills, self.folds, strict=True)])

    def error(self, fills: Sequence[Array]) -> float:
        """How far the fills are from the hidden entries: see `typical`."""
        return typical(self.hidden(fills) - self.truth)

    def tell(self, tried: Tried) -> None:
        """Tell what came of a candidate."""
        seconds = self.record.seconds
        self.record.notify(TrialFinished(tried.name, str(tried), tried.error, seconds))

    def seen(self) -> list[BoolArray]:
        """What each fold leaves to learn from, n x v each."""
        return [self.observed & ~hidden for hidden in self.folds]


@dataclass(frozen=True)
class Tried:
    """A candidate, and what came of it.

    `error` is the typical one at hidden entries, in units of the scaled features.
    """

    name: str
    settings: dict[str, Any]
    fills: list[Array]  # of each fold, n x v
    error: float
    seconds: float
    state: Any = field(repr=False)  # from which it can be fitted to everything
    failure: str = ""

    def told(self) -> Tried:
        """The same without its tables, to keep."""
        return replace(self, fills=[], state=None)

    def __str__(self) -> str:
        count = self.settings["n_components"]
        if self.name == "kernelized" and count:
            return f"kernelized ({self.settings['kernel']}, {count} points)"
        if self.name == "locally linear":
            return f"locally linear ({count} Gaussians)"
        if self.name == "low rank" and count:
            return f"low rank ({count})"
        return "linear (one Gaussian)" if count == 1 else self.name


def failed(name: str, error: Exception) -> Tried:
    """A candidate that came to nothing."""
    return Tried(name, {"n_components": 0}, [], np.inf, 0.0, None, str(error))


def try_means(bench: Bench) -> list[Tried]:
    """Column means: what remains if features have nothing to do with each other."""
    began, seen = perf_counter(), bench.seen()
    models = [independent_gaussian(bench.X, o) for o in seen]
    fills = [np.where(o, bench.X, model.means[0]) for o, model in zip(seen, models, strict=True)]
    error = bench.error(fills)
    return [Tried("column means", {"n_components": 0}, fills, error, perf_counter() - began, None)]


def fit_means(bench: Bench) -> tuple[Array, Mixture]:
    """Column means of everything: fills, n x v, and the model."""
    model = independent_gaussian(bench.X, bench.observed)
    return np.where(bench.observed, bench.X, model.means[0]), model


def try_mixtures(bench: Bench) -> list[Tried]:
    """Mixtures of Gaussians of all sizes that were worth trying, one Gaussian included."""
    if not max_components(bench.observed, EMConfig()):
        return []
    seen = bench.seen()
    tables = [(np.where(o, bench.X, 0), o) for o in seen]
    tried: list[Tried] = []
    began = perf_counter()
    growing = grow_mixtures(tables, bench.error, EMConfig(), bench.workers, bench.record)
    while (levels := _next(growing, tried)) is not None:
        fills = [level.filled for level in levels]
        K = len(levels[0].mixture)
        tried.append(
            Tried(
                "linear" if K == 1 else "locally linear",
                {"n_components": K, "noise": levels[0].noise},
                fills,
                bench.error(fills),
                perf_counter() - began,
                levels,
            )
        )
        bench.tell(tried[-1])
        began = perf_counter()
    return tried


def _next(growing: Iterator[list[EMFit]], tried: list[Tried]) -> list[EMFit] | None:
    """The next size of mixtures; none if there is none, or if it fails after others did not."""
    try:
        return next(growing, None)
    except FAILURES as error:
        if not tried:
            raise
        tried.append(failed("locally linear", error))
        return None


def fit_mixtures(bench: Bench, tried: Tried, most: int) -> list[tuple[Array, Mixture]]:
    """The mixtures of the folds once more with everything: fills, n x v, and models."""
    levels: list[EMFit] = tried.state[: 1 if len(tried.state[0].mixture) == 1 else most]
    again = [
        fit_mixture(
            one.mixture,
            one.noise,
            bench.X,
            bench.observed,
            workers=bench.workers,
            monitor=bench.record,
            max_iter=REFIT_STEPS,
        )
        for one in levels
    ]
    return [(level.filled, level.mixture) for level in again]


def try_factors(bench: Bench) -> list[Tried]:
    """Low-rank factors: better than a Gaussian where there is no noise, or few rows."""
    began, fills, choices = perf_counter(), [], []
    for hidden in bench.folds:
        # The size of the constant must not tell of hidden entries either.
        constant = with_constant(bench.X, bench.observed & ~hidden)[0][:, -1:]
        none = np.zeros((len(hidden), 1), bool)
        choice = select_rank(
            np.hstack([bench.X, constant]),
            np.hstack([bench.observed, ~none]),
            np.hstack([hidden, none]),
            monitor=bench.record,
            config=ALSConfig(),
        )
        F = (choice.factors.U @ choice.factors.V)[:, :-1]
        fills.append(np.where(bench.observed & ~hidden, bench.X, F))
        choices.append(choice)
    typical = sorted(choices, key=lambda c: c.rank)[len(choices) // 2]
    settings = {"n_components": typical.rank - 1, "ridge": typical.ridge}
    error, seconds = bench.error(fills), perf_counter() - began
    found = Tried("low rank", settings, fills, error, seconds, typical)
    bench.tell(found)
    return [found]


def fit_factors(bench: Bench, tried: Tried) -> tuple[Array, RowModel]:
    """Factors of the chosen rank for everything: fills, n x v, and the model."""
    return fit_low_rank(bench.X, bench.observed, tried.state, bench.record, ALSConfig())
