"""``hirank fit``: learn once, keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hirank._typing import Array
from hirank.cli.fit_table import Given, filled_by, keep, prepared
from hirank.cli.intervals import Spans, intervals_of
from hirank.cli.output_checks import check_targets
from hirank.cli.reporter import Told

if TYPE_CHECKING:
    from hirank import Imputer


def run(
    *,
    table: str,
    model: Path,
    report: Path | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **learning: Any,
) -> None:
    """Read, learn, save."""
    told = Told(as_json=as_json, quiet=quiet)
    check_targets(table, model, report, force=force)
    given, fitted = prepared(table, told, **learning)
    filled = filled_by(fitted, given, told)
    keep(fitted, model, given)
    if report is not None:
        spans = intervals_of(fitted, given.frame, 0.9, told)
        around = None if spans is None else spans.around(filled)
        write_page(report, fitted, given, filled, around, told, 0.9)
    facts = {**learned_facts(fitted, given), "model": model, "report": report}
    lines = [str(fitted.summary()), "", f"Model: {model}"]
    told.result(facts, "\n".join([*lines, *([f"Report: {report}"] if report else [])]))


def learned_facts(model: Imputer, given: Given) -> dict[str, Any]:
    """What there is to say of a table and its fit."""
    return {
        "rows": len(given.table),
        "columns": len(given.table.numeric),
        "missing": given.n_missing,
        **model.summary(),
    }


def write_page(
    path: Path,
    model: Imputer,
    given: Given,
    filled: Array,
    spans: Spans | None,
    told: Told,
    coverage: float,
) -> None:
    """The report, on all that the model saw: times read from dates are a column of it."""
    from hirank.report import write_report

    frame = given.frame
    rest = frame.shape[1] - filled.shape[1]
    X = np.column_stack([column.to_numpy() for column in frame.columns])

    def wide(end: Array) -> Array:
        return np.hstack([end, np.full((len(end), rest), np.nan)])

    source = str(given.file.path)
    write_report(
        path,
        model,
        X,
        np.hstack([filled, X[:, X.shape[1] - rest :]]),
        names=frame.column_names,
        title="standard input" if source == "-" else Path(source).name,
        interval=None if spans is None else (wide(spans.lower), wide(spans.upper)),
        coverage=coverage,
        rows=labels_of(given),
        notes=told.notes,
    )


def labels_of(given: Given) -> list[str]:
    """What to call rows: by their first --id, or the line they are on."""
    if given.ids:
        return [str(cell) for cell in given.table.column(given.ids[0])]
    return [f"line {given.table.line(i)}" for i in range(len(given.table))]
