"""The summary of a fitted Imputer: as a dictionary, and as text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hirank._text import plural
from hirank._typing import Array, IntArray
from hirank.core.columns import Columns
from hirank.estimators.columns import Names
from hirank.estimators.fitted import FittedImputer
from hirank.selection.significance import CLEAR_GAIN, gain
from hirank.selection.trial import HeldOut

MIN_ENTRIES = 5
"""Held-out entries of a feature below which its error would be chance."""
POOR, USELESS = 0.9, 1.0
"""Errors, column mean = 1, from which imputed values are hardly, or not at all, better."""
SAME, MUCH = 1.03, 1.5
"""Ratios of errors that count as equal, and as much larger."""
MAX_SPARSE = 2
"""Observed entries up to which a row is sparsely observed."""
MIN_UNJUDGED = 0.01
"""Part of the missing entries from which the text mentions those that cannot be judged."""
UNKNOWN = "No entries were held out, so the error of imputed values is not known."
MAX_LISTED = 12
"""Features that the text lists, worst first."""


class Summary(dict[str, Any]):
    """The facts of a fit by name, which print as text.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import Imputer
    >>> t = np.linspace(-1, 1, 80)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X[::3, 1] = np.nan
    >>> summary = Imputer(random_state=0).fit(X).summary()
    >>> summary["error"] < summary["linear_error"]
    True
    """

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__


def summarize(fitted: FittedImputer, names: Names) -> Summary:
    """Return the summary of a fit, with features by name if they have names."""
    facts: dict[str, Any] = {
        "selected": [
            {"family": one.family, "label": one.label, "weight": one.weight, **one.params}
            for one in fitted.search.selected
        ],
        "stop_reason": fitted.run.stop_reason,
        "seconds": fitted.seconds,
        "n_held_out": 0,
        "verdict": UNKNOWN,
    }
    held_out = fitted.search.held_out
    if held_out is None:
        return Summary(facts)
    errors = _Errors.measure(fitted.columns, held_out)
    scale = _rms(errors.mean) or np.nan
    facts |= {
        "n_held_out": len(errors.own),
        "error": _rms(errors.own) / scale,
        "linear_error": _rms(errors.linear) / scale,
        "mean_error": 1.0,
        "features": _features(fitted.columns, errors, names),
        "sparse_rows": fitted.n_sparse_rows,
        "unjudged": fitted.search.unlike,
    }
    facts["verdict"] = _verdict(facts["error"], *_gains(errors))
    return Summary(facts)


class _Errors(NamedTuple):
    """Errors at h held-out entries, in standard deviations of their features.

    They are those of the units of the data: where long tails are compressed, errors in the tails
    are larger than they are to the models.
    """

    rows: IntArray
    columns: IntArray  # among the v features that vary
    own: Array
    linear: Array  # of the best linear family; NaN without one
    mean: Array  # of the column means

    @classmethod
    def measure(cls, columns: Columns, held_out: HeldOut) -> _Errors:
        """Return the errors of what was imputed for held-out entries."""
        at, scaling = held_out.columns, columns.scaling
        truth, own, linear = (
            columns.unscale_entries(x, at)
            for x in (held_out.truth, held_out.imputed, held_out.linear)
        )
        mean = scaling.mean[scaling.varying][at]
        errors = (np.abs(x - truth) / scaling.deviation[at] for x in (own, linear, mean))
        return cls(held_out.rows, at, *errors)


def _gains(errors: _Errors) -> tuple[float, float]:
    """Return root mean square and mean absolute error of linear methods over those of the stack.

    A gain that may be chance is none: the ratio is at most 1 then.
    """
    ratios = []
    for power in (2, 1):
        linear, own = errors.linear**power, errors.own**power
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = float((np.mean(linear) / np.mean(own)) ** (1 / power))
        is_clear = gain(linear, own, errors.rows) > CLEAR_GAIN
        ratios.append(ratio if is_clear or np.isnan(ratio) else min(ratio, 1.0))
    return ratios[0], ratios[1]


def _features(columns: Columns, errors: _Errors, names: Names) -> list[dict[str, Any]]:
    """Return the errors of each feature that varies, relative to its mean, with a remark."""
    rows = []
    for v, j in enumerate(np.flatnonzero(columns.varying)):
        here = errors.columns == v
        row: dict[str, Any] = {
            "feature": str(names[j]) if names is not None else int(j),
            "n_held_out": int(here.sum()),
            "error": np.nan,
            "linear_error": np.nan,
            "remark": "",
        }
        if here.sum() >= MIN_ENTRIES:
            scale = _rms(errors.mean[here]) or np.nan
            row["error"] = _rms(errors.own[here]) / scale
            row["linear_error"] = _rms(errors.linear[here]) / scale
            row["remark"] = _remark(row["error"])
        rows.append(row)
    return rows


def _remark(error: float) -> str:
    if error >= USELESS:
        return "no better than the mean: unrelated to the other features"
    return "poorly recovered: weakly related to the other features" if error > POOR else ""


def _verdict(error: float, squared: float, absolute: float) -> str:
    """Return what the errors show about the table, as a sentence.

    `squared` and `absolute` are the root mean square and mean absolute error of linear methods over
    those of the stack; the larger one counts, since a few entries must not conceal a gain.
    """
    gain = max(squared, absolute)
    if error > POOR and not gain > MUCH:
        return (
            "Held-out entries are recovered hardly better than by column means: the columns are "
            "nearly unrelated, so no method can impute them accurately."
        )
    if np.isnan(gain):
        return "No linear method was fitted to compare with."
    if gain < SAME:
        return (
            "A linear method does as well: the table is close to linear or of low rank, and "
            "nonlinear models gain nothing."
        )
    kind = "error" if squared >= SAME else "mean absolute error"
    ratio = squared if squared >= SAME else absolute
    return f"Nonlinear models pay off: the best linear method has {ratio:.2f} times the {kind}."


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"hirank.Imputer, fitted in {facts['seconds']:.1f} s", facts["stop_reason"]]
    if not facts["n_held_out"]:
        return [*lines, facts["verdict"]]
    linear_error = facts["linear_error"]
    lines += [
        facts["verdict"],
        "",
        f"Error at {facts['n_held_out']} held-out entries (column mean = 1):",
        f"  this model          {facts['error']:.3f}",
        *([] if np.isnan(linear_error) else [f"  best linear method  {linear_error:.3f}"]),
        "",
        f"  {'feature':<24}{'error':>8}{'linear':>8}",
    ]
    ranked = sorted(facts["features"], key=lambda row: -np.nan_to_num(row["error"], nan=-1.0))
    for row in ranked[:MAX_LISTED]:
        error = "too few" if np.isnan(row["error"]) else f"{row['error']:.3f}"
        linear = "" if np.isnan(row["linear_error"]) else f"{row['linear_error']:.3f}"
        name = str(row["feature"])[:23]
        lines.append(f"  {name:<24}{error:>8}{linear:>8}  {row['remark']}".rstrip())
    if len(ranked) > MAX_LISTED:
        others = plural(len(ranked) - MAX_LISTED, "feature")
        lines.append(f"  ... and {others} with smaller errors")
    if facts["unjudged"] >= MIN_UNJUDGED:
        lines += [
            "",
            f"{facts['unjudged']:.0%} of the missing entries are in rows unlike any in which they "
            "are observed: their error cannot be judged.",
        ]
    if facts["sparse_rows"]:
        rows = plural(facts["sparse_rows"], "row has", "rows have")
        lines += ["", f"{rows} {MAX_SPARSE} observed entries or fewer: imputed values are guesses."]
    return lines
