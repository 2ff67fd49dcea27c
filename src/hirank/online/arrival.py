"""Rows on arrival: what the filters expect and what the model of the window imputes, mixed.

The weights are learned from entries that are held out: where rows are in order, the filters know
the last values; where they are not, the model of the window knows the shape of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.masking import mask_row_entries
from hirank.online.buffer import WindowModel
from hirank.online.mixing import MixConfig, PredictionMix
from hirank.online.ordered import Expected

PRIOR = np.array([1.0, 100.0])
"""Mean squared errors of filters and model before any is known: the filters come first."""
MIN_SCORED = 30.0
"""Held-out entries from which the model has a weight."""
MAX_HELD_OUT = 0.15
"""Part of the observed entries of a row that may be held out for old last values as well. Filters
are judged by entries given all others; with more, the errors of the model would be those of rows
that lack too much (docs/notes/ordered_streams.md)."""


@dataclass(frozen=True)
class FeatureErrors:
    """Running mean squared errors of imputed values by feature, in standard deviations."""

    squares: Annotated[Array, Shape("m")]
    entries: Annotated[Array, Shape("m")]  # behind each, older ones counted less

    MEMORY = 200.0

    @classmethod
    def none(cls, m: int) -> FeatureErrors:
        """Return that no errors are known."""
        return cls(np.zeros(m), np.zeros(m))

    def add(self, features: IntArray, errors: Array) -> FeatureErrors:
        """Return the errors after those of some entries of different features."""
        squares, entries, keep = self.squares.copy(), self.entries.copy(), 1 - 1 / self.MEMORY
        squares[features] = keep * squares[features] + errors**2
        entries[features] = keep * entries[features] + 1
        return FeatureErrors(squares, entries)

    def add_features(self, count: int) -> FeatureErrors:
        """Return the errors with so many features more."""
        more = np.zeros(count)
        return FeatureErrors(np.append(self.squares, more), np.append(self.entries, more))

    @property
    def values(self) -> Array:
        """The root mean square errors; NaN without entries."""
        known = self.entries > 0
        mean = np.divide(self.squares, self.entries, out=np.full(len(known), np.nan), where=known)
        return np.sqrt(mean)


def impute(
    rows: Array,
    model: WindowModel | None,
    expected: Expected | None,
    mix: PredictionMix,
    config: MixConfig,
) -> Array:
    """Return rows, n x m, imputed by model and filters; NaN where neither knows anything."""
    missing = np.isnan(rows)
    if model is None:
        return np.where(missing, np.nan if expected is None else expected.imputed, rows)
    by_model = _complete(rows, model)
    if expected is None:
        return np.where(missing, by_model, rows)
    return np.where(missing, _mix(by_model, expected, mix, missing, config), rows)


def _complete(rows: Array, model: WindowModel) -> Array:
    """Return rows as the model completes them; NaN for rows and features that it cannot impute."""
    usable = model.has_observed(rows)
    completed = np.full(rows.shape, np.nan)
    if usable.any():
        completed[usable] = model.complete(rows[usable])
    completed[:, np.isnan(model.means)] = np.nan
    return completed


def _mix(
    by_model: Array, expected: Expected, mix: PredictionMix, where: BoolArray, config: MixConfig
) -> Array:
    """Return the weighted means at some entries; elsewhere and without a model, the filters'."""
    mixed = np.where(np.isnan(expected.imputed), by_model, expected.imputed)
    if mix.scored < MIN_SCORED:
        return mixed
    rows, features = np.nonzero(where & ~np.isnan(by_model) & ~np.isnan(expected.imputed))
    at = rows, features
    weights = mix.weights(features, expected.ages[at], expected.unit[at], config)
    # Written so that equal values come out as they are, to the bit.
    mixed[at] = expected.imputed[at] + weights[:, 1] * (by_model[at] - expected.imputed[at])
    return mixed


def hold_out(rows: Array, ages: IntArray | None, rng: np.random.Generator) -> BoolArray:
    """Return which observed entries of rows, n x m, to hold out.

    With ages, as many again: those whose last value is oldest, since missing entries have been
    missing for longer than observed ones. In rows with few observed entries they take the place of
    the others, in every second row at random.
    """
    observed = ~np.isnan(rows)
    held_out = mask_row_entries(observed, rng)
    if ages is None:
        return held_out
    count = held_out.sum(axis=1)
    both = 2 * count <= MAX_HELD_OUT * observed.sum(axis=1)
    instead = rng.random(len(rows)) < 0.5
    held_out &= (both | ~instead)[:, None]
    age = np.where(observed & ~held_out, ages + rng.random(rows.shape), -1.0)
    rank = (-age).argsort(axis=1).argsort(axis=1)
    return held_out | ((rank < count[:, None]) & (both | instead)[:, None])


def score(
    rows: Array,
    by_model: Array,
    expected: Expected,
    held_out: BoolArray,
    mix: PredictionMix,
    config: MixConfig,
) -> tuple[PredictionMix, Array]:
    """Return the mix after the errors of held-out entries, and these entries as it mixed them.

    `by_model`, n x m, was imputed without them, NaN where there is no model. Row by row: the
    entries of a row count after those of the rows before.
    """
    mixed = np.where(held_out, np.nan, rows)
    for i in np.flatnonzero(held_out.any(axis=1)):
        part = slice(i, i + 1)
        row = expected.at(part)
        mixed[i] = _mix(by_model[part], row, mix, held_out[part], config)[0]
        both = held_out[i] & ~np.isnan(by_model[i]) & ~np.isnan(row.imputed[0])
        at = np.flatnonzero(both)
        errors = np.array([row.imputed[0, at], by_model[i, at]]) - rows[i, at]
        mix = mix.score(errors, at, row.ages[0, at], row.unit[0, at], config)
    return mix, mixed
