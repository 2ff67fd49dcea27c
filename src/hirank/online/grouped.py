"""A stream whose rows come from several groups, such as devices.

Rows of one group follow each other, those of different groups do not. Groups share the window, its
model and the errors at held-out entries; each has its own filters, covariances and clock, since
devices that are put together are often less alike than their names (docs/notes/stream_groups.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from hirank._typing import Array
from hirank.online.clock import TimeCounts
from hirank.online.config import WindowConfig
from hirank.online.ordered import OrderedState
from hirank.online.rescale import deviation
from hirank.online.window import StreamState

MAX_GROUPS = 1000
"""Groups whose filters are kept. With one more, that whose last row is the oldest is forgotten."""


@dataclass(frozen=True)
class GroupedStream(StreamState):
    """The state of a stream with a window, and with filters for each group."""

    groups: dict[str, OrderedState] = field(default_factory=dict)  # oldest last row first
    n_forgotten: int = 0  # groups
    forgotten_times: TimeCounts = field(default_factory=TimeCounts)  # of these

    @property
    def can_impute(self) -> bool:
        return self.model is not None or bool(self.groups)

    @property
    def time_counts(self) -> TimeCounts:
        counts = [one.clock.counts for one in self.groups.values()]
        return TimeCounts(*map(sum, zip(self.forgotten_times, *counts, strict=True)))

    def unit(self) -> Array:
        """Return the standard deviations in which errors are measured, m; NaN if constant.

        Before there is a model, those of the rows of all groups, not of one.
        """
        if self.model is not None:
            return self.model.unit
        unit = np.full(self.width, np.nan)
        several = (~np.isnan(self.pending)).sum(axis=0) > 1
        unit[several] = deviation(self.pending[:, several])
        return np.where(unit > 0, unit, np.nan)

    def with_filters(self, ordered: OrderedState | None, config: WindowConfig) -> GroupedStream:
        """Return the stream with the filters of one group; None stands for those of a new one."""
        if ordered is None and config.arrival is not None:
            ordered = OrderedState.empty(self.width, config.arrival.ordered)
        return replace(self, arrivals=replace(self.arrivals, ordered=ordered))

    def add_features(self, count: int, config: WindowConfig) -> GroupedStream:
        stream = super().add_features(count, config)
        assert isinstance(stream, GroupedStream)
        if config.arrival is None:
            return stream
        settings = config.arrival.ordered
        groups = {name: one.add_features(count, settings) for name, one in self.groups.items()}
        return replace(stream, groups=groups)

    def complete(
        self,
        rows: Array,
        config: WindowConfig,
        times: Array | None = None,
        coverage: float | None = None,
        labels: Sequence[str] = (),
    ) -> Array:
        """Return rows, n x m, imputed, each as if it were the next one of its group."""
        shape = rows.shape if coverage is None else (3, *rows.shape)
        done, each = np.empty(shape), np.array(labels, dtype=object)
        for label in dict.fromkeys(labels):
            at = np.flatnonzero(each == label)
            now = None if times is None else times[at]
            stream = self.with_filters(self.groups.get(label), config)
            done[..., at, :] = StreamState.complete(stream, rows[at], config, now, coverage)
        return done

    def complete_early(
        self,
        rows: Array,
        config: WindowConfig,
        coverage: float | None = None,
        *,
        slices: int,
        labels: Sequence[str] = (),
    ) -> Array:
        """Return rows that came before the first model, imputed by it; NaN if not by it."""
        done = np.full(rows.shape if coverage is None else (3, *rows.shape), np.nan)
        each = np.array(labels, dtype=object)
        for label in dict.fromkeys(labels):
            at = np.flatnonzero(each == label)
            stream = self.with_filters(self.groups.get(label), config)
            found = StreamState.complete_early(stream, rows[at], config, coverage, slices=slices)
            done[..., at, :] = np.nan if found is None else found
        return done

    def append(
        self,
        rows: Array,
        config: WindowConfig,
        *,
        times: Array | None = None,
        impute: bool = False,
        coverage: float | None = None,
        labels: Sequence[str] = (),
    ) -> tuple[StreamState, Array | None]:
        """Return the stream after rows with the labels of their groups; see `StreamState`."""
        if config.arrival is None:  # a further pass over a table
            return super().append(rows, config, impute=impute, coverage=coverage)
        stream, groups, filled = self, dict(self.groups), []
        for part in _runs(labels):
            label, now = labels[part.start], None if times is None else times[part]
            current = stream.with_filters(groups.pop(label, None), config)
            after, done = StreamState.append(
                current, rows[part], config, times=now, impute=impute, coverage=coverage
            )
            assert isinstance(after, GroupedStream)
            assert after.arrivals.ordered is not None
            groups[label] = after.arrivals.ordered
            stream = after._forget_oldest(groups)
            filled.append(done)
        stream = replace(stream, groups=groups, arrivals=replace(stream.arrivals, ordered=None))
        known = [one for one in filled if one is not None]
        return stream, np.concatenate(known, axis=-2) if known else None

    def _forget_oldest(self, groups: dict[str, OrderedState]) -> GroupedStream:
        """Remove the group without a row for the longest time, if there are too many."""
        if len(groups) <= MAX_GROUPS:
            return self
        counts = groups.pop(next(iter(groups))).clock.counts
        times = TimeCounts(*map(sum, zip(self.forgotten_times, counts, strict=True)))
        return replace(self, n_forgotten=self.n_forgotten + 1, forgotten_times=times)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together."""
        super().check()
        if self.arrivals.ordered is not None:
            raise ValueError("the filters must be those of groups")
        if len(self.groups) > MAX_GROUPS or not all(isinstance(key, str) for key in self.groups):
            raise ValueError(f"groups must be at most {MAX_GROUPS}, by text")
        for name, one in self.groups.items():
            if len(one.ages) != self.width:
                raise ValueError(f"group {name!r:.40} must have {self.width} features")


def _runs(labels: Sequence[str]) -> Iterator[slice]:
    """Yield the stretches of rows of one group."""
    start = 0
    for _, same in groupby(labels):
        stop = start + sum(1 for _ in same)
        yield slice(start, stop)
        start = stop
