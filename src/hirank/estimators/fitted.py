"""Everything that a fit learned, as one frozen record per estimator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.bounds import clip_missing
from hirank.core.columns import Columns, ScaledTable, check_finite
from hirank.core.threads import Workers
from hirank.estimators.columns import TimeAxis
from hirank.exceptions import EmptyRowsWarning, warn
from hirank.models.calibration import Calibration
from hirank.models.dictionary import Dictionary, RowModel, complete_rows
from hirank.models.factor_analysis import GaussianModel
from hirank.models.gaps import too_long
from hirank.models.newton_dictionary import NewtonDictionary
from hirank.models.stacking import Stack
from hirank.models.temporal_smoother import TemporalSmoother
from hirank.optim.trace import RunInfo
from hirank.selection.trial import SearchResult


@dataclass(frozen=True)
class FittedTable:
    """The columns of a table, a model that completes its rows, and how the fit went."""

    columns: Columns
    model: RowModel
    run: RunInfo
    seconds: float  # of the whole fit

    @property
    def width(self) -> int:
        """The number of input features m."""
        return len(self.columns.has_values)

    def means(self) -> Array:
        """Return the column means, m; 0 for features without values."""
        return self.columns.means

    def complete(self, X: Array, observed: BoolArray) -> Array:
        """Impute rows in the units of the data, n x m -> n x k; observed entries stay."""
        # On one thread of BLAS, since products of several may be rounded differently, and whether
        # BLAS has several depends on what other threads do.
        with Workers():
            scaled = self.columns.scale(X, observed)
            return self.finish(complete_rows(self.model, scaled), scaled, X, observed)

    def finish(self, filled: Array, scaled: ScaledTable, X: Array, observed: BoolArray) -> Array:
        """Return imputed rows, n x v, in the units of the data, n x k, with observed entries."""
        empty = scaled.empty
        if empty.any() and self.columns.scaling.varying.any():
            warn(EmptyRowsWarning(tuple(np.flatnonzero(empty).tolist())))
        return self._merge(self.columns.unscale(filled, empty), X, observed)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        scaling = self.columns.scaling
        # Tails that are compressed have another center.
        centered = (scaling.center == scaling.mean) | (scaling.center == 0)
        if scaling.tails is None and not centered.all():
            raise ValueError("features must be scaled around their means")

    def _merge(self, values: Array, X: Array, observed: BoolArray) -> Array:
        """Return values, n x k, with the observed entries of X, n x m, in the precision of X."""
        kept, seen = self.columns.keep(X, observed)
        check_finite(values, seen)
        return np.where(seen, kept, values.astype(X.dtype))


@dataclass(frozen=True)
class FittedKFMC(FittedTable):
    """Everything that `KFMC.fit` learned."""

    model: Dictionary | NewtonDictionary  # by L-BFGS, or by the paper's Newton steps

    @property
    def dictionary(self) -> Array:
        """The dictionary in the units of the data, r x k."""
        return self.columns.scaling.backward(self.model.D)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        super().check()
        _check_width(self.columns, self.model.width, "the dictionary")


@dataclass(frozen=True)
class FittedImputer(FittedTable):
    """Everything that `Imputer.fit` learned."""

    model: Stack
    mixture: GaussianModel | None  # gives the conditional deviations of imputed values
    time: TimeAxis | None
    smoother: TemporalSmoother | None  # combines the stack with neighbors in time
    calibration: Calibration | None  # of intervals; None: too few entries to hold out
    search: SearchResult
    n_sparse_rows: int  # rows of the fit with two observed entries or fewer

    def complete(self, X: Array, observed: BoolArray) -> Array:
        """Impute rows in the units of the data, n x m -> n x k; observed entries stay."""
        if self.time is not None:
            self.time.timeline(X, observed)  # warns of a time column that cannot be used
        return super().complete(X, observed)

    def complete_with_spread(self, X: Array, observed: BoolArray) -> tuple[Array, Array]:
        """Impute rows as `complete` does, and return how far the families are apart, n x v."""
        if self.time is not None:
            self.time.timeline(X, observed)
        with Workers():
            scaled = self.columns.scale(X, observed)
            filled, spread = scaled.X.copy(), np.zeros(scaled.X.shape)
            rows = ~scaled.observed.all(axis=1) & ~scaled.empty
            if rows.any():
                part, known = scaled.X[rows], scaled.observed[rows]
                each = self.model.complete_each(part, known)
                filled[rows], spread[rows] = (
                    self.model.average(each, part, known),
                    self.model.spread(each),
                )
            return self.finish(filled, scaled, X, observed), spread

    def finish(self, filled: Array, scaled: ScaledTable, X: Array, observed: BoolArray) -> Array:
        """Return imputed rows, n x v, in the units of the data, n x k, with observed entries.

        With a time axis, neighbors in time are combined with the stack, and long gaps are NaN.
        """
        if self.time is None:
            return super().finish(filled, scaled, X, observed)
        timeline = self.time.timeline(X, observed, quiet=True)
        if self.smoother is None:
            values = super().finish(filled, scaled, X, observed)
        else:
            by_stack = np.where(scaled.empty[:, None], np.nan, filled)
            filled = self.smoother.combine_rows(filled, scaled.observed, timeline, by_stack)
            filled = clip_missing(self.columns.scaled_bounds, filled, scaled.observed)
            values = self.columns.unscale(filled, np.zeros(len(X), bool))
            values = self._merge(values, X, observed)
        if self.time.max_gap is None:
            return values
        wide = too_long(observed[:, self.columns.has_values], self.time.max_gap, timeline)
        return np.where(wide, np.array(np.nan, values.dtype), values)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        super().check()
        v = int(self.columns.scaling.varying.sum())
        _check_width(self.columns, self.model.width, "the stack")
        if self.mixture is not None:
            _check_width(self.columns, self.mixture.width, "the mixture")
        if self.smoother is not None:
            _check_width(self.columns, len(self.smoother.mean), "the smoother")
        if self.smoother is not None and self.time is None:
            raise ValueError("a smoother requires a time axis")
        if self.calibration is not None and len(self.calibration.scale.effects) != v:
            raise ValueError(f"calibration must describe {v} features")
        axis = {} if self.time is None else {"time": self.time.column, "group": self.time.group}
        for what, column in axis.items():
            if column is not None and not 0 <= column < len(self.columns.has_values):
                raise ValueError(f"the {what} column {column} does not exist")
        held_out, n_families = self.search.held_out, len(self.model.family_weights())
        if held_out is not None and held_out.columns.max() >= v:
            raise ValueError(f"held-out entries must be of {v} features")
        if held_out is not None and held_out.by_family.shape[1] != n_families:
            raise ValueError(f"held-out entries must be imputed by {n_families} families")


def _check_width(columns: Columns, width: int, what: str) -> None:
    expected = int(columns.scaling.varying.sum())
    if width != expected:
        raise ValueError(f"{what} describes {width} features; {expected} of the columns vary")
