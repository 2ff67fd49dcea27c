"""``hirank fit``: fit a model to a table and save it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from hirank.cli.fit_table import fit_table, read_table, save_fit
from hirank.cli.lock import locked
from hirank.cli.output_checks import check_outputs
from hirank.cli.reporter import Reporter

if TYPE_CHECKING:
    from hirank.cli.app import Fit


def run(options: Fit, reporter: Reporter) -> None:
    """Read a table, fit a model, and save it with the report, if asked for."""
    began = perf_counter()
    check_outputs(options.model, options.report, source=options.table, force=options.force)
    with locked(options.model.resolve()):
        given = read_table(options, reporter, options.time, options.groups)
        fit = fit_table(options, given, reporter)
        result = save_fit(fit, options, reporter, model=options.model, began=began)
    reporter.result(result)
