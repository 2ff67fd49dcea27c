"""From a file and options to a fitted model: what complete, fit, advise and compare share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hirank._typing import Array
from hirank.cli.column_notes import almost_numeric, column_notes, quoted
from hirank.cli.errors import NoValuesError
from hirank.cli.intervals import Intervals
from hirank.cli.models import restore_columns, save_model
from hirank.cli.options import FitOptions, LearnOptions
from hirank.cli.reporter import Reporter
from hirank.cli.results import RunResult
from hirank.exceptions import FileError, ParameterError
from hirank.io import Table, TableFile, open_table
from hirank.io.times import parse_times

if TYPE_CHECKING:
    from hirank import Imputer

DEFAULT_COVERAGE = 0.9
"""Coverage of the intervals in the report, unless --interval sets another."""


@dataclass(frozen=True)
class TableInput:
    """A table as it was read, with times and labels of its rows that are not numeric columns."""

    file: TableFile
    table: Table
    ids: tuple[str, ...] = ()
    aside: dict[str, Array] = field(default_factory=dict)  # n each, by the name of the column

    @property
    def frame(self) -> pa.Table:
        """The columns that a model is fitted to, by name."""
        columns = dict(zip(self.table.numeric, self.table.numbers.T, strict=True))
        return pa.table(columns | self.aside)

    @property
    def n_missing(self) -> int:
        """The number of missing values."""
        return int(np.isnan(self.table.numbers).sum())

    def row_labels(self) -> list[str]:
        """Return names of the rows: their first --id, or the line of the file."""
        if self.ids:
            return [str(cell) for cell in self.table.column(self.ids[0])]
        return [f"line {self.table.line(i)}" for i in range(len(self.table))]


def read_table(
    options: LearnOptions, reporter: Reporter, time: str | None = None, groups: str | None = None
) -> TableInput:
    """Read all rows of a table, and check that something can be learned from them."""
    ids = tuple(options.ids or ())
    missing, text = options.missing or (), ids if groups is None else (*ids, groups)
    file = open_table(options.table, missing=missing, text=text, **options.reading)
    for name, column in (("time", time), ("groups", groups)):
        if column is not None and column not in file.names:
            listed = quoted(file.names)
            raise ParameterError(name, f"names {column!r}, but the columns are {listed}.")
    table = file.read()
    if not table.numeric:
        raise FileError(
            options.table, f"No column is numeric: {quoted(table.text)}.{almost_numeric(table)}"
        )
    if not len(table):
        raise FileError(options.table, "The file has column names but no rows.")
    if np.isnan(table.numbers).all():
        raise NoValuesError(f"{options.table}: Every numeric cell is missing.")
    for note in column_notes(file, table, (*text, time)):
        reporter.note(note)
    reporter.table = table
    return TableInput(file, table, ids, read_aside(table, time, groups))


def read_aside(table: Table, time: str | None, groups: str | None) -> dict[str, Array]:
    """Return times and labels of groups as numbers, by the columns of text that contain them."""
    aside: dict[str, Array] = {}
    if time is not None and time in table.text:
        aside[time] = parse_times(table.column(time), time)
    if groups is not None and groups in table.text:
        from hirank.estimators.columns import number_labels
        from hirank.estimators.groups import read_labels

        labels = read_labels(table.column(groups), groups)
        aside[groups] = number_labels(labels).astype(np.float64)
    return aside


def make_imputer(options: FitOptions, table: Table) -> Imputer:
    """Return an Imputer with the parameters that the options set."""
    from hirank import Imputer

    if options.in_order and options.time is not None:
        raise ParameterError("in_order", "cannot be combined with {time}.", "time")
    names = [name.strip() for name in (options.integers or "").split(",")]
    integers = {None: None, "auto": "auto", "all": True}.get(options.integers, names)
    return Imputer(
        time=options.in_order or options.time,
        groups=options.groups,
        max_time=options.max_time,
        random_state=options.seed,
        bounds=_parse_bounds(options.bounds or (), table),
        integers=integers,
        plausible=not options.raw,
        max_gap=options.max_gap,
        keep_empty_features=True,
        n_jobs=options.n_jobs,
    )


@dataclass(frozen=True)
class TableFit:
    """A table with its imputed values, and the model that imputed them."""

    given: TableInput
    filled: Array  # the numeric columns, n x v; NaN where nothing was imputed
    model: Imputer | None  # None: nothing is missing
    intervals: Intervals | None  # None: not asked for, or too few values
    coverage: float = DEFAULT_COVERAGE

    @classmethod
    def copy(cls, given: TableInput) -> TableFit:
        """Return a table in which nothing is missing, without a model."""
        numbers = given.table.numbers
        return cls(given, numbers, None, Intervals.empty(numbers.shape))

    @property
    def interval_columns(self) -> dict[str, Array]:
        """The ends of the intervals, as columns to append."""
        return {} if self.intervals is None else self.intervals.to_columns(self.given.table)


def fit_table(
    options: FitOptions, given: TableInput, reporter: Reporter, coverage: float | None = None
) -> TableFit:
    """Fit an Imputer to a table; compute intervals if they are asked for, or for the report."""
    model = make_imputer(options, given.table)
    ends: list[Array] = []
    with reporter.warnings(), reporter.fitting(options.max_time):
        if coverage is None and options.report is None:
            values = model.fit_transform(given.frame)
        else:
            values, *ends = model.fit_interval(given.frame, coverage or DEFAULT_COVERAGE)
    v = len(given.table.numeric)
    filled = restore_columns(np.asarray(values, np.float64), model)[:, :v]
    intervals = None
    if ends and model.held_out_:
        intervals = Intervals.from_kept(ends, model.has_values_).first(v)
    elif ends:
        from hirank.estimators.uncertainty import NO_HELD_OUT

        reporter.note(f"There are no intervals: {NO_HELD_OUT}")
    return TableFit(given, filled, model, intervals, coverage or DEFAULT_COVERAGE)


def save_fit(
    fit: TableFit,
    options: FitOptions,
    reporter: Reporter,
    *,
    model: Path | None,
    output: str | None = None,
    began: float,
) -> RunResult:
    """Save the model and the report, if asked for, and return the result of the command."""
    table, summary = fit.given.table, None
    if fit.model is not None:
        summary = fit.model.summary()
        if model is not None:
            save_model(fit.model, model, options.missing or ())
        if options.report is not None:
            _write_page(options.report, fit, fit.model, reporter.notes)
    n_imputed = int((np.isnan(table.numbers) & ~np.isnan(fit.filled)).sum())
    counts = (len(table), len(table.numeric), fit.given.n_missing, n_imputed)
    return RunResult(*counts, perf_counter() - began, output, model, options.report, summary)


def _write_page(path: Path, fit: TableFit, model: Imputer, notes: Sequence[str]) -> None:
    """Write the report on all columns that the model was fitted to, parsed times included."""
    from hirank.report import write_report

    frame, source = fit.given.frame, str(fit.given.file.path)
    X = np.column_stack([column.to_numpy() for column in frame.columns])
    filled, rest = X.copy(), np.full((len(X), X.shape[1] - fit.filled.shape[1]), np.nan)
    filled[:, : fit.filled.shape[1]] = fit.filled
    interval = None
    if fit.intervals is not None:
        interval = Intervals(*(np.hstack([end, rest]) for end in fit.intervals))
    write_report(
        path,
        model,
        X,
        filled,
        names=frame.column_names,
        title="standard input" if source == "-" else Path(source).name,
        interval=interval,
        coverage=fit.coverage,
        rows=fit.given.row_labels(),
        notes=notes,
    )


def _parse_bounds(
    texts: Sequence[str], table: Table
) -> dict[str, tuple[float | None, float | None]] | None:
    """Return {column: (low, high)} from texts [COLUMN=]LOW:HIGH."""
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for text in texts:
        column, _, limits = text.rpartition("=")
        try:
            low, high = (float(limit) if limit.strip() else None for limit in limits.split(":"))
        except ValueError:
            problem = "must be LOW:HIGH or COLUMN=LOW:HIGH, for instance rain=0: or 0:100; got"
            raise ParameterError("bounds", f"{problem} {text!r}.") from None
        bounds |= dict.fromkeys([column] if column else table.numeric, (low, high))
    return bounds or None
