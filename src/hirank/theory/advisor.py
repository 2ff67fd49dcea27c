"""Advice on a table: what an Imputer recovers of it, and what the paper's theory asks for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.columns import Columns
from hirank.estimators.functional import read_numbers
from hirank.estimators.imputer import Imputer
from hirank.estimators.validation import is_missing, to_floats
from hirank.exceptions import EmptyRowsWarning, FewEntriesWarning
from hirank.theory.advice import Advice, Name
from hirank.theory.counts import count_observed
from hirank.theory.ranks import feature_dimension
from hirank.theory.rates import freedom
from hirank.theory.structure import KERNEL_DEGREE, Structure, measure_structure

MAX_ROWS = 1000
"""Rows that the structure is measured on, since that takes a time of n^3."""
MAX_ERROR = 0.9
"""Error at held-out entries, column mean = 1, above which no structure can be measured."""
GOOD_ERROR = 0.35
"""Error up to which rows with few observed entries count as recovered."""
MIN_ENTRIES = 20
"""Held-out entries that such an error requires."""


def advise(
    X: Any,
    *,
    max_time: float | None = 60.0,
    missing_values: float = np.nan,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Advice:
    """Report how well the missing values of a table can be imputed, and which of them cannot.

    An :class:`hirank.Imputer` is fitted, and its error at held-out entries is reported. The latent
    dimension and the ranks of the imputed table are estimated, and from those the share of entries
    that should be observed, and the rows and columns that have too few.

    Parameters
    ----------
    X : array-like or data frame, n_samples x n_features
        Of a data frame, numeric columns are used.
    max_time : float, optional
        Seconds that the fit may take.
    missing_values : float, default=nan
        The placeholder of a missing value. NaN always counts as missing as well.
    random_state : int, RandomState or None, default=None
    n_jobs : int, optional
        As in :class:`hirank.Imputer`.

    Returns
    -------
    advice : Advice
        A record; ``print`` shows it as text.

    Notes
    -----
    A row requires more observed entries than there are latent dimensions, unless rows with fewer
    were recovered, as on a line, where one entry determines the other. A column requires more than
    the rank of the table, since it combines as many functions of the latent variables. Entries are
    held out at random: if values are missing because of what they are, true errors are larger.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.theory import advise
    >>> t = np.linspace(-1, 1, 80)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X[::3, 1] = np.nan
    >>> advice = advise(X, random_state=0)
    >>> advice.error < 0.5 * advice.linear_error, advice.latent_dimension
    (True, 1)
    """
    values, names, ignored = _read_numbers(X)
    model = Imputer(
        max_time=max_time,
        missing_values=missing_values,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    with warnings.catch_warnings():
        for stated in (EmptyRowsWarning, FewEntriesWarning):  # the advice states both
            warnings.simplefilter("ignore", stated)
        filled = model.fit_transform(values)
    summary = model.summary()
    observed = ~is_missing(values, missing_values)
    columns = Columns.measure(values, observed, scale="auto")
    has_values, varying = columns.has_values, columns.varying
    used = observed[:, varying]
    error = summary.get("error", np.nan)
    rows = np.flatnonzero(used.any(axis=1))
    structure = _measure(filled[rows], columns, error) if error < MAX_ERROR else None
    row_needs = _row_needs(model.held_out_, structure, observed.sum(axis=1), columns)
    column_needs = structure.linear_rank + 1 if structure else 1
    counts = count_observed(used, row_needs, column_needs)
    named = np.array(names, dtype=object)
    poor = {row["feature"]: row["error"] for row in summary.get("features", []) if row["remark"]}
    return Advice(
        n_samples=len(values),
        n_features=values.shape[1],
        observed_rate=float(observed.mean()),
        verdict=summary["verdict"],
        n_held_out=summary["n_held_out"],
        error=error,
        linear_error=summary.get("linear_error", np.nan),
        poor_features={names[j]: one for j, one in poor.items()},
        **_estimate(structure, len(rows), int(varying.sum())),
        reachable=counts.reachable,
        row_needs=row_needs,
        column_needs=column_needs,
        sparse_rows=_few(range(len(values)), used.sum(axis=1), counts.sparse_rows),
        sparse_features=_few(named[varying], used.sum(axis=0), counts.sparse_columns),
        empty_rows=tuple(np.flatnonzero(~observed.any(axis=1)).tolist()),
        empty_features=tuple(named[~has_values]),
        constant_features=tuple(named[has_values & ~varying]),
        separate_groups=tuple(tuple(named[varying][group]) for group in counts.groups),
        ignored_columns=ignored,
    )


def _read_numbers(X: Any) -> tuple[Array, tuple[Name, ...], tuple[str, ...]]:
    """Return the table as floats, n x m, the names of its columns, and those not numeric."""
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("The data frame is lazy. Call collect() first.")
    numeric: list[str] = []
    others: list[str] = []
    if isinstance(frame, nw.DataFrame):
        X, numeric, others = read_numbers(frame)
    values = to_floats(X)
    return values, tuple(numeric) or tuple(range(values.shape[1])), tuple(others)


def _measure(filled: Array, columns: Columns, error: float) -> Structure:
    """Measure the structure of imputed rows, n x k, on at most `MAX_ROWS` random ones."""
    rng = np.random.default_rng(0)
    some = filled[np.sort(rng.permutation(len(filled))[:MAX_ROWS])]
    scaling = columns.scaling
    return measure_structure(np.where(scaling.inliers(some), scaling.forward(some), 0), error, rng)


def _row_needs(
    held_out: dict[str, Any], structure: Structure | None, n_observed: IntArray, columns: Columns
) -> int:
    """Return how many observed entries a row requires; 1 if no structure is known."""
    if structure is None:
        return 1
    scaling, place = columns.scaling, np.cumsum(columns.has_values)[held_out["feature"]] - 1
    off = (held_out["imputed"] - held_out["truth"]) / scaling.spread[place]
    size = (held_out["truth"] - scaling.mean[place]) / scaling.spread[place]
    n_left = n_observed[held_out["row"]] - 1  # at most: more entries of the row may be held out
    needs = structure.latent_dimension + 1
    while needs > 1:
        few = n_left < needs
        recovered = np.linalg.norm(off[few]) <= GOOD_ERROR * np.linalg.norm(size[few])
        if few.sum() < MIN_ENTRIES or not recovered:
            break
        needs -= 1
    return needs


def _estimate(structure: Structure | None, n: int, v: int) -> dict[str, Any]:
    """Return ranks, and the sampling rates of the paper for them."""
    if structure is None:
        return {}
    monomials = feature_dimension(v, kernel_degree=KERNEL_DEGREE)
    return {
        "latent_dimension": structure.latent_dimension,
        "linear_rank": structure.linear_rank,
        "feature_rank": structure.feature_rank,
        "low_rank_rate": freedom(structure.linear_rank, n, v),
        "kfmc_rate": freedom(structure.feature_rank, n, monomials) ** (1 / KERNEL_DEGREE),
    }


def _few(names: Iterable[Any], n_observed: IntArray, sparse: BoolArray) -> dict[Any, int]:
    """Return those that have observed entries, but too few, with their numbers."""
    rows = zip(names, n_observed.tolist(), sparse.tolist(), strict=True)
    return {name: number for name, number, is_sparse in rows if is_sparse and number}
