"""``hirank complete``: the main job in one line."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hirank.cli.fit import learned_facts, write_page
from hirank.cli.fit_table import Given, filled_by, keep, prepared
from hirank.cli.intervals import Spans, check_interval, intervals_of, span_columns
from hirank.cli.output_checks import check_targets
from hirank.cli.reporter import Told
from hirank.io import Writer, create


def run(
    *,
    table: str,
    output: str,
    report: Path | None,
    save: Path | None,
    interval: float | None,
    digits: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **learning: Any,
) -> None:
    """Read, fill, write; then the model and the page, if asked for."""
    began = perf_counter()
    told = Told(as_json=as_json, quiet=quiet)
    check_interval(interval)
    check_targets(table, save, report, table=output, force=force)
    given, model = prepared(table, told, **learning)
    check_interval(interval, given.table)
    if not given.n_missing:
        told.note("No cell is missing: there is nothing to fill.")
    if not given.n_missing and save is None and report is None:
        with create(output, given.file, force=force, digits=digits) as out:
            facts = _copy(given, out, spans=interval is not None)
        facts |= {"seconds": perf_counter() - began, "output": output}
        told.result(facts, f"The table was copied: {output}", to_error=output == "-")
        return
    with create(output, given.file, force=force, digits=digits) as out:
        filled = filled_by(model, given, told)
        spans = None
        if interval is not None or report is not None:
            found = intervals_of(model, given.frame, interval or 0.9, told)
            spans = None if found is None else found.around(filled)
        extra = span_columns(given.table, spans) if interval is not None else {}
        out.write(given.table, filled, extra)
    if save is not None:
        keep(model, save, given)
    if report is not None:
        write_page(report, model, given, filled, spans, told, interval or 0.9)
    n_filled = int((np.isnan(given.table.numbers) & ~np.isnan(filled)).sum())
    facts = {
        **learned_facts(model, given),
        "filled": n_filled,
        "left_empty": given.n_missing - n_filled,
        "seconds": perf_counter() - began,
        "output": output,
        "report": report,
        "model": save,
    }
    told.result(facts, _words(facts, model), to_error=output == "-")


def _copy(given: Given, out: Writer, *, spans: bool) -> dict[str, Any]:
    """Write a table that has no holes; no model is needed for that."""
    whole = given.table.numbers
    nowhere = np.full(whole.shape, np.nan)
    out.write(
        given.table, whole, span_columns(given.table, Spans(nowhere, nowhere) if spans else None)
    )
    shape = {"rows": len(given.table), "columns": whole.shape[1]}
    return {**shape, "missing": 0, "filled": 0, "left_empty": 0, "report": None, "model": None}


def _words(facts: dict[str, Any], model: Any) -> str:
    lines = [
        f"Filled {facts['filled']} of {facts['missing']} missing cells in {facts['rows']} rows and "
        f"{facts['columns']} numeric columns ({facts['seconds']:.1f} s): {facts['output']}"
    ]
    if facts["n_hidden"]:
        lines.append(
            f"Error at {facts['n_hidden']} hidden cells, with the column mean as 1: "
            f"{facts['error']:.3f} (best linear method: {facts['linear_error']:.3f})."
        )
    if facts["left_empty"]:
        lines.append(
            f"{facts['left_empty']} cells stay empty: their columns have no values, or their gaps "
            "are longer than --max-gap."
        )
    lines.append(facts["verdict"])
    lines += [
        f"{word}: {facts[key]}"
        for key, word in (("model", "Model"), ("report", "Report"))
        if facts[key]
    ]
    return "\n".join(lines)
