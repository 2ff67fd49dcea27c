"""``hirank complete``: impute a table."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hirank.cli.fit_table import (
    impute,
    intervals_around,
    make_imputer,
    read_table,
    write_page,
)
from hirank.cli.intervals import Intervals, check_columns, check_coverage
from hirank.cli.models import save_model
from hirank.cli.output_checks import check_outputs
from hirank.cli.reporter import Reporter
from hirank.cli.results import RunResult
from hirank.io import create

if TYPE_CHECKING:
    from hirank.cli.app import Complete

DEFAULT_COVERAGE = 0.9
"""Coverage of the intervals in the report, unless --interval sets another."""


def run(options: Complete, reporter: Reporter) -> None:
    """Read a table, impute it and write it; then save the model and the report, if asked for."""
    began = perf_counter()
    check_coverage(options.interval)
    check_outputs(
        options.save,
        options.report,
        source=options.table,
        table=options.output,
        force=options.force,
    )
    given = read_table(options, reporter, options.time)
    model = make_imputer(options, given.table)
    coverage, summary = options.interval or DEFAULT_COVERAGE, None
    if options.interval is not None:
        check_columns(given.table)
    if not given.n_missing:
        reporter.note("No value is missing, so nothing was imputed.")
    with create(options.output, given.file, force=options.force, digits=options.digits) as writer:
        filled = given.table.numbers
        intervals: Intervals | None = Intervals.empty(filled.shape)
        if given.n_missing or options.save or options.report:
            filled = impute(model, given, reporter)
            summary = model.summary()
            if options.interval is not None or options.report:
                intervals = intervals_around(filled, model, given, coverage, reporter)
        extra = {}
        if options.interval is not None and intervals is not None:
            extra = intervals.to_columns(given.table)
        writer.write(given.table, filled, extra)
    if options.save is not None:
        save_model(model, options.save, options.missing or ())
    if options.report is not None:
        write_page(options.report, model, given, filled, intervals, reporter, coverage)
    result = RunResult(
        rows=len(given.table),
        columns=len(given.table.numeric),
        missing=given.n_missing,
        imputed=int((np.isnan(given.table.numbers) & ~np.isnan(filled)).sum()),
        seconds=perf_counter() - began,
        output=options.output,
        model=options.save,
        report=options.report,
        summary=summary,
    )
    reporter.result(result, to_error=options.output == "-")
