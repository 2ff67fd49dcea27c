"""``hirank advise``: estimate how well the missing values of a table can be imputed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hirank.cli.fit_table import read_table
from hirank.cli.reporter import Reporter
from hirank.theory import advise

if TYPE_CHECKING:
    from hirank.cli.app import Advise


def run(options: Advise, reporter: Reporter) -> None:
    """Fit an Imputer, and print its error and the rows and columns with too few values."""
    given = read_table(options, reporter)
    with reporter.warnings():
        advice = advise(
            given.frame,
            max_time=options.max_time,
            random_state=options.seed,
            n_jobs=options.n_jobs,
        )
    reporter.result(advice)
