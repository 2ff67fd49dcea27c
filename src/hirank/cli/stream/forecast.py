"""The rows that are expected next, which ``hirank stream --forecast`` writes at the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hirank import OnlineImputer
from hirank.cli.models import restore_columns
from hirank.cli.stream.model import StreamModel
from hirank.io.rows import Layout

COVERAGE = 0.9
"""Of intervals that are not written."""


def forecast_groups(model: StreamModel) -> list[str | None]:
    """Return the labels of the groups that can be forecast; None stands for a stream without."""
    stream = getattr(model.model, "_stream", None)
    if stream is None:
        return []
    if model.group_column is not None:
        return [*stream.groups]
    return [] if stream.arrivals.ordered is None else [None]


def render_forecasts(model: StreamModel, layout: Layout, h: int) -> Iterator[str]:
    """Yield the lines of the next h rows of each group, that with the newest row last."""
    own = model.model
    assert isinstance(own, OnlineImputer)
    wanted = [*layout.wanted]
    at = None if model.time_column is None else wanted.index(model.time_column)
    for label in forecast_groups(model):
        found = own.forecast(h, model.coverage or COVERAGE, label)
        ahead, lower, upper = (restore_columns(one, own) for one in found)
        for k in range(h):
            seconds = np.nan if at is None else float(ahead[k, at])
            row = layout.blank(label or "", seconds)
            ends = None if model.coverage is None else (lower[k].tolist(), upper[k].tolist())
            yield layout.render(row, ahead[k].tolist(), ends, k + 1)
