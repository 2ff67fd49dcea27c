"""Intervals around imputed values, as arrays and as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.exceptions import InputError, ParameterError
from hirank.io import Table

if TYPE_CHECKING:
    from hirank import Imputer


class Intervals(NamedTuple):
    """Ends of intervals that contain missing values, n x v each."""

    lower: Array
    upper: Array

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Intervals:
        """Return intervals of a table in which nothing is missing."""
        return cls(np.full(shape, np.nan), np.full(shape, np.nan))

    def take(self, columns: list[int]) -> Intervals:
        """Return some columns, in another order."""
        return Intervals(self.lower[:, columns], self.upper[:, columns])

    def widen(self, filled: Array) -> Intervals:
        """Return intervals that contain the imputed values, n x v; columns after v are dropped.

        The values of a fit differ slightly from those of transform, which intervals are about.
        """
        v = filled.shape[1]
        return Intervals(np.fmin(self.lower[:, :v], filled), np.fmax(self.upper[:, :v], filled))

    def to_columns(self, table: Table) -> dict[str, Array]:
        """Return two columns for each numeric one, with values where it is missing."""
        missing = np.isnan(table.numbers)
        return {
            f"{name} {end}": np.where(missing[:, j], values[:, j], np.nan)
            for j, name in enumerate(table.numeric)
            for end, values in zip(self._fields, self, strict=True)
        }


def check_coverage(coverage: float | None) -> None:
    """Raise ParameterError if this is not the coverage of intervals."""
    if coverage is not None and not 0 < coverage < 1:
        raise ParameterError("coverage", f"must be between 0 and 1; got {coverage:g}.")


def check_columns(table: Table) -> None:
    """Raise InputError if a table has columns with the names of those to be added."""
    added = [f"{name} {end}" for name in table.numeric for end in Intervals._fields]
    taken = [repr(name) for name in added if name in table.names]
    if taken:
        raise InputError(
            f"The table already has columns {', '.join(taken)}, which --interval would add. Rename "
            "them, or omit --interval."
        )


def compute_intervals(model: Imputer, frame: Any, coverage: float) -> Intervals:
    """Return intervals for all columns of a table; raise InputError if the model has none."""
    intervals = Intervals.empty(frame.shape)
    for whole, end in zip(intervals, model.interval(frame, coverage), strict=True):
        whole[:, model.has_values_] = end
    return intervals
