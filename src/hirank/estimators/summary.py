"""What a fitted KFMC can say of itself: as a dictionary, and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.selection.results import Chosen, HeldOut

FEWEST = 5
"""Hidden entries of a feature below which its error would be chance."""
POOR, NO_BETTER = 0.9, 1.0
"""Error over that of the column mean: hardly worth it, and not at all."""
LEVEL, MUCH = 1.03, 1.5
"""Times an error: that counts as the same, and much more."""
THIN = 2
"""Observed entries of a sample up to which its fills are guesses."""
UNKNOWN = "No entries were hidden, so nothing is known of how good the fills are."
SHOWN = 12
"""Features that the text lists, worst first."""


class Summary(dict[str, Any]):
    """The facts of a fit by name; printed, it is a text for people.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import KFMC
    >>> t = np.linspace(-1, 1, 80)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> X[::3, 1] = np.nan
    >>> summary = KFMC(random_state=0).fit(X).summary()
    >>> summary["error"] < summary["linear_error"]
    True
    """

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__


def summarize(model: Any) -> Summary:
    """The summary of a fitted KFMC."""
    chosen: Chosen | None = model._chosen
    facts: dict[str, Any] = {
        "chosen": [],
        "stop_reason": model.stop_reason_,
        "n_components": model.n_components_,
        "seconds": model._seconds,
        "n_hidden": 0,
        "verdict": UNKNOWN,
    }
    if chosen is None:
        return Summary(facts)
    facts["chosen"] = [
        {"candidate": str(one), "weight": weight, **one.settings}
        for one, weight in chosen.results
        if weight
    ]
    if chosen.held_out is None:
        return Summary(facts)
    held_out = chosen.held_out
    truth = held_out.truth
    scale = _rms(truth - _means(model)[held_out.columns]) or np.nan
    facts |= {
        "n_hidden": len(held_out.truth),
        "error": _rms(held_out.fill - held_out.truth) / scale,
        "linear_error": _rms(held_out.linear - held_out.truth) / scale,
        "mean_error": 1.0,
        "features": _features(model, held_out),
        "thin_samples": model._thin,
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        squared, absolute = (
            size(held_out.linear - truth) / size(held_out.fill - truth) for size in (_rms, _mean)
        )
    facts["verdict"] = _verdict(facts["error"], squared, absolute)
    return Summary(facts)


def _features(model: Any, held_out: HeldOut) -> list[dict[str, Any]]:
    """Each feature that varies: errors over that of its mean, and what to think of them."""
    kept = np.flatnonzero(model.has_values_)[model._scaling.varying]
    names = getattr(model, "feature_names_in_", None)
    found, middle = [], _means(model)
    for v, j in enumerate(kept):
        mine = held_out.columns == v
        row: dict[str, Any] = {
            "feature": str(names[j]) if names is not None else int(j),
            "n_hidden": int(mine.sum()),
            "error": np.nan,
            "linear_error": np.nan,
            "remark": "",
        }
        if mine.sum() >= FEWEST:
            truth = held_out.truth[mine]
            scale = _rms(truth - middle[v]) or np.nan
            row["error"] = _rms(held_out.fill[mine] - truth) / scale
            row["linear_error"] = _rms(held_out.linear[mine] - truth) / scale
            row["remark"] = _remark(row["error"])
        found.append(row)
    return found


def _remark(error: float) -> str:
    if error >= NO_BETTER:
        return "no better than the mean: unrelated to the other features"
    return "poorly recovered: hardly related to the other features" if error > POOR else ""


def _verdict(error: float, squared: float, absolute: float) -> str:
    """What the table is like, in a sentence, by the error of linear methods over the own.

    Root mean square and mean absolute errors count, whichever gains more: a few entries must not
    hide a gain.
    """
    gain = max(squared, absolute)
    if error > POOR and not gain > MUCH:
        return (
            "Hidden entries are hardly recovered better than by column means: the features have "
            "little to do with each other, and no method will fill them well."
        )
    if np.isnan(gain):
        return "No linear method was tried."
    if gain < LEVEL:
        return (
            "A linear method does as well: the table is about low rank or linear, and nothing is "
            "gained by curved models."
        )
    kind = "error" if squared >= LEVEL else "mean absolute error"
    shown = squared if squared >= LEVEL else absolute
    return f"Curved models pay: the best linear method has {shown:.2f} times the {kind}."


def _means(model: Any) -> Array:
    """What column means are in the units that entries are judged in, v."""
    return np.asarray(model._scaling.forward(model._scaling.mean[None])[0])


def _mean(x: Array) -> float:
    return float(np.mean(np.abs(x)))


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _linear_line(error: float) -> list[str]:
    return [] if np.isnan(error) else [f"  best linear method  {error:.3f}"]


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"hirank.KFMC, fitted in {facts['seconds']:.1f} s", facts["stop_reason"]]
    if not facts["n_hidden"]:
        return [*lines, facts["verdict"]]
    lines += [
        facts["verdict"],
        "",
        f"Error at {facts['n_hidden']} hidden entries (column mean = 1):",
        f"  this model          {facts['error']:.3f}",
        *_linear_line(facts["linear_error"]),
        "",
        f"  {'feature':<24}{'error':>8}{'linear':>8}",
    ]
    ranked = sorted(facts["features"], key=lambda row: -np.nan_to_num(row["error"], nan=-1.0))
    for row in ranked[:SHOWN]:
        error = "too few" if np.isnan(row["error"]) else f"{row['error']:.3f}"
        linear = "" if np.isnan(row["linear_error"]) else f"{row['linear_error']:.3f}"
        name = str(row["feature"])[:23]
        lines.append(f"  {name:<24}{error:>8}{linear:>8}  {row['remark']}".rstrip())
    if len(ranked) > SHOWN:
        lines.append(f"  ... and {len(ranked) - SHOWN} features with smaller errors")
    if facts["thin_samples"]:
        lines += [
            "",
            f"{facts['thin_samples']} samples have {THIN} observed entries or fewer: their fills "
            "are guesses.",
        ]
    return lines
