"""Tables whose rows follow each other in time: what is held out, and the smoother."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.masking import MaskingConfig, mask_gaps
from hirank.core.missingness import columns_missing_together
from hirank.models.temporal_smoother import TemporalSmoother, fit_smoother
from hirank.selection.trial import SearchData, Selected


@dataclass(frozen=True)
class Timeline:
    """The times of n rows, in any order, all different."""

    times: Array  # n

    @property
    def order(self) -> IntArray:
        return np.argsort(self.times, kind="stable")

    def make_folds(
        self, observed: BoolArray, rng: np.random.Generator, config: MaskingConfig
    ) -> list[BoolArray]:
        """Return entries to hold out, n x v, in gaps like those of the table; none without gaps.

        Columns that are missing together, such as those of one device, are held out together.
        """
        held_out = np.zeros(observed.shape, bool)
        groups = columns_missing_together(observed, config)
        held_out[self.order] = mask_gaps(observed[self.order], rng, groups=groups, config=config)
        return [held_out] if held_out.any() else []

    def with_smoother(self, data: SearchData, selected: Selected, first_fold: Array) -> Selected:
        """Fit the smoother, and impute the held-out entries of the first fold with it as well.

        `first_fold` is the table, n x v, as the stack imputed it without the held-out entries.
        """
        order, held_out = self.order, np.zeros(data.observed.shape, bool)
        entries = selected.result.held_out
        if entries is not None:
            held_out = data.folds[0]
        smoother = fit_smoother(
            data.X[order],
            data.observed[order],
            held_out[order],
            self.times[order],
            first_fold[order],
            data.rng,
        )
        selected = selected._replace(smoother=smoother)
        if entries is None or not held_out.any():
            return selected
        imputed = self.combine(smoother, data.X, data.observed & ~held_out, first_fold)
        mine = replace(entries.take(slice(int(held_out.sum()))), imputed=imputed[held_out])
        result = replace(selected.result, held_out=mine)
        return selected._replace(result=result, error_factor=1.0)

    def combine(
        self, smoother: TemporalSmoother, X: Array, observed: BoolArray, imputed: Array
    ) -> Array:
        """Return the table, n x v, imputed by the stack and its neighbors in time together."""
        order = self.order
        completed = np.empty(X.shape)
        completed[order] = smoother.combine(
            X[order], observed[order], self.times[order], imputed[order]
        )
        return completed
