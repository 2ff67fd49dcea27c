"""Intervals and draws around imputed values, calibrated on the held-out entries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array, BoolArray
from hirank.core.columns import ScaledTable
from hirank.estimators.fitted import FittedImputer
from hirank.exceptions import InputError
from hirank.models.calibration import Calibration, Covariates
from hirank.models.stacking import Stack, disagreement
from hirank.selection.trial import HeldOut, Selected

NO_HELD_OUT = (
    "The table was too small to hold out entries, so the errors of imputed values are not known. "
    "Fit a larger table."
)


def held_out_covariates(held_out: HeldOut, stack: Stack) -> Covariates:
    """Return what predicts the errors at the held-out entries."""
    # Around the stack, as for new entries, even where neighbors in time moved the imputed values.
    around = held_out.by_family @ stack.family_weights()
    apart = disagreement(held_out.by_family.T, around)
    return Covariates(held_out.columns, held_out.deviation, apart)


def calibrate(selected: Selected, v: int) -> Calibration | None:
    """Return the calibration of intervals for v features; None without held-out entries."""
    held_out = selected.result.held_out
    if held_out is None:
        return None
    residuals = selected.error_factor * (held_out.imputed - held_out.truth)
    return Calibration.fit(residuals, held_out_covariates(held_out, selected.stack), v)


class _Imputed(NamedTuple):
    """A table that was imputed, in the units of the data and as the models see it."""

    values: Array  # n x k
    fixed: BoolArray  # n x k; entries that are observed, or left empty
    scaled: ScaledTable  # n x v
    around: Array  # n x v; the imputed values, scaled
    spread: Array  # n x v; how far the families of models are apart


def _impute(fitted: FittedImputer, X: Array, observed: BoolArray) -> _Imputed:
    return _describe(fitted, X, observed, *fitted.complete_with_spread(X, observed))


def _describe(
    fitted: FittedImputer, X: Array, observed: BoolArray, values: Array, spread: Array
) -> _Imputed:
    columns = fitted.columns
    empty = np.isnan(values)
    around = columns.scaling.forward(np.where(empty, 0, values).astype(np.float64))
    fixed = observed[:, columns.has_values] | empty
    return _Imputed(values, fixed, columns.scale(X, observed), around, spread)


def _calibration(fitted: FittedImputer) -> Calibration:
    if fitted.calibration is None:
        raise InputError(NO_HELD_OUT)
    return fitted.calibration


def _covariates(fitted: FittedImputer, imputed: _Imputed) -> Covariates:
    """Return what predicts the errors of the missing entries of a table."""
    X, observed = imputed.scaled
    missing, deviation = ~observed, np.zeros(X.shape)
    if fitted.mixture is not None:
        deviation = fitted.mixture.conditional(X, observed)[1]
    return Covariates(np.nonzero(missing)[1], deviation[missing], imputed.spread[missing])


def interval(
    fitted: FittedImputer, X: Array, observed: BoolArray, coverage: float
) -> tuple[Array, Array]:
    """Return lower and upper ends of intervals for a table, n x m -> n x k each."""
    calibration = _calibration(fitted)  # raises before the table is imputed
    return _ends(fitted, calibration, _impute(fitted, X, observed), coverage)


def interval_around(
    fitted: FittedImputer,
    X: Array,
    observed: BoolArray,
    coverage: float,
    *,
    values: Array,
    spread: Array,
) -> tuple[Array, Array]:
    """Return intervals for a table that was imputed before; see `complete_with_spread`.

    Without a calibration, intervals are unknown: NaN at entries that were imputed.
    """
    imputed = _describe(fitted, X, observed, values, spread)
    if fitted.calibration is None:
        unknown = np.where(imputed.fixed, values, np.array(np.nan, values.dtype))
        return unknown, unknown.copy()
    return _ends(fitted, fitted.calibration, imputed, coverage)


def _ends(
    fitted: FittedImputer, calibration: Calibration, imputed: _Imputed, coverage: float
) -> tuple[Array, Array]:
    columns = fitted.columns
    missing = ~imputed.scaled.observed
    half = np.zeros(missing.shape)
    half[missing] = calibration.half_width(_covariates(fitted, imputed), coverage)
    ends = (
        columns.constrain(columns.scaling.backward(imputed.around + sign * half))
        for sign in (-1, 1)
    )
    lower, upper = (
        np.where(imputed.fixed, imputed.values, end.astype(imputed.values.dtype)) for end in ends
    )
    return lower, upper


def draw(
    fitted: FittedImputer, X: Array, observed: BoolArray, n_draws: int, rng: np.random.Generator
) -> Array:
    """Return completed tables drawn from what is possible, n_draws x n x k."""
    calibration, columns = _calibration(fitted), fitted.columns
    imputed = _impute(fitted, X, observed)
    covariates = _covariates(fitted, imputed)  # the same for all draws
    known, dtype = imputed.scaled.observed, imputed.values.dtype
    tables = np.empty((n_draws, *imputed.values.shape), dtype)
    for i in range(n_draws):
        drawn = calibration.draw(imputed.around, known, covariates, fitted.mixture, rng)
        drawn = columns.constrain(columns.scaling.backward(drawn), rounded=True)
        tables[i] = np.where(imputed.fixed, imputed.values, drawn.astype(dtype))
    return tables


def held_out_entries(fitted: FittedImputer) -> dict[str, NDArray[Any]]:
    """Return the held-out entries and what was imputed for them, in the units of the data."""
    held_out, columns = fitted.search.held_out, fitted.columns
    if held_out is None:
        return {}
    return {
        "row": held_out.rows.copy(),
        "feature": np.flatnonzero(columns.varying)[held_out.columns],
        **{
            name: columns.unscale_entries(getattr(held_out, name), held_out.columns)
            for name in ("truth", "imputed", "linear")
        },
    }


def covered_entries(fitted: FittedImputer, coverage: float) -> BoolArray | None:
    """Return which held-out entries lie in intervals calibrated on the other half of them.

    None if there are fewer than 20 of them, too few for a share. The entries that intervals were
    calibrated on would be covered by construction.
    """
    held_out = fitted.search.held_out
    if held_out is None or len(held_out.truth) < 20:
        return None
    residuals = held_out.imputed - held_out.truth
    covariates = held_out_covariates(held_out, fitted.model)
    v = int(fitted.columns.scaling.varying.sum())
    half = np.random.default_rng(0).permutation(len(residuals)) % 2 == 0
    inside = np.empty(len(residuals), bool)
    for here in (half, ~half):
        calibration = Calibration.fit(residuals[~here], covariates.take(~here), v)
        width = calibration.half_width(covariates.take(here), coverage)
        inside[here] = np.abs(residuals[here]) <= width
    return inside
