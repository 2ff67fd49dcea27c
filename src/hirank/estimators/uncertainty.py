"""How far to trust the fills of a fitted KFMC: hidden entries, intervals and draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hirank._typing import Array, BoolArray
from hirank.estimators.column_constraints import rounded
from hirank.estimators.validation import check_count, check_number, generator
from hirank.selection.results import Chosen
from hirank.selection.uncertainty import Confidence


class _View(NamedTuple):
    """A table, n x kept features, filled, and as the models see it, n x v."""

    filled: Array
    seen: BoolArray  # what is not to be changed: observed, or left empty
    scaled: Array
    known: BoolArray  # what fills rest on, n x v
    around: Array  # the fills, scaled


def _view(model: Any, X: Any) -> _View:
    check_is_fitted(model)
    table, observed = model._checked(X, reset=False)
    scaling, kept = model._scaling, table[:, model.has_values_]
    seen = observed[:, model.has_values_]
    scaled = scaling.forward(np.where(seen, kept, 0).astype(np.float64))
    known = seen[:, scaling.varying] & scaling.inliers(kept)
    filled = model._complete(table, observed)
    empty = np.isnan(filled)
    around = scaling.forward(np.where(empty, 0, filled).astype(np.float64))
    return _View(filled, seen | empty, scaled, known, around)


def _confidence(model: Any) -> Confidence:
    found: Confidence | None = model._confidence
    if found is None:
        raise ValueError(
            "This fit has hidden no entries to learn from how good its fills are: the table was "
            "too small, or all settings were given. Use a larger table, or leave "
            "n_components='auto' or mix=True."
        )
    return found


def interval_of(model: Any, X: Any, coverage: float) -> tuple[Array, Array]:
    """Lower and upper ends of intervals, n x kept features each."""
    check_number("coverage", coverage, above=0)
    if not coverage < 1:
        raise ValueError(f"coverage must be below 1, for instance 0.9; got {coverage!r}.")
    view = _view(model, X)
    half = _confidence(model).half_width(view.scaled, view.known, float(coverage))
    nothing = np.zeros(view.filled.shape[1], bool)
    lower, upper = (
        rounded(model._scaling.backward(end), nothing, model._limits)
        for end in (view.around - half, view.around + half)
    )
    dtype = view.filled.dtype
    return (
        np.where(view.seen, view.filled, lower.astype(dtype)),
        np.where(view.seen, view.filled, upper.astype(dtype)),
    )


def draws_of(model: Any, X: Any, n_draws: int, random_state: Any) -> Array:
    """Tables as they may be, n_draws x n x kept features."""
    check_count("n_draws", n_draws)
    view, confidence, rng = _view(model, X), _confidence(model), generator(random_state)
    covariates = confidence.covariates(view.scaled, view.known)  # the same for all draws
    tables = np.empty((n_draws, *view.filled.shape), view.filled.dtype)
    for i in range(n_draws):
        drawn = confidence.draw(view.around, view.known, covariates, rng)
        whole = model._whole[model.has_values_]
        drawn = rounded(model._scaling.backward(drawn), whole, model._limits)
        tables[i] = np.where(view.seen, view.filled, drawn.astype(view.filled.dtype))
    return tables


def held_out_of(model: Any, chosen: Chosen | None) -> dict[str, NDArray[Any]]:
    """Hidden entries and what was filled in for them, h each, in the units of the data."""
    held_out = None if chosen is None else chosen.held_out
    if held_out is None:
        return {}
    scaling, has_values = model._scaling, model.has_values_
    h, v = len(held_out.truth), int(scaling.varying.sum())
    kept = np.flatnonzero(has_values)[scaling.varying]

    def back(values: Array) -> Array:
        one = np.zeros((h, v))
        one[np.arange(h), held_out.columns] = values
        full = np.empty((h, len(has_values)))
        full[:, has_values] = scaling.backward(one)
        return full[np.arange(h), kept[held_out.columns]]

    return {
        "row": held_out.rows.copy(),
        "feature": kept[held_out.columns],
        "truth": back(held_out.truth),
        "fill": back(held_out.fill),
        "linear": back(held_out.linear),
    }
