"""The numbers behind pictures of a table and a fit, for plots and for the report."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.models.calibration import Calibration, Covariates
from hirank.models.stacking import disagreement
from hirank.selection.results import Chosen

FEWEST = 20
"""Hidden entries below which it is not worth to count how many lie in their intervals."""


def missing_rates(observed: BoolArray, most_rows: int, most_columns: int) -> Array:
    """Share of missing entries of observed, n x m, in blocks of neighbors.

    There are at most `most_rows` x `most_columns` blocks, of nearly the same size. Tables that are
    small enough come back entry by entry: 1 is missing, 0 is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.estimators.plot_data import missing_rates
    >>> observed = np.array([[True, False], [False, False], [True, True], [True, False]])
    >>> missing_rates(observed, 2, 2)
    array([[0.5, 1. ],
           [0. , 0.5]])
    """
    n, m = observed.shape
    rows, columns = edges(n, most_rows), edges(m, most_columns)
    counts = np.add.reduceat((~observed).astype(np.float64), rows[:-1], axis=0)
    counts = np.add.reduceat(counts, columns[:-1], axis=1)
    return counts / np.outer(np.diff(rows), np.diff(columns))


def edges(n: int, most: int) -> IntArray:
    """Where blocks of n neighbors begin and end, at most `most` blocks."""
    count = min(n, most)
    return (np.arange(count + 1) * n) // count


def spread_out(n: int, most: int) -> IntArray:
    """At most `most` of the numbers 0 .. n - 1, evenly, the first and the last among them."""
    if n <= most:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, most).round().astype(np.intp))


def stages_of(trace: NDArray[np.void], most: int = 2000) -> list[NDArray[np.void]]:
    """The trace of a fit cut where stages begin: objectives of different stages do not compare.

    At most about `most` lines are kept, of each stage the first and the last, so that long traces
    can be drawn; lines without a finite objective are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> X[::3, 1] = np.nan
    >>> model = KFMC(4, kernel="rbf", bandwidth="path", mix=False, max_iter=5, random_state=0)
    >>> from hirank.estimators.plot_data import stages_of
    >>> stages = stages_of(model.fit(X).trace_)
    >>> all(len(set(stage["stage"].tolist())) == 1 for stage in stages)
    True
    """
    trace = trace[np.isfinite(trace["objective"])]
    if not len(trace):
        return []
    stages = np.split(trace, np.flatnonzero(np.diff(trace["stage"])) + 1)
    share = min(1.0, most / len(trace))
    return [stage[spread_out(len(stage), max(2, round(share * len(stage))))] for stage in stages]


def bend_of(objective: Array) -> float:
    """The size from which a logarithmic axis is right for objectives, on both sides of 0.

    A power of ten; 0 if all are positive, so that a plain logarithmic axis will do.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.estimators.plot_data import bend_of
    >>> bend_of(np.array([1.0, 300.0])), bend_of(np.array([-0.5, 300.0]))
    (0.0, 0.1)
    """
    if (objective > 0).all():
        return 0.0
    size = np.abs(objective[objective != 0])
    if not size.size:
        return 1.0
    least = max(np.quantile(size, 0.05, method="lower"), size.max() / 1e8)
    return float(10 ** np.floor(np.log10(least)))


class Covered(NamedTuple):
    """How many of h hidden entries lie in intervals that they had no part in."""

    feature: IntArray  # h; the column of X each is in
    inside: BoolArray  # h

    @property
    def share(self) -> float:
        return float(self.inside.mean())


def covered(model: Any, coverage: float) -> Covered | None:
    """Check intervals of a fitted KFMC at hidden entries; None if too few were hidden.

    Widths are learned at one half of the hidden entries and counted at the other, both ways. That
    all of them hold `coverage` of the entries that they were learned from says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> from hirank.estimators.plot_data import covered
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1)) * [1, 2, 3] + rng.normal(size=(60, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> found = covered(KFMC(max_iter=20, random_state=0).fit(X), 0.9)
    >>> bool(found.share > 0.8)
    True
    """
    chosen: Chosen | None = model._chosen
    held_out = None if chosen is None else chosen.held_out
    if chosen is None or held_out is None or len(held_out.truth) < FEWEST:
        return None
    residuals = held_out.fill - held_out.truth
    apart = disagreement(held_out.fills.T, held_out.fills @ chosen.blend.shares())
    known = Covariates(held_out.columns, held_out.spread, apart)
    v = int(model._scaling.varying.sum())
    half = np.random.default_rng(0).permutation(len(residuals)) % 2 == 0
    inside = np.empty(len(residuals), bool)
    for here in (half, ~half):
        calibration = Calibration.learn(residuals[~here], known.take(~here), v)
        inside[here] = np.abs(residuals[here]) <= calibration.half_width(known.take(here), coverage)
    return Covered(np.asarray(model.held_out_["feature"]), inside)


def all_columns(values: NDArray[Any], has_values: BoolArray) -> NDArray[Any]:
    """Kept features, n x k, as n x m with NaN in the features that were dropped."""
    if values.shape[1] == len(has_values) or values.shape[1] != has_values.sum():
        return values
    full = np.full((len(values), len(has_values)), np.nan)
    full[:, has_values] = values
    return full


def column_names(names: Any, model: Any, m: int) -> list[str]:
    """The given names of m columns, else those that a model was fitted with, else numbers."""
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = range(m)
    found = [str(name) for name in names]
    if len(found) != m:
        raise ValueError(f"There are {len(found)} names for {m} columns: give one for each.")
    return found
