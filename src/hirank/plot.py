"""Pictures of tables, fits and imputed values; requires matplotlib.

Every function draws into the given Axes, or into those of a new figure, and returns them. A new
figure is not registered with pyplot: nothing has to be closed, and no other figure changes. In a
notebook it is shown as the ``figure`` of the Axes. The report contains the same pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hirank._text import number, plural
from hirank._typing import Array
from hirank.estimators.base import BaseImputer
from hirank.estimators.imputer import Imputer
from hirank.estimators.plot_data import (
    column_names,
    evenly_spaced,
    linear_threshold,
    missing_rates,
    restore_columns,
    split_stages,
)
from hirank.estimators.validation import is_missing, to_floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["candidates", "convergence", "held_out", "intervals", "missingness"]

# Blue and vermilion of Okabe and Ito, which color-blind people can distinguish; grays for the rest.
BLUE, VERMILION, GRAY, GRID, GROUND = "#0072b2", "#d55e00", "#6b6b6b", "#d3d9e0", "#f4f6f8"
MARKERS = "os^Dvp*Xh"
MAX_BLOCKS = (500, 250)  # rows x columns; more cannot be seen on a page
MAX_NAMES = 24  # columns up to which their names are written
MAX_LETTERS = 18  # of a name in a picture


def missingness(X: Any, *, names: Iterable[object] | None = None, ax: Axes | None = None) -> Axes:
    """Draw which entries of a table are missing: the dark ones.

    Parameters
    ----------
    X : array-like, n_samples x n_features
        Missing entries are NaN. Large tables are drawn in blocks of entries, shaded by the share
        that is missing.
    names : list of str, optional
        Names of the columns; by default those of X, else their numbers.
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
    names = getattr(X, "columns", None) if names is None else names
    observed = ~np.isnan(to_floats(X))
    n, m = observed.shape
    labels = [_shorten(name) for name in column_names(m, names)]
    from matplotlib.colors import LinearSegmentedColormap

    # From transparent to blue, so that the picture suits light and dark pages.
    colors = LinearSegmentedColormap.from_list("missing", [BLUE + "00", BLUE])
    ax.set_facecolor(GROUND)
    blocks, extent = missing_rates(observed, *MAX_BLOCKS), (-0.5, m - 0.5, n - 0.5, -0.5)
    image = ax.imshow(blocks, cmap=colors, aspect="auto", interpolation="none", extent=extent)
    image.set_clim(0, 1)
    if m <= MAX_NAMES:
        ax.set_xticks(range(m), labels, parse_math=False)
        if max(map(len, labels)) > 3:
            ax.tick_params("x", rotation=60)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    _label(ax, "column", "row", f"{number(100 * (1 - observed.mean()))} % missing")
    ax.grid(visible=False)
    return ax


def convergence(model: BaseImputer[Any], *, ax: Axes | None = None) -> Axes:
    """Draw the objective of a fit over time, with one line for each stage.

    Different stages minimize different objectives: only the course of a line is meaningful, not its
    height relative to others.

    Parameters
    ----------
    model : Imputer, or another fitted imputer of hirank
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
    >>> model = KFMC(4, max_iter=5, random_state=0)
    >>> convergence(model.fit(X)).get_ylabel()
    'objective'
    """
    check_is_fitted(model)
    ax, stages = _axes(ax), split_stages(model.trace_)
    for stage in stages:
        style = "." if len(stage) == 1 else "-"
        ax.plot(stage["seconds"], stage["objective"], style, color=BLUE, linewidth=1, markersize=2)
    values = np.concatenate([stage["objective"] for stage in stages]) if stages else np.zeros(0)
    if threshold := linear_threshold(values):
        ax.set_yscale("symlog", linthresh=threshold)
        ax.yaxis.set_major_formatter("{x:g}")
    else:
        _use_log_scale(ax, "y")
    steps = int(model.trace_["step"].max(initial=0))
    _label(ax, "seconds", "objective", f"{plural(steps, 'step')}, {plural(len(stages), 'stage')}")
    return ax


def candidates(model: Imputer, *, ax: Axes | None = None) -> Axes:
    """Draw the error of each model that was compared against the seconds that it took.

    Parameters
    ----------
    model : Imputer
        A fitted model with ``search_results_``. Selected models are filled.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> from hirank.plot import candidates
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> candidates(Imputer(max_iter=20, random_state=0).fit(X)).get_ylabel()
    'error at held-out entries'
    """
    check_is_fitted(model)
    results = model.search_results_
    if not np.isfinite(results["error"]).any():
        raise ValueError("This fit compared no models. Fit a larger table, or set no parameters.")
    ax = _axes(ax)
    error = results["error"]
    seconds = np.maximum(results["seconds"], 1e-3)  # 0 has no place on a logarithmic axis
    for family, marker in zip(dict.fromkeys(results["family"].tolist()), cycle(MARKERS)):
        mine = results["family"] == family
        ax.plot(seconds[mine], error[mine], marker, color=BLUE, fillstyle="none", label=family)
        mine &= results["weight"] > 0
        ax.plot(seconds[mine], error[mine], marker, color=VERMILION)
    ax.plot([], [], "o", color=VERMILION, label="filled: selected")
    _use_log_scale(ax, "x")
    if np.nanmax(error) > 30 * np.nanmin(error) > 0:
        _use_log_scale(ax, "y")
    else:
        ax.set_ylim(0, 1.08 * np.nanmax(error))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
    _label(ax, "seconds", "error at held-out entries", plural(len(seconds), "model") + " compared")
    return ax


def held_out(
    model: Imputer,
    *,
    feature: int | str | None = None,
    max_points: int = 2000,
    ax: Axes | None = None,
) -> Axes:
    """Draw the imputed against the true values of held-out entries.

    Parameters
    ----------
    model : Imputer
        A fitted model that has held out entries.
    feature : int or str, optional
        The number or name of a column. By default all columns are drawn, each in standard
        deviations from its mean (both of its held-out entries).
    max_points : int, default=2000
        Of more entries, as many are drawn, evenly spaced.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> from hirank.plot import held_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = Imputer(max_iter=20, random_state=0).fit(X)
    >>> held_out(model, feature=1).get_xlabel()
    'true value'
    """
    check_is_fitted(model)
    entries = model.held_out_
    if not entries:
        raise ValueError(
            "This fit held out no entries: the table is too small, or all parameters were set. "
            "Fit a larger table."
        )
    if feature is None:
        points, unit = _standardize(entries), " (standard deviations)"
    else:
        mine = entries["feature"] == _find_column(model, feature)
        if not mine.any():
            raise ValueError(f"No entry of feature {feature!r} was held out. Select another one.")
        points = np.array([entries["truth"][mine], entries["imputed"][mine]])
        unit = ""
    shown = points[:, evenly_spaced(points.shape[1], max_points)]
    ax = _axes(ax)
    alpha = 0.7 if shown.shape[1] <= 200 else 0.4
    ax.plot(*shown, ".", color=BLUE, alpha=alpha, markeredgewidth=0, markersize=7)
    low, high = shown.min(initial=np.inf), shown.max(initial=-np.inf)
    if low <= high:
        ax.plot([low, high], [low, high], color=GRAY, linestyle="--", linewidth=1)
    title = plural(points.shape[1], "held-out entry", "held-out entries")
    some = f", {shown.shape[1]:,} shown" if shown.shape[1] < points.shape[1] else ""
    _label(ax, f"true value{unit}", f"imputed value{unit}", title + some)
    return ax


def intervals(
    model: Imputer, X: Any, *, feature: int | str, coverage: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Draw a column: observed values, imputed values, and the intervals around them.

    Parameters
    ----------
    model : Imputer
    X : array-like, n_samples x n_features
    feature : int or str
        The number or name of the column.
    coverage : float, default=0.9
        Probability that an interval contains the true value.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> from hirank.plot import intervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 1)) * [1, 2, 3] + rng.normal(size=(40, 3)) / 4
    >>> X[::4, 1] = np.nan
    >>> model = Imputer(max_iter=20, random_state=0).fit(X)
    >>> intervals(model, X, feature=1).get_xlabel()
    'row'
    """
    check_is_fitted(model)
    j, has_values = _find_column(model, feature), model.has_values_
    if not has_values[j]:
        raise ValueError(f"Feature {feature!r} had no observed values in fit and is not imputed.")
    lower, upper = (restore_columns(end, has_values)[:, j] for end in model.interval(X, coverage))
    k = len(has_values) if model.keep_empty_features else has_values.sum()
    filled = restore_columns(np.asarray(model.transform(X))[:, :k], has_values)[:, j]
    table = to_floats(X)
    missing = is_missing(table, model.missing_values)[:, j]
    seen, rows = np.flatnonzero(~missing), np.flatnonzero(missing & np.isfinite(lower))
    ax = _axes(ax)
    ax.plot(seen, table[seen, j], ".", color=GRAY, markersize=4, label="observed")
    # Bounds cut intervals on one side: an imputed value need not be in the middle of its own.
    ends = np.maximum([filled[rows] - lower[rows], upper[rows] - filled[rows]], 0)
    strength = 1 if len(rows) <= 200 else 0.5
    ax.errorbar(
        rows,
        filled[rows],
        yerr=ends,
        fmt="D",
        color=VERMILION,
        markersize=3,
        elinewidth=strength,
        alpha=strength,
        label=f"imputed, {number(100 * coverage)} % interval",
    )
    _label(ax, "row", _shorten(feature), "")
    ax.legend()
    return ax


def _axes(ax: Any) -> Any:
    """Return the given Axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots require matplotlib: pip install "hirank[plot]"') from error
    return Figure(layout="constrained").subplots()


def _label(ax: Any, x: str, y: str, title: str) -> None:
    """Set labels and grid. A dollar sign in the name of a column is not mathematics."""
    ax.set_xlabel(x, parse_math=False)
    ax.set_ylabel(y, parse_math=False)
    ax.set_title(title, fontsize="medium")
    ax.grid(color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _use_log_scale(ax: Any, axis: str) -> None:
    """Scale an axis logarithmically, with plain numbers also where it spans less than a decade."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set(**{f"{axis}scale": "log"})
    scaled = getattr(ax, f"{axis}axis")
    low, high = scaled.get_data_interval()
    wide = not np.isfinite([low, high]).all() or low <= 0 or high >= 100 * low
    scaled.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5), numticks=6))
    scaled.set_major_formatter("{x:g}")
    scaled.set_minor_formatter(NullFormatter())


def _shorten(name: object) -> str:
    """Return a name that fits into a picture, on one line."""
    text = " ".join(str(name).split())
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _standardize(entries: dict[str, NDArray[Any]]) -> Array:
    """Return true and imputed values, 2 x h, in standard deviations from the column mean."""
    pairs = np.array([entries["truth"], entries["imputed"]])
    column = np.unique(entries["feature"], return_inverse=True)[1]
    count = np.bincount(column)
    largest = np.zeros(len(count))
    np.maximum.at(largest, column, np.abs(pairs).max(axis=0))
    pairs = pairs / np.where(largest > 0, largest, 1)[column]  # squares must not overflow
    mean = (np.bincount(column, pairs[0]) / count)[column]
    spread = np.sqrt(np.bincount(column, (pairs[0] - mean) ** 2) / count)[column]
    return (pairs - mean)[:, spread > 0] / spread[spread > 0]


def _find_column(model: Imputer, feature: int | str) -> int:
    """Return the number of a column that is given by number or name."""
    names = column_names(model.n_features_in_, None, model)
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature must be one of {', '.join(names)}; got {feature!r}.")
        return names.index(feature)
    if not 0 <= feature < len(names):
        raise ValueError(f"feature must be from 0 to {len(names) - 1}, or a name; got {feature!r}.")
    return int(feature)
