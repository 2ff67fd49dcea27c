"""``hirank complete``: impute a table."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hirank.cli.fit_table import TableFit, fit_table, read_table, save_fit
from hirank.cli.intervals import check_columns, check_coverage
from hirank.cli.lock import locked
from hirank.cli.output_checks import check_outputs, output_for
from hirank.cli.reporter import Reporter
from hirank.io import create

if TYPE_CHECKING:
    from hirank.cli.app import Complete


def run(options: Complete, reporter: Reporter) -> None:
    """Read a table, impute it and write it; then save the model and the report, if asked for."""
    began = perf_counter()
    save, report, force = options.save, options.report, options.force
    output = options.output or output_for(options.table)
    check_coverage(options.interval)
    check_outputs(save, report, source=options.table, table=output, force=force)
    with locked(None if save is None else save.resolve()):
        given = read_table(options, reporter, options.time, options.groups)
        if options.interval is not None:
            check_columns(given.table)
        with given.file, create(output, given.file, force=force, digits=options.digits) as writer:
            if given.n_missing or save or report:
                fit = fit_table(options, given, reporter, options.interval)
            else:
                reporter.note("No value is missing, so the table was copied.")
                fit = TableFit.copy(given)
            columns = {} if options.interval is None else fit.interval_columns
            writer.write(given.table, fit.filled, columns)
        result = save_fit(fit, options, reporter, model=save, output=output, began=began)
    reporter.result(result, to_error=output == "-")
