"""Columns of a stream that are not imputed: the times of rows, and the labels of their groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.estimators.columns import Names, find_column
from hirank.exceptions import ParameterError


@dataclass(frozen=True)
class SideColumns:
    """The positions of these columns; None without one."""

    time: int | None
    group: int | None

    @classmethod
    def find(cls, time: Any, groups: Any, names: Names, m: int) -> SideColumns:
        """Return the positions among m columns; raise ParameterError if nothing else is left."""
        at = None if time is None else find_column(time, names, m, "time")
        group = None if groups is None else find_column(groups, names, m, "groups")
        found = cls(at, group)
        if at is not None and at == group:
            raise ParameterError("groups", "names the column of {time}.", "time")
        if m == len(found.positions):
            name = "time" if group is None else "groups"
            raise ParameterError(name, "names the only column of X. There is nothing to impute.")
        return found

    @property
    def positions(self) -> list[int]:
        """The columns, in their order."""
        return sorted(one for one in (self.time, self.group) if one is not None)

    def remove(self, rows: Array) -> Array:
        """Return rows without these columns."""
        return np.delete(rows, self.positions, axis=1) if self.positions else rows

    def insert(self, values: Array, times: Array | float, group: Array | float) -> Array:
        """Return values, ... x m, with these columns again."""
        for at in self.positions:
            values = np.insert(values, at, times if at == self.time else group, axis=-1)
        return values
