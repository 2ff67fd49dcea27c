"""``hirank compare``: hirank and other methods on cells whose values are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.cli.errors import USAGE, Failure
from hirank.cli.fit_table import Given, read
from hirank.cli.output_checks import check_targets
from hirank.cli.reporter import Told
from hirank.core.masking import mask_uniform

Fill = Callable[[Array], Array]
FEWEST = 20
"""Hidden cells below which a comparison says nothing."""


def run(
    *,
    table: str,
    plot: Path | None,
    hide: float,
    missing: list[str] | None,
    ids: list[str] | None,
    max_time: float | None,
    seed: int,
    force: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Hide, fill by each method, and tell how far each was off."""
    told = Told(as_json=as_json, quiet=quiet)
    check_targets(table, plot, force=force)
    if plot is not None:
        _check_plot(plot)
    given = read(table, told, missing=missing, ids=ids, **reading)
    X, hidden = _hide(given, hide, seed)
    results: list[dict[str, Any]] = []
    for name, method in _methods(max_time, seed).items():
        began = perf_counter()
        try:
            with told.warnings(), told.fitting(max_time if name == "hirank" else None):
                filled = method(np.where(hidden, np.nan, X))
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            results.append({"method": name, "error": None, "failure": str(error)})
            continue
        off = (filled - X)[hidden] / np.nanstd(X, axis=0)[np.nonzero(hidden)[1]]
        rms = float(np.sqrt(np.mean(off**2)))
        results.append({"method": name, "error": rms, "seconds": perf_counter() - began})
    results.sort(key=lambda row: np.inf if row["error"] is None else row["error"])
    if plot is not None:
        _draw(results, plot, Path(given.file.path).name)
    facts = {"hidden": int(hidden.sum()), "results": results, "plot": plot}
    told.result(facts, _words(facts))


def _hide(given: Given, part: float, seed: int) -> tuple[Array, BoolArray]:
    """The columns that vary, n x v, and which of their observed cells to hide."""
    numbers = given.table.numbers
    X = numbers[:, [np.nanstd(x) > 0 if (~np.isnan(x)).any() else False for x in numbers.T]]
    observed = ~np.isnan(X)
    X = X[observed.any(axis=1)]
    observed = ~np.isnan(X)
    # Not the seed alone: whoever removed cells with the same one would see none hidden.
    hidden = mask_uniform(observed, part, np.random.default_rng([seed, 1]))
    if hidden.sum() < FEWEST:
        raise Failure(
            f"Only {int(hidden.sum())} cells could be hidden, and {FEWEST} are needed to tell "
            "methods apart: give a larger table, or a larger --hide."
        )
    return X, hidden


def _methods(max_time: float | None, seed: int) -> dict[str, Fill]:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from hirank import Imputer
    from hirank.baselines import SoftImpute

    def scaled(imputer: Any) -> Fill:
        scaler = StandardScaler()

        def fill(X: Array) -> Array:
            return scaler.inverse_transform(make_pipeline(scaler, imputer).fit_transform(X))

        return fill

    return {
        "column mean": SimpleImputer().fit_transform,
        "k nearest neighbors": scaled(KNNImputer()),
        "iterative ridge": scaled(IterativeImputer(random_state=seed, tol=1e-2)),
        "soft-impute": SoftImpute(random_state=seed).fit_transform,
        "hirank": Imputer(max_time=max_time, random_state=seed).fit_transform,
    }


def _words(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['hidden']} observed cells were hidden and filled again; errors in standard "
        "deviations of the columns.",
        "",
        f"{'method':<22}{'error':>8}{'seconds':>10}",
    ]
    for row in facts["results"]:
        if row["error"] is None:
            lines.append(f"{row['method']:<22}  failed: {row['failure']}")
        else:
            lines.append(f"{row['method']:<22}{row['error']:8.3f}{row['seconds']:10.1f}")
    return "\n".join([*lines, *(["", f"Plot: {facts['plot']}"] if facts["plot"] else [])])


def _check_plot(path: Path) -> None:
    """Whether it can be drawn, asked before the work begins."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kind = path.suffix.lower().removeprefix(".")
    if kind and kind not in FigureCanvasAgg.get_supported_filetypes():
        raise Failure(f"--plot {path}: no such kind of picture; use .png, .svg or .pdf.", USAGE)


def _draw(results: list[dict[str, Any]], path: Path, title: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [row for row in results if row["error"] is not None][::-1]
    figure = Figure(figsize=(7, 0.6 + 0.45 * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    colors = ["#0072B2" if row["method"] == "hirank" else "#9aa5b1" for row in shown]
    bars = ax.barh([row["method"] for row in shown], [row["error"] for row in shown], color=colors)
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set_xlabel("error at hidden cells, in standard deviations")
    ax.set_title(title)
    ax.margins(x=0.12)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
