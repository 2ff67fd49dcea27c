"""Intervals around imputed values, as arrays and as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hirank._typing import Array, BoolArray
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

    @classmethod
    def from_kept(cls, ends: Sequence[Array], kept: BoolArray) -> Intervals:
        """Return intervals of all m columns, of which `ends` describes those that are kept."""
        intervals = cls.empty((len(ends[0]), len(kept)))
        for whole, end in zip(intervals, ends, strict=True):
            whole[:, kept] = end
        return intervals

    def first(self, v: int) -> Intervals:
        """Return the first v columns."""
        return Intervals(self.lower[:, :v], self.upper[:, :v])

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
    return Intervals.from_kept(model.interval(frame, coverage), model.has_values_)
