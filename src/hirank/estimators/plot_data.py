"""The numbers behind the pictures of a table and a fit, for `hirank.plot` and the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray, IntArray
from hirank.estimators.base import BaseImputer
from hirank.estimators.imputer import Imputer
from hirank.estimators.uncertainty import covered_entries


def missing_rates(observed: BoolArray, max_rows: int, max_columns: int) -> Array:
    """Return the share of missing entries of observed, n x m, in blocks of neighbors.

    There are at most `max_rows` x `max_columns` blocks, of nearly equal size. A table that is
    small enough is returned entry by entry: 1 is missing, 0 is observed.

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
    rows, columns = block_edges(n, max_rows), block_edges(m, max_columns)
    counts = np.add.reduceat((~observed).astype(np.float64), rows[:-1], axis=0)
    counts = np.add.reduceat(counts, columns[:-1], axis=1)
    return counts / np.outer(np.diff(rows), np.diff(columns))


def block_edges(n: int, max_count: int) -> IntArray:
    """Return where each of at most `max_count` blocks of n neighbors begins, and n."""
    count = min(n, max_count)
    return (np.arange(count + 1) * n) // count


def evenly_spaced(n: int, max_count: int) -> IntArray:
    """Return at most `max_count` of the numbers 0 .. n - 1, with the first and the last."""
    if n <= max_count:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, max_count).round().astype(np.intp))


def split_stages(trace: NDArray[np.void], max_lines: int = 2000) -> list[NDArray[np.void]]:
    """Split the trace of a fit into its stages, whose objectives are not comparable.

    About `max_lines` lines are kept, among them the first and the last of each stage, so that long
    traces can be drawn. Lines without a finite objective are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> X[::3, 1] = np.nan
    >>> model = KFMC(4, max_iter=5, random_state=0)
    >>> from hirank.estimators.plot_data import split_stages
    >>> stages = split_stages(model.fit(X).trace_)
    >>> all(len(set(stage["stage"].tolist())) == 1 for stage in stages)
    True
    """
    trace = trace[np.isfinite(trace["objective"])]
    if not len(trace):
        return []
    stages = np.split(trace, np.flatnonzero(np.diff(trace["stage"])) + 1)
    share = min(1.0, max_lines / len(trace))
    return [stage[evenly_spaced(len(stage), max(2, round(share * len(stage))))] for stage in stages]


def linear_threshold(objective: Array) -> float:
    """Return the size from which on a logarithmic axis suits objectives, on both sides of 0.

    It is a power of ten, or 0 if all are positive and a plain logarithmic axis is suitable.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.estimators.plot_data import linear_threshold
    >>> linear_threshold(np.array([1.0, 300.0])), linear_threshold(np.array([-0.5, 300.0]))
    (0.0, 0.1)
    """
    if (objective > 0).all():
        return 0.0
    size = np.abs(objective[objective != 0])
    if not size.size:
        return 1.0
    smallest = max(np.quantile(size, 0.05, method="lower"), size.max() / 1e8)
    return float(10 ** np.floor(np.log10(smallest)))


class Coverage(NamedTuple):
    """Which of h held-out entries lie in intervals that were fitted without them."""

    feature: IntArray  # h; the column of X
    inside: BoolArray  # h

    @property
    def share(self) -> float:
        return float(self.inside.mean())


def check_coverage(model: Imputer, coverage: float) -> Coverage | None:
    """Check the intervals of a fitted model at held-out entries; None if there are too few.

    Widths are fitted to one half of the held-out entries and checked at the other half, both ways:
    the entries that widths were fitted to lie in their intervals by construction.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> from hirank.estimators.plot_data import check_coverage
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1)) * [1, 2, 3] + rng.normal(size=(60, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> found = check_coverage(Imputer(max_iter=20, random_state=0).fit(X), 0.9)
    >>> bool(found.share > 0.8)
    True
    """
    inside = covered_entries(model._fitted, coverage)
    return None if inside is None else Coverage(model.held_out_["feature"], inside)


def restore_columns(values: NDArray[Any], has_values: BoolArray) -> NDArray[Any]:
    """Return kept features, n x k, as n x m with NaN in the features that were dropped."""
    if values.shape[1] == len(has_values) or values.shape[1] != has_values.sum():
        return values
    full = np.full((len(values), len(has_values)), np.nan)
    full[:, has_values] = values
    return full


def column_names(
    m: int, names: Iterable[object] | None, model: BaseImputer[Any] | None = None
) -> list[str]:
    """Return the given names of m columns, else those that a model was fitted with, else numbers.

    Examples
    --------
    >>> from hirank.estimators.plot_data import column_names
    >>> column_names(2, ["a", 7]), column_names(2, None)
    (['a', '7'], ['0', '1'])
    """
    if names is None:
        names = getattr(model, "feature_names_in_", range(m))
    found = [str(name) for name in names]
    if len(found) != m:
        raise ValueError(f"names must have one entry per column, {m}; got {len(found)}.")
    return found
