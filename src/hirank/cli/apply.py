"""``hirank apply``: impute tables of any length with a saved model, which is not changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hirank import Imputer
from hirank._typing import Array
from hirank.cli.column_notes import notation_notes
from hirank.cli.fit_table import read_aside
from hirank.cli.intervals import Intervals, check_columns, check_coverage, compute_intervals
from hirank.cli.models import (
    describe_lacking,
    feature_names,
    integer_names,
    load_markers,
    load_model,
    match_columns,
    restore_columns,
    set_threads,
)
from hirank.cli.output_checks import check_outputs, output_for
from hirank.cli.reporter import Reporter
from hirank.cli.results import RunResult
from hirank.exceptions import ModelFileError
from hirank.io import Table, TableFile, create, open_table

if TYPE_CHECKING:
    from hirank.cli.app import Apply
    from hirank.estimators.saving import Model

SAMPLE_BYTES = 1 << 16
"""Bytes of a file from which its number of rows is estimated."""


def run(options: Apply, reporter: Reporter) -> None:
    """Read some rows, impute and write them, until there are no more."""
    began = perf_counter()
    check_coverage(options.interval)
    output, force = options.output or output_for(options.table), options.force
    check_outputs(source=options.table, table=output, protected=(options.model,), force=force)
    saved = SavedModel.load(options.model, options.interval)
    set_threads(saved.model, options.n_jobs)
    markers = load_markers(options.model)
    if markers:
        reporter.note(f"Missing values are marked as in the fit: {', '.join(markers)}.")
    missing = (*markers, *(options.missing or ()))
    text = () if saved.groups is None else (saved.groups,)
    file = open_table(options.table, missing=missing, text=text, **options.reading)
    lacking = match_columns(saved.names or (), file.names)
    if lacking:
        reporter.note(describe_lacking(lacking))
    if saved.numeric is not None:
        file.select_numeric(saved.numeric)
    if saved.in_time:
        reporter.note("The model uses times, so the table is read as a whole.")
    rows = n_missing = n_imputed = 0
    integers, digits = integer_names(saved.model), options.digits
    with (
        file,
        create(output, file, force=force, digits=digits, integers=integers) as writer,
        reporter.rows(estimate_rows(file)) as advance,
        reporter.warnings(),
    ):
        for part in [file.read()] if saved.in_time else file.chunks(options.rows):
            reporter.table = part
            if not rows:
                for note in notation_notes(part):
                    reporter.note(note)
            filled, intervals = saved.impute(part)
            writer.write(part, filled, {} if intervals is None else intervals.to_columns(part))
            empty = np.isnan(part.numbers)
            rows += len(part)
            n_missing += int(empty.sum())
            n_imputed += int((empty & ~np.isnan(filled)).sum())
            advance(len(part))
    columns = len(saved.names or file.names)
    seconds = perf_counter() - began
    result = RunResult(rows, columns, n_missing, n_imputed, seconds, output, options.model)
    reporter.result(result, to_error=output == "-")


@dataclass(frozen=True)
class SavedModel:
    """A fitted model, its columns, and the coverage of the intervals to compute."""

    model: Model
    names: tuple[str, ...] | None
    time: str | None  # the time column, which may contain dates
    groups: str | None  # the column with the labels of groups
    in_time: bool
    coverage: float | None

    @classmethod
    def load(cls, path: Path, coverage: float | None) -> SavedModel:
        """Load a model; raise ModelFileError if it cannot do what is asked for."""
        model = load_model(path)
        is_imputer = isinstance(model, Imputer)
        if not is_imputer and not model.__sklearn_is_fitted__():
            problem = "The model has seen too few rows. Pass more rows to hirank stream first."
            raise ModelFileError(path, problem)
        if coverage is not None and not is_imputer:
            raise ModelFileError(path, "This model has no intervals. Omit --interval.")
        names, time = feature_names(model), getattr(model, "time", None)
        column = time if isinstance(time, str) and time in (names or ()) else None
        groups = getattr(model, "groups", None)
        if groups is not None and names is not None and not isinstance(groups, str):
            groups = names[groups]
        in_time = getattr(model, "_is_ordered", False)
        return cls(model, names, column, groups, in_time, coverage)

    @property
    def numeric(self) -> list[str] | None:
        """The columns of the model that must be numeric; None if they have no names."""
        if self.names is None:
            return None
        return [name for name in self.names if name not in (self.time, self.groups)]

    def impute(self, table: Table) -> tuple[Array, Intervals | None]:
        """Return the numeric columns of a table imputed, and their intervals if asked for."""
        frame, order = self._match(table)
        filled = np.asarray(self.model.transform(frame), np.float64)
        intervals = None
        if self.coverage is not None and isinstance(self.model, Imputer):
            check_columns(table)
            intervals = compute_intervals(self.model, frame, self.coverage).take(order)
        return restore_columns(filled, self.model)[:, order], intervals

    def _match(self, table: Table) -> tuple[Any, list[int]]:
        """Return what the model imputes, and the positions in it of the numeric columns."""
        if self.names is None:
            return table.numbers, list(range(table.numbers.shape[1]))
        lacking = dict.fromkeys(self.names, np.full(len(table), np.nan))
        columns: dict[str, Any] = dict(zip(table.numeric, table.numbers.T, strict=True))
        columns = lacking | columns | read_aside(table, self.time, self.groups)
        frame = pa.table({name: columns[name] for name in self.names})
        return frame, [self.names.index(name) for name in table.numeric]


def estimate_rows(file: TableFile) -> int | None:
    """Return the number of rows of a text file, from its first lines; None if not known."""
    path = Path(file.path)
    if str(file.path) == "-" or not path.is_file():
        return None
    with path.open("rb") as raw:
        head = raw.read(SAMPLE_BYTES)
    lines = head.count(b"\n")
    # Compressed and binary files have no lines.
    if not lines or b"\0" in head or head.startswith(b"\x1f\x8b"):
        return None
    return max(1, round(path.stat().st_size * lines / len(head)) - 1)
