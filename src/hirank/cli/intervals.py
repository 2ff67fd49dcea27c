"""Intervals around fills, as arrays and as columns, and rows that have nothing to go by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hirank._typing import Array
from hirank.cli.errors import USAGE, Failure
from hirank.cli.reporter import Told
from hirank.io import Table

if TYPE_CHECKING:
    from hirank import Imputer


class Spans(NamedTuple):
    """Between which values missing entries may lie, n x v each."""

    lower: Array
    upper: Array

    def take(self, columns: list[int]) -> Spans:
        """Some columns, in another order."""
        return Spans(self.lower[:, columns], self.upper[:, columns])

    def around(self, filled: Array) -> Spans:
        """As wide as to hold the fills: those of a fit are not quite those of transform."""
        v = filled.shape[1]
        return Spans(np.fmin(self.lower[:, :v], filled), np.fmax(self.upper[:, :v], filled))


class BlankRows:
    """Rows that a model, by its warning, could only give column means: told once, by line."""

    def __init__(self, told: Told) -> None:
        self.told, self.n, self.lines = told, 0, list[int]()

    def see(self, table: Table, X: Array) -> None:
        """After a model has completed X, n x m, the rows of `table`."""
        if self.told.blank:
            rows = np.flatnonzero(np.isnan(X).all(axis=1))
            self.n += len(rows)
            self.lines += [table.line(int(i)) for i in rows[: 5 - len(self.lines)]]
        self.told.blank = False

    def tell(self) -> None:
        if self.n:
            lines = ", ".join(map(str, self.lines)) + (", ..." if self.n > len(self.lines) else "")
            self.told.note(
                f"{self.n} row(s) have no value at all and got column means: line {lines}."
            )


def check_interval(coverage: float | None, table: Table | None = None) -> None:
    """Raise, before the work begins, if there can be no intervals or no columns for them."""
    if coverage is None:
        return
    if not 0 < coverage < 1:
        raise Failure(f"--interval is a probability, e.g. 0.9, not {coverage:g}.", USAGE)
    if table is not None:
        ends = [f"{name} {end}" for name in table.numeric for end in ("lower", "upper")]
        taken = [repr(name) for name in ends if name in table.names]
        if taken:
            raise Failure(
                f"--interval would add columns that are there already: {', '.join(taken)}. Rename "
                "them, or leave out --interval."
            )


def intervals_of(model: Imputer, frame: Any, coverage: float, told: Told) -> Spans | None:
    """Intervals for a table, for all its columns; None, with a note, if the model has none."""
    n, v = frame.shape
    try:
        with told.warnings():
            ends = model.interval(frame, coverage)
    except ValueError as error:
        told.note(f"No intervals: {error}")
        return None
    spans = Spans(np.full((n, v), np.nan), np.full((n, v), np.nan))
    for span, end in zip(spans, ends, strict=True):
        span[:, model.has_values_] = end
    return spans


def span_columns(table: Table, spans: Spans | None) -> dict[str, Array]:
    """Two columns for each numeric one, with values where something was missing."""
    if spans is None:
        return {}
    columns: dict[str, Array] = {}
    for j, name in enumerate(table.numeric):
        missing = np.isnan(table.numbers[:, j])
        for end, values in (("lower", spans.lower[:, j]), ("upper", spans.upper[:, j])):
            columns[f"{name} {end}"] = np.where(missing, values, np.nan)
    return columns
