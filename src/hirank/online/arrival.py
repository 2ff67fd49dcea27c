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
from hirank.online.filters import KINDS
from hirank.online.intervals import AdaptiveQuantiles, IntervalConfig
from hirank.online.mixing import PredictionMix, quadratic
from hirank.online.ordered import Expected, OrderedState

PRIOR = np.array([1.0, 100.0])
"""Mean squared errors of filters and model before any is known: the filters come first."""
MIN_SCORED = 30.0
"""Held-out entries from which the model has a weight."""
MODEL = "dictionary"
"""Name of the model of the window, where weights are reported."""
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

    def sizes(self) -> Array:
        """Return what size of errors to expect, m: those of all features count as ten entries."""
        n = self.entries.sum()
        pooled = self.squares.sum() / n if n else 1.0
        return np.asarray(np.sqrt((self.squares + 10 * pooled) / (self.entries + 10)))

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
    quantiles: AdaptiveQuantiles  # of errors, for intervals
    gain: float = 0.0  # squared error of the model alone minus that of the mix at held-out
    # entries; a running sum
    ordered: OrderedState | None = None  # the filters; None if rows are not in order
    expected: Expected | None = None  # by the filters, of the pending rows

    @classmethod
    def start(cls, m: int) -> Arrivals:
        """Return the state before the first row, of m features."""
        mix, errors = PredictionMix.start(m, PRIOR), FeatureErrors.none(m)
        return cls(mix, errors, AdaptiveQuantiles.start())

    def add_features(self, count: int, config: ArrivalConfig | None) -> Arrivals:
        """Return the state with so many features more, which had no values so far."""
        ordered = self.ordered
        if ordered is not None and config is not None:
            ordered = ordered.add_features(count, config.ordered)
        expected = None if self.expected is None else self.expected.add_features(count)
        mix, errors = self.mix.add_features(count), self.errors.add_features(count)
        return replace(self, mix=mix, errors=errors, ordered=ordered, expected=expected)

    def with_expected(self, expected: Expected | None) -> Arrivals:
        """Return the state with what the filters expected of other pending rows."""
        return replace(self, expected=expected)

    def discount(self, share: float) -> Arrivals:
        """Return the state with errors of another model counting as a share of what they did."""
        # They count enough for the mix to go on.
        kept = max(share, min(1.0, 1.001 * MIN_SCORED / max(self.mix.scored, MIN_SCORED)))
        return replace(self, mix=self.mix.discount(kept), gain=share * self.gain)

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
    ) -> tuple[Array, Array]:
        """Return rows, n x m, imputed by model and filters; NaN where neither knows anything.

        Also return what size of errors to expect, in units of the data; NaN where not known.
        """
        missing = np.isnan(rows)
        by_model = np.full(rows.shape, np.nan) if model is None else _complete(rows, model)
        if expected is None or config is None:
            unit = np.full(rows.shape[1], np.nan) if model is None else model.unit
            sizes = np.broadcast_to(self.errors.sizes() * np.nan_to_num(unit), rows.shape)
            return np.where(missing, by_model, rows), np.where(missing, sizes, 0)
        mixed, sizes = self._mix(by_model, expected, missing, config)
        return np.where(missing, mixed, rows), np.where(missing, sizes, 0)

    def _mix(
        self, by_model: Array, expected: Expected, where: BoolArray, config: ArrivalConfig
    ) -> tuple[Array, Array]:
        """Return the weighted means at some entries, and their errors to expect.

        Elsewhere and without a model, what the filters expect; where the mix is no better than the
        model alone, what that has imputed.
        """
        unknown = np.isnan(expected.imputed)
        mixed = np.where(unknown, by_model, expected.imputed)
        sizes = np.where(unknown, np.nan, expected.error)
        if self.mix.scored < MIN_SCORED:
            if config.guarded and not self.in_order(config):
                mixed = np.where(np.isnan(by_model), mixed, by_model)
            return mixed, sizes * expected.volatility
        rows, features = np.nonzero(where & ~np.isnan(by_model) & ~unknown)
        at = rows, features
        unit = expected.unit[at]
        weights, squares = self.mix.weights(features, expected.ages[at], unit, config.mix)
        # Written so that equal values come out as they are, to the bit.
        mixed[at] = expected.imputed[at] + weights[:, 1] * (by_model[at] - expected.imputed[at])
        if config.guarded and self.gain < 0:
            weights, mixed[at] = np.broadcast_to([0.0, 1.0], weights.shape), by_model[at]
        constant = expected.error[at] == 0
        sizes[at] = np.where(constant, 0, unit * np.sqrt(quadratic(weights, squares)))
        return mixed, sizes * expected.volatility

    def mean_weights(self, age: float, config: ArrivalConfig | None) -> dict[str, float]:
        """Return the weights of filters and model at entries of an age, means of all features."""
        if config is None or self.ordered is None:
            return {MODEL: 1.0}
        m = len(self.ordered.ages)
        at, ages, unit = np.arange(m), np.full(m, age), self.ordered.moments.deviation
        each, _ = self.ordered.mix.weights(at, ages, unit, config.ordered.mix)
        share = 0.0
        if config.guarded and self.gain < 0:
            share = 1.0
        elif self.mix.scored >= MIN_SCORED:
            share = float(self.mix.weights(at, ages, unit, config.mix)[0][:, 1].mean())
        weights = zip(KINDS, ((1 - share) * each.mean(axis=0)).tolist(), strict=True)
        return {**dict(weights), MODEL: share}

    def half_widths(self, sizes: Array, expected: Expected | None, coverage: float) -> Array:
        """Return half the widths of intervals, for errors of sizes to expect, n x m."""
        ages = np.ones(sizes.shape) if expected is None else expected.ages
        return self.quantiles.half_width(sizes, ages, coverage)

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
        state, keep = self, 1 - 1 / config.memory
        mixed = np.where(held_out, np.nan, rows)
        for i in np.flatnonzero(held_out.any(axis=1)):
            part = slice(i, i + 1)
            row, some = expected.at(part), np.flatnonzero(held_out[i])
            found, sizes = state._mix(by_model[part], row, held_out[part], config)
            mixed[i, some] = found[0, some]
            quantiles = state._add_scores(found[0] - rows[i], sizes[0], row.ages[0], some, config)
            at = some[~np.isnan(by_model[i, some]) & ~np.isnan(row.imputed[0, some])]
            each = np.array([row.imputed[0, at], by_model[i, at]]) - rows[i, at]
            weights, _ = state.mix.weights(at, row.ages[0, at], row.unit[0, at], config.mix)
            mix = state.mix.score(each, at, row.ages[0, at], row.unit[0, at], config.mix)
            gain = state.gain
            if mix.scored >= MIN_SCORED:
                errors = np.array([each[1], (weights * each.T).sum(axis=1)])
                with np.errstate(over="ignore", invalid="ignore"):
                    squares = np.minimum(np.abs(errors / unit[at]), MAX_ERROR) ** 2
                gain = keep ** len(at) * gain + float(np.nansum(squares[0] - squares[1]))
            state = replace(state, mix=mix, gain=gain, quantiles=quantiles)
        return state, np.where(held_out, mixed, np.nan)

    def _add_scores(
        self, errors: Array, sizes: Array, ages: Array, at: IntArray, config: ArrivalConfig
    ) -> AdaptiveQuantiles:
        """Return the quantiles after errors at some entries of a row."""
        at = at[(sizes[at] > 0) & ~np.isnan(errors[at])]
        scores = np.abs(errors[at]) / sizes[at]
        return self.quantiles.add(scores, ages[at], config.intervals)

    def start_mix(
        self,
        rows: Array,
        predicted: Array,
        n_pending: int,
        unit: Array,
        config: ArrivalConfig | None,
    ) -> Arrivals:
        """Return the state after what was predicted of entries that the first fit held out.

        `rows` are the last of the `n_pending` first pending ones. Not where rows follow each other:
        the fit knew the rows after such an entry.
        """
        n, expected = len(rows), self.expected
        if config is None or expected is None or len(expected.ages) < n_pending:
            return self
        if not config.guarded or self.in_order(config):
            return self
        fitted = self.with_expected(expected.at(slice(n_pending - n, n_pending)))
        judged, _ = fitted.judge(rows, predicted, ~np.isnan(predicted), unit, config)
        return judged.with_expected(expected)

    def in_order(self, config: ArrivalConfig | None) -> bool:
        """Return whether rows follow each other, by the autocorrelation of their levels."""
        ordered = self.ordered
        if config is None or ordered is None:
            return False
        return ordered.moments.pooled_level() > config.max_level

    def add_errors(self, errors: Array, config: ArrivalConfig | None) -> Arrivals:
        """Return the state with errors, n x m in standard deviations, NaN = unknown.

        Without filters, intervals are calibrated by them.
        """
        by_feature, quantiles = self.errors, self.quantiles
        for row in errors[~np.isnan(errors).all(axis=1)]:
            some = np.flatnonzero(~np.isnan(row))
            if config is None:
                scores = row[some] / by_feature.sizes()[some]
                quantiles = quantiles.add(scores, np.ones(len(some)), IntervalConfig())
            by_feature = by_feature.add(some, row[some])
        return replace(self, errors=by_feature, quantiles=quantiles)


def _complete(rows: Array, model: WindowModel) -> Array:
    """Return rows as the model completes them; NaN for rows and features that it cannot impute."""
    usable = model.has_observed(rows)
    completed = np.full(rows.shape, np.nan)
    if usable.any():
        completed[usable] = model.complete(rows[usable])
    completed[:, np.isnan(model.means)] = np.nan
    return completed


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
