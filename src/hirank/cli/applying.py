"""Intervals around fills, as arrays and as columns of the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hirank.cli.console import Told
from hirank.cli.errors import USAGE, Failure
from hirank.files import Table

if TYPE_CHECKING:
    from hirank import KFMC


class Spans(NamedTuple):
    """Between which values missing entries may lie, n x v each."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    def take(self, columns: list[int]) -> Spans:
        """Some columns, in another order."""
        return Spans(self.lower[:, columns], self.upper[:, columns])

    def around(self, filled: NDArray[np.float64]) -> Spans:
        """As wide as to hold the fills: those of a fit are not quite those of transform."""
        v = filled.shape[1]
        return Spans(np.fmin(self.lower[:, :v], filled), np.fmax(self.upper[:, :v], filled))


def intervals_of(model: KFMC, frame: Any, coverage: float, told: Told) -> Spans | None:
    """Intervals for a table, for all its columns; None, with a note, if the model has none."""
    if not 0 < coverage < 1:
        raise Failure(f"--interval is a probability, e.g. 0.9, not {coverage:g}.", USAGE)
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


def span_columns(table: Table, spans: Spans | None) -> dict[str, NDArray[np.float64]]:
    """Two columns for each numeric one, with values where something was missing."""
    if spans is None:
        return {}
    columns: dict[str, NDArray[np.float64]] = {}
    for j, name in enumerate(table.numeric):
        missing = np.isnan(table.numbers[:, j])
        for end, values in (("lower", spans.lower[:, j]), ("upper", spans.upper[:, j])):
            columns[f"{name} {end}"] = np.where(missing, values, np.nan)
    return columns
