"""``hirank compare``: impute held-out values with hirank and with other methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hirank._text import alternatives, plural
from hirank._typing import Array, BoolArray
from hirank.cli.fit_table import read_table
from hirank.cli.output_checks import check_outputs
from hirank.cli.reporter import Reporter
from hirank.core.masking import mask_uniform
from hirank.exceptions import InputError, ParameterError

if TYPE_CHECKING:
    from hirank.cli.app import Compare

Method: TypeAlias = Callable[[Array], Array]
PICTURES = (".png", ".svg", ".pdf")
MIN_HELD_OUT = 20
"""Held-out values below which differences of errors are chance."""


@dataclass(frozen=True)
class Score:
    """The error of a method (root mean square, column mean = 1); None if it failed."""

    method: str
    error: float | None
    seconds: float
    failure: str | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.method:<22}  failed: {self.failure}"
        return f"{self.method:<22}{self.error:8.3f}{self.seconds:10.1f}"


@dataclass(frozen=True)
class Comparison:
    """Scores of all methods, best first."""

    n_held_out: int
    results: list[Score]
    plot: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is printed as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        held_out = plural(self.n_held_out, "observed value was", "observed values were")
        lines = [f"{held_out} held out and imputed. Error: root mean square, column mean = 1.", ""]
        lines += [f"{'method':<22}{'error':>8}{'seconds':>10}", *map(str, self.results)]
        return "\n".join([*lines, *(["", f"Plot: {self.plot}"] if self.plot else [])])


def run(options: Compare, reporter: Reporter) -> None:
    """Hold out some values, impute them by each method, and print the errors."""
    check_outputs(options.plot, source=options.table, force=options.force)
    if options.plot is not None and options.plot.suffix.lower() not in PICTURES:
        raise ParameterError("plot", f"must end with {alternatives(PICTURES)}; got {options.plot}.")
    given = read_table(options, reporter)
    X, held_out = _hold_out(given.table.numbers, options.hold_out, options.seed)
    scores = []
    for name, method in _make_methods(options.max_time, options.seed, options.n_jobs).items():
        with reporter.warnings(), reporter.fitting(options.max_time):
            scores.append(_score(name, method, X, held_out))
    scores.sort(key=lambda score: np.inf if score.error is None else score.error)
    if options.plot is not None:
        _draw(scores, options.plot, Path(given.file.path).name)
    reporter.result(Comparison(int(held_out.sum()), scores, options.plot))


def _hold_out(X: Array, share: float, seed: int) -> tuple[Array, BoolArray]:
    """Return the columns that vary, n x v, and which of their observed values to hold out."""
    X = X[:, [len(np.unique(x[~np.isnan(x)])) > 1 for x in X.T]]
    X = X[~np.isnan(X).all(axis=1)]
    # Not the seed alone: values removed before with the same seed would leave none to hold out.
    held_out = mask_uniform(~np.isnan(X), share, np.random.default_rng([seed, 1]))
    if held_out.sum() < MIN_HELD_OUT:
        raise InputError(
            f"Only {plural(int(held_out.sum()), 'value')} can be held out; a comparison requires "
            f"{MIN_HELD_OUT}. Use a larger table or a larger --hold-out."
        )
    return X, held_out


def _score(name: str, method: Method, X: Array, held_out: BoolArray) -> Score:
    began = perf_counter()
    table = np.where(held_out, np.nan, X)
    try:
        filled = method(table)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return Score(name, None, perf_counter() - began, str(error))
    seconds = perf_counter() - began
    columns, scale = np.nonzero(held_out)[1], np.nanstd(X, axis=0)
    errors = [(fill - X)[held_out] / scale[columns] for fill in (filled, np.nanmean(table, axis=0))]
    own, means = (float(np.sqrt(np.mean(error**2))) for error in errors)
    return Score(name, own / means, seconds)


def _make_methods(max_time: float | None, seed: int, n_jobs: int) -> dict[str, Method]:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from hirank import Imputer
    from hirank.baselines import SoftImpute

    def standardize(imputer: Any) -> Method:
        scaler = StandardScaler()
        pipeline = make_pipeline(scaler, imputer)
        return lambda X: scaler.inverse_transform(pipeline.fit_transform(X))

    return {
        "column mean": SimpleImputer().fit_transform,
        "k nearest neighbors": standardize(KNNImputer()),
        "iterative ridge": standardize(IterativeImputer(random_state=seed, tol=1e-2)),
        "soft-impute": SoftImpute(random_state=seed).fit_transform,
        "hirank": Imputer(max_time=max_time, random_state=seed, n_jobs=n_jobs).fit_transform,
    }


def _draw(scores: list[Score], path: Path, title: str) -> None:
    from matplotlib.figure import Figure

    shown = [(score.method, score.error) for score in scores[::-1] if score.error is not None]
    methods, errors = zip(*shown, strict=True)
    figure = Figure(figsize=(7, 0.6 + 0.45 * len(shown)), layout="constrained")
    ax = figure.add_subplot()
    colors = ["#0072B2" if method == "hirank" else "#9aa5b1" for method in methods]
    ax.bar_label(ax.barh(methods, errors, color=colors), fmt="%.3f", padding=3)
    ax.set_xlabel("error at held-out values, column mean = 1")
    ax.set_title(title)
    ax.margins(x=0.12)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
