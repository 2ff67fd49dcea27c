"""``hirank fit``: fit a model to a table and save it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hirank.cli.complete import DEFAULT_COVERAGE
from hirank.cli.fit_table import impute, intervals_around, make_imputer, read_table, write_page
from hirank.cli.models import save_model
from hirank.cli.output_checks import check_outputs
from hirank.cli.reporter import Reporter
from hirank.cli.results import RunResult

if TYPE_CHECKING:
    from hirank.cli.app import Fit


def run(options: Fit, reporter: Reporter) -> None:
    """Read a table, fit a model and save it."""
    began = perf_counter()
    check_outputs(options.model, options.report, source=options.table, force=options.force)
    given = read_table(options, reporter, options.time)
    model = make_imputer(options, given.table)
    filled = impute(model, given, reporter)
    save_model(model, options.model, options.missing or ())
    if options.report is not None:
        intervals = intervals_around(filled, model, given, DEFAULT_COVERAGE, reporter)
        write_page(options.report, model, given, filled, intervals, reporter, DEFAULT_COVERAGE)
    result = RunResult(
        rows=len(given.table),
        columns=len(given.table.numeric),
        missing=given.n_missing,
        imputed=0,
        seconds=perf_counter() - began,
        model=options.model,
        report=options.report,
        summary=model.summary(),
    )
    reporter.result(result)
