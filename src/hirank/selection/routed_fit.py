"""The fit of routed dictionaries to one fold: the rows of components, and their dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import clip_missing
from hirank.kernels import RBF
from hirank.models.dictionary import Dictionary
from hirank.models.mixture import Mixture
from hirank.models.routed import RoutedDictionaries, measure_residuals
from hirank.optim.path import default_path
from hirank.selection.config import RoutedConfig
from hirank.selection.dictionary_path import DictionarySpec, PathFitter, StageEnd
from hirank.selection.trial import SearchData


@dataclass(frozen=True)
class Routing:
    """A mixture, and the rows of each of its components, to which dictionaries are fitted."""

    mixture: Mixture
    rows: list[IntArray]


@dataclass(frozen=True)
class RoutedFit:
    """Dictionaries fitted on one fold: `ends[k][stage]` is where a stage of component k ended."""

    routing: Routing
    ends: list[list[StageEnd]]

    def model(self, stage: int, data: SearchData) -> RoutedDictionaries:
        """Return the dictionaries as a stage left them."""
        return _make_model(self.routing.mixture, [one[: stage + 1] for one in self.ends], data)


def route_rows(mixture: Mixture, X: Array, observed: BoolArray, config: RoutedConfig) -> Routing:
    """Return a mixture whose components have enough rows of X, n x v, and these rows.

    A row that may belong elsewhere would be followed by the dictionary of a wrong component, so
    only rows are taken of which the mixture is confident (docs/notes/routed.md).
    """
    while True:
        shares = mixture.shares(X, observed)
        rows = confident_rows(shares, config)
        sizes = np.array([len(one) for one in rows])
        small = np.flatnonzero(sizes < config.min_rows)
        if not len(small) or len(sizes) == 1:
            return Routing(mixture, rows)
        # Their rows go to other components, which may thereby become large enough.
        dropped = small[np.argsort(sizes[small], kind="stable")][: -(-len(small) // 2)]
        keep = np.setdiff1d(np.arange(len(sizes)), dropped[: len(sizes) - 1])
        weights = mixture.weights[keep] / mixture.weights[keep].sum()
        mixture = Mixture(weights, mixture.means[keep], mixture.covariances[keep])


def fit_components(
    routing: Routing,
    filled: Array,
    observed: BoolArray,
    data: SearchData,
    n_stages: int | None = None,
    *,
    rough: bool = False,
) -> RoutedFit:
    """Fit a dictionary to the rows of each component of an imputed table, n x v.

    The path ends after so many stages; None for all.

    The stages of a component are an empty list if there was no time left for it.
    """
    fitter = make_fitter(data, rough=rough)
    start = clip_missing(data.bounds, filled, observed)
    specs = [make_spec(len(rows), data.config.routed) for rows in routing.rows]
    points = [
        fitter.sample_points(start[rows], observed[rows], spec.n_components, prefer_observed=True)
        for rows, spec in zip(routing.rows, specs, strict=True)
    ]

    def fit(k: int) -> list[StageEnd]:
        if data.monitor.late:
            return []
        rows, spec = routing.rows[k], specs[k]
        numbers = range(len(spec.stages) if n_stages is None else n_stages)
        return fitter.fit_stages(observed[rows], spec, start[rows], points[k], numbers)

    return RoutedFit(routing, [*data.workers.map(fit, range(len(specs)), np.inf)])


def make_fitter(data: SearchData, *, rough: bool = False) -> PathFitter:
    """Return what fits the dictionary of one component; stages of noisy tables end early."""
    config = data.config.routed
    tol = data.solver.tol * (config.rough_tol if rough else 1)
    max_iter = min(config.max_iter, data.solver.max_iter)
    return PathFitter(data, replace(data.solver, max_iter=max_iter, tol=tol))


def make_spec(n: int, config: RoutedConfig) -> DictionarySpec:
    """Return what is fitted to the n rows of a component."""
    size = min(max(n // config.rows_per_point, config.min_points), config.max_points, n // 2)
    return DictionarySpec("rbf", RBF(), default_path(config.bandwidths), size)


def held_out_errors(fit: RoutedFit, data: SearchData, fold: int) -> list[Array]:
    """Return the errors of each stage at the held-out entries of the rows that were fitted."""
    held_out, rows = data.folds[fold], fit.routing.rows
    return [
        np.concatenate(
            [(end.X - data.X[k])[held_out[k]] for k, end in zip(rows, ends, strict=True)]
        )
        for ends in zip(*fit.ends, strict=False)
    ]


def _make_model(
    mixture: Mixture, ends: Sequence[Sequence[StageEnd]], data: SearchData
) -> RoutedDictionaries:
    dictionaries = tuple(
        Dictionary(one[-1].D, tuple(end.setting for end in one), bounds=data.bounds) for one in ends
    )
    residuals = [
        np.median(measure_residuals(dictionary, one[-1].X))
        for dictionary, one in zip(dictionaries, ends, strict=True)
    ]
    return RoutedDictionaries(mixture, dictionaries, np.array(residuals))


def confident_rows(shares: Array, config: RoutedConfig) -> list[IntArray]:
    """Return rows of each of K components, from their posterior probabilities, n x K."""
    own = np.where(shares.max(axis=1) >= config.min_share, shares.argmax(axis=1), -1)
    rows = [np.flatnonzero(own == k) for k in range(shares.shape[1])]
    # More rows gain almost nothing with the same points.
    return [one[:: -(-len(one) // config.max_rows)] if len(one) else one for one in rows]
