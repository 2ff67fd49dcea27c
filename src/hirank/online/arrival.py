"""Rows on arrival: what the filters expect and what the model of the window imputes, mixed.

The weights are learned from entries that are held out: where rows are in order, the filters know
the last values; where they are not, the model of the window knows the shape of the data. The model
itself does not depend on the filters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from hirank._typing import Array, BoolArray, IntArray, Shape
from hirank.core.masking import mask_row_entries
from hirank.online.buffer import WindowModel
from hirank.online.config import ArrivalConfig
from hirank.online.mixing import MixConfig, PredictionMix
from hirank.online.ordered import Expected, OrderedState

PRIOR = np.array([1.0, 100.0])
"""Mean squared errors of filters and model before any is known: the filters come first."""
MIN_SCORED = 30.0
"""Held-out entries from which the model has a weight."""
MAX_ERROR = 3.0
"""Standard deviations to which errors are clipped when the mix is compared with the model alone."""


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


@dataclass(frozen=True)
class Arrivals:
    """What decides, besides the model of the window, how rows are imputed on arrival."""

    mix: PredictionMix  # of filters and model
    errors: FeatureErrors
    gain: float = 0.0  # squared error of the model alone minus that of the mix at held-out
    # entries; a running sum
    ordered: OrderedState | None = None  # the filters; None if rows are not in order
    expected: Expected | None = None  # by the filters, of the pending rows

    @classmethod
    def start(cls, m: int) -> Arrivals:
        """Return the state before the first row, of m features."""
        return cls(PredictionMix.start(m, PRIOR), FeatureErrors.none(m))

    def add_features(self, count: int, config: ArrivalConfig | None) -> Arrivals:
        """Return the state with so many features more, which had no values so far."""
        ordered = self.ordered
        if ordered is not None and config is not None:
            ordered = ordered.add_features(count, config.ordered)
        expected = None if self.expected is None else self.expected.add_features(count)
        mix, errors = self.mix.add_features(count), self.errors.add_features(count)
        return replace(self, mix=mix, errors=errors, ordered=ordered, expected=expected)

    def discount(self, share: float) -> Arrivals:
        """Return the state with errors of another model counting as a share of what they did."""
        return replace(self, mix=self.mix.discount(share), gain=share * self.gain)

    def check_sizes(self, m: int, pending: int) -> None:
        """Raise ValueError if the parts do not describe m features and the pending rows."""
        widths = {len(self.mix.entries), len(self.errors.entries)}
        if self.ordered is not None:
            widths.add(len(self.ordered.ages))
        if self.expected is not None:
            widths.add(self.expected.ages.shape[1])
            if len(self.expected.ages) != pending:
                raise ValueError("expected must describe the pending rows")
        if widths != {m} or len(self.mix.prior) != len(PRIOR):
            raise ValueError(f"filters, mix and errors must describe {m} features")

    def complete(
        self, rows: Array, times: Array | None, config: ArrivalConfig | None
    ) -> Expected | None:
        """Return what the filters expect of rows, n x m, each as if it were the next."""
        if config is None or self.ordered is None:
            return None
        return self.ordered.complete(rows, times, config.ordered)

    def append(
        self, rows: Array, times: Array | None, n_pending: int, config: ArrivalConfig | None
    ) -> tuple[Arrivals, Expected | None]:
        """Return the state after rows, n x m, and what the filters expected of each.

        Rows without values are not pending.
        """
        if config is None:
            return replace(self, expected=None), None
        ordered = self.ordered or OrderedState.empty(rows.shape[1], config.ordered)
        ordered, expected = ordered.append(rows, times, config.ordered)
        before = self.expected
        if before is None:  # time was None before
            before = Expected.nothing((n_pending, rows.shape[1]))
        some: BoolArray = ~np.asarray(np.isnan(rows).all(axis=1))
        joined = Expected.join([before, expected.at(some)])
        return replace(self, ordered=ordered, expected=joined), expected

    def impute(
        self,
        rows: Array,
        model: WindowModel | None,
        expected: Expected | None,
        config: ArrivalConfig | None,
    ) -> Array:
        """Return rows, n x m, imputed by model and filters; NaN where neither knows anything."""
        missing = np.isnan(rows)
        if model is None:
            return np.where(missing, np.nan if expected is None else expected.imputed, rows)
        by_model = _complete(rows, model)
        if expected is None or config is None:
            return np.where(missing, by_model, rows)
        unknown = self.mix.scored < MIN_SCORED and not self._in_order(config)
        if config.guarded and (self.gain < 0 or unknown):
            mixed = np.where(np.isnan(by_model), expected.imputed, by_model)
        else:
            mixed = _mix(by_model, expected, self.mix, missing, config.mix)
        return np.where(missing, mixed, rows)

    def score(
        self,
        rows: Array,
        by_model: Array,
        model: WindowModel | None,
        unit: Array,
        config: ArrivalConfig,
        rng: np.random.Generator,
    ) -> tuple[Arrivals, Array]:
        """Return the state after the errors at held-out entries, and these entries as mixed.

        `by_model`, n x m, has what the model predicted for held-out entries, NaN elsewhere. Row by
        row: the entries of a row count after those of the rows before.
        """
        expected = self.expected
        assert expected is not None
        held_out = ~np.isnan(by_model)
        if not held_out.any():
            held_out = mask_row_entries(~np.isnan(rows), rng)
        oldest = hold_out_oldest(rows, expected.ages, held_out, rng)
        if model is not None:
            completed = _complete(np.where(oldest, np.nan, rows), model)
            by_model = np.where(oldest, completed, by_model)
        return self.judge(rows, by_model, held_out | oldest, unit, config)

    def judge(
        self, rows: Array, by_model: Array, held_out: BoolArray, unit: Array, config: ArrivalConfig
    ) -> tuple[Arrivals, Array]:
        """Return the state after errors at held-out entries, and these entries as mixed."""
        expected = self.expected
        assert expected is not None
        mix, gain, keep = self.mix, self.gain, 1 - 1 / config.memory
        mixed = np.where(held_out, np.nan, rows)
        for i in np.flatnonzero(held_out.any(axis=1)):
            part = slice(i, i + 1)
            row = expected.at(part)
            mixed[i] = _mix(by_model[part], row, mix, held_out[part], config.mix)[0]
            both = held_out[i] & ~np.isnan(by_model[i]) & ~np.isnan(row.imputed[0])
            at = np.flatnonzero(both)
            each = np.array([row.imputed[0, at], by_model[i, at], mixed[i, at]]) - rows[i, at]
            mix = mix.score(each[:2], at, row.ages[0, at], row.unit[0, at], config.mix)
            if mix.scored >= MIN_SCORED:
                with np.errstate(over="ignore", invalid="ignore"):
                    squares = np.minimum(np.abs(each[1:] / unit[at]), MAX_ERROR) ** 2
                gain = keep ** len(at) * gain + float(np.nansum(squares[0] - squares[1]))
        return replace(self, mix=mix, gain=gain), np.where(held_out, mixed, np.nan)

    def start_mix(
        self, rows: Array, predicted: Array, unit: Array, config: ArrivalConfig | None
    ) -> Arrivals:
        """Return the state after what was predicted of entries that the first fit held out.

        Not where rows follow each other: the fit knew the rows after such an entry.
        """
        n, expected = len(rows), self.expected
        if config is None or expected is None or len(expected.ages) < n:
            return self
        if not config.guarded or self._in_order(config):
            return self
        recent = replace(self, expected=expected.at(slice(-n, None)))
        return recent.judge(rows, predicted, ~np.isnan(predicted), unit, config)[0]

    def _in_order(self, config: ArrivalConfig) -> bool:
        """Return whether rows follow each other, by the autocorrelation of their levels."""
        ordered = self.ordered
        return ordered is not None and ordered.moments.pooled_level() > config.max_level

    def add_errors(self, errors: Array) -> Arrivals:
        """Return the state with errors, n x m in standard deviations, NaN = unknown."""
        by_feature = self.errors
        for row in errors[~np.isnan(errors).all(axis=1)]:
            some = np.flatnonzero(~np.isnan(row))
            by_feature = by_feature.add(some, row[some])
        return replace(self, errors=by_feature)


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


def hold_out_oldest(
    rows: Array, ages: Array, held_out: BoolArray, rng: np.random.Generator
) -> BoolArray:
    """Return as many further observed entries of rows, n x m, as are held out of each already.

    Those whose last value is oldest, since missing entries have been missing for longer than
    observed ones; ties are broken at random. A row keeps at least one observed entry.
    """
    observed = ~np.isnan(rows)
    free = observed & ~held_out
    count = np.minimum(held_out.sum(axis=1), np.maximum(observed.sum(axis=1) - 1, 0))
    age = np.where(free, ages + rng.random(rows.shape), -1.0)
    rank = (-age).argsort(axis=1).argsort(axis=1)
    return free & (rank < count[:, None])
