"""Pictures of tables, fits and fills; needs matplotlib.

Every function draws into the Axes that it is given, or into those of a new figure, and returns
them. A new figure belongs to nobody else: pyplot does not know it, so that nothing has to be closed
and no other figure changes. In a notebook it shows as the ``figure`` of the Axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hirank.estimators.plot_data import all_columns, bend_of, column_names, missing_rates, stages_of
from hirank.estimators.validation import is_missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "held_out", "intervals", "missingness"]

OWN, OTHER, GRAY = "#0072B2", "#D55E00", "#6B6B6B"
"""Blue and vermilion of Okabe and Ito, which color-blind people tell apart."""
MOST_BLOCKS = (1000, 500)
NAMED = 40
"""Columns up to which their names are written."""
MOST_ROWS = 200
"""Rows up to which intervals stand apart from each other."""


def missingness(X: Any, *, names: Sequence[object] | None = None, ax: Any = None) -> Axes:
    """Draw which entries of a table are missing: dark ones are.

    Parameters
    ----------
    X : array-like, n_samples x n_features
        Missing entries are NaN. Of large tables blocks of entries are drawn, shaded by the share
        that is missing.
    names : list of str, optional
        Of the columns; by default those of X, else their numbers.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank.plot import missingness
    >>> X = np.array([[1.0, np.nan], [2.0, 3.0]])
    >>> missingness(X, names=["a", "b"]).get_title()
    '25 % missing'
    """
    ax = _axes(ax)
    given = getattr(X, "columns", None) if names is None else names
    table = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    n, m = table.shape
    labels = column_names(given, None, m)
    observed = ~np.isnan(table)
    # The same blue as of fills, from white; edges are those of the entries, n x m.
    colors = _colormap()
    ax.imshow(
        missing_rates(observed, *MOST_BLOCKS),
        cmap=colors,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
    )
    if m <= NAMED:
        ax.set_xticks(range(m), labels, rotation=60, ha="right")
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    ax.set_title(f"{100 * (1 - observed.mean()):.3g} % missing")
    return ax


def convergence(model: Any, *, ax: Any = None) -> Axes:
    """Draw the objective of a fit over time, a line for each stage.

    Different stages minimize different things, so that only the course of each line counts, not its
    height.

    Parameters
    ----------
    model : KFMC, or another fitted imputer of hirank
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> from hirank.plot import convergence
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> X[::3, 1] = np.nan
    >>> model = KFMC(4, kernel="rbf", bandwidth="path", mix=False, max_iter=5, random_state=0)
    >>> convergence(model.fit(X)).get_ylabel()
    'objective'
    """
    check_is_fitted(model)
    ax = _axes(ax)
    stages = stages_of(model.trace_)
    for stage in stages:
        marker = "." if len(stage) == 1 else ""
        ax.plot(stage["seconds"], stage["objective"], color=OWN, linewidth=1, marker=marker)
    values = np.concatenate([stage["objective"] for stage in stages]) if stages else np.zeros(0)
    if bend := bend_of(values):
        ax.set_yscale("symlog", linthresh=bend)
    else:
        ax.set_yscale("log")
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective")
    steps = int(model.trace_["step"][-1]) if len(model.trace_) else 0
    ax.set_title(f"{steps} steps, {len(stages)} stages")
    return ax


def held_out(model: Any, *, feature: int | str | None = None, ax: Any = None) -> Axes:
    """Draw what was filled in for hidden entries against what they really were.

    Parameters
    ----------
    model : KFMC
        Fitted to a table, of which it has hidden entries.
    feature : int or str, optional
        The number or name of a column. By default all together, each in standard deviations from
        its mean (those of its hidden entries).
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> from hirank.plot import held_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = KFMC(max_iter=20, random_state=0).fit(X)
    >>> held_out(model, feature=1).get_xlabel()
    'true value of 1'
    """
    check_is_fitted(model)
    entries = model.held_out_
    if not entries:
        raise ValueError(
            "This fit has hidden no entries: the table was too small, or all settings were given. "
            "Leave n_components='auto' or mix=True."
        )
    if feature is None:
        truth, fill = _standardized(entries)
        what = "true value (standard deviations)"
    else:
        j = _number_of(model, feature)
        mine = entries["feature"] == j
        if not mine.any():
            raise ValueError(f"No entry of feature {feature!r} was hidden: choose another one.")
        truth, fill = entries["truth"][mine], entries["fill"][mine]
        what = f"true value of {feature}"
    ax = _axes(ax)
    ax.plot(truth, fill, ".", color=OWN, alpha=0.4, markeredgewidth=0)
    ax.axline((truth[0], truth[0]), slope=1, color=GRAY, linestyle="--", linewidth=1)
    ax.set_xlabel(what)
    ax.set_ylabel("filled in")
    ax.set_title(f"{len(truth)} hidden entries")
    return ax


def intervals(
    model: Any, X: Any, *, feature: int | str, coverage: float = 0.9, ax: Any = None
) -> Axes:
    """Draw a column: observed values, fills, and intervals around the fills.

    Parameters
    ----------
    model : KFMC
    X : array-like, n_samples x n_features
    feature : int or str
        The number or name of the column.
    coverage : float, default=0.9
        Probability that the truth lies in an interval.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> from hirank.plot import intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = KFMC(max_iter=20, random_state=0).fit(X)
    >>> intervals(model, X, feature=1).get_xlabel()
    'row'
    """
    check_is_fitted(model)
    j = _number_of(model, feature)
    if not model.has_values_[j]:
        raise ValueError(f"Feature {feature!r} had no observed entry in fit: there are no fills.")
    lower, upper = (all_columns(e, model.has_values_)[:, j] for e in model.interval(X, coverage))
    table = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")[:, [j]]
    missing = is_missing(table, model.missing_values)[:, 0]
    ax = _axes(ax)
    rows, blank = np.arange(len(table)), np.flatnonzero(missing & np.isfinite(lower))
    ax.plot(rows[~missing], table[~missing, 0], ".", color=GRAY, markersize=4, label="observed")
    # Bounds cut intervals on one side: a fill need not be in the middle of its own.
    fill = all_columns(_kept(model, X), model.has_values_)[blank, j]
    ends = np.maximum([fill - lower[blank], upper[blank] - fill], 0)
    ax.errorbar(
        rows[blank],
        fill,
        yerr=ends,
        fmt="D",
        color=OTHER,
        markersize=3,
        elinewidth=1 if len(blank) <= MOST_ROWS else 0.5,
        alpha=1 if len(blank) <= MOST_ROWS else 0.5,
        label=f"filled, {100 * coverage:.3g} % interval",
    )
    ax.set_xlabel("row")
    ax.set_ylabel(str(feature))
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    """Those that were given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "hirank[plot]"') from error
    return Figure(layout="constrained").subplots()


def _colormap() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("missing", ["#F4F6F8", OWN])


def _standardized(entries: dict[str, Any]) -> tuple[Any, Any]:
    """Truth and fill of all hidden entries, in standard deviations of their column."""
    place, column = np.unique(entries["feature"], return_inverse=True)
    count = np.bincount(column, minlength=len(place))
    mean = np.bincount(column, entries["truth"]) / count
    spread = np.sqrt(np.bincount(column, (entries["truth"] - mean[column]) ** 2) / count)
    varies = spread[column] > 0
    return tuple(
        ((entries[name] - mean[column])[varies] / spread[column][varies])
        for name in ("truth", "fill")
    )


def _number_of(model: Any, feature: int | str) -> int:
    """The number of a column that is given by number or name."""
    names = column_names(None, model, model.n_features_in_)
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"There is no feature {feature!r}; there are: {', '.join(names)}.")
        return names.index(feature)
    if not 0 <= feature < len(names):
        raise ValueError(f"feature must be from 0 to {len(names) - 1}, or a name; got {feature!r}.")
    return int(feature)


def _kept(model: Any, X: Any) -> Any:
    """The table as ``transform`` fills it, n x kept features."""
    table, observed = model._checked(X, reset=False)
    return model._complete(table, observed)
