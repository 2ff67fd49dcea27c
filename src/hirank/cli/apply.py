"""``hirank apply``: fill tables of any length with a kept model, which is never changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from hirank._typing import Array
from hirank.cli.dates import times_of
from hirank.cli.errors import Failure
from hirank.cli.fit_table import blanked, markers_of
from hirank.cli.intervals import BlankRows, check_interval, intervals_of, span_columns
from hirank.cli.output_checks import check_targets
from hirank.cli.reporter import Told
from hirank.io import Table, TableFile, create, open_table

SAMPLE = 1 << 16
"""Bytes by which the length of a file in rows is guessed, for the time that is left."""


def run(
    *,
    table: str,
    model: Path,
    output: str,
    missing: list[str] | None,
    rows: int,
    interval: float | None,
    digits: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Read some rows, fill them, write them, until there are no more."""
    import hirank

    began = perf_counter()
    told = Told(as_json=as_json, quiet=quiet)
    check_interval(interval)
    check_targets(table, table=output, keep=(model,), force=force)
    fitted = hirank.load(model)
    known = markers_of(model)
    if known:
        told.note(f"Missing, as when the model was learned: {', '.join(known)}.")
    _check_model(fitted, model, interval)
    names, time = _features(fitted), _time_column(fitted)
    wanted = None if names is None else [name for name in names if name != time]
    file = open_table(table, missing=(*known, *(missing or ())), numeric=wanted, **reading)
    blank = BlankRows(told)
    counts = {"rows": 0, "missing": 0, "filled": 0}
    ordered = getattr(fitted, "order", None) is not None
    if ordered:
        told.note("The model knows of time, so the table is read whole: neighbors count.")
    pieces: Iterator[Table] = iter([file.read()]) if ordered else file.chunks(rows)
    with (
        create(output, file, force=force, digits=digits) as out,
        told.rows(about_rows(file)) as advance,
    ):
        for piece in pieces:
            check_interval(interval, piece)
            X = _matched(piece, names, time, file, model)
            frame = X if names is None else pa.table(dict(zip(names, X.T, strict=True)))
            with told.warnings():
                filled = _transformed(fitted, frame, X.shape)
            blank.see(piece, X)
            order = _order(piece, names, X.shape[1])
            extra: dict[str, Array] = {}
            if interval is not None:
                spans = intervals_of(fitted, frame, interval, told)
                if spans is None:
                    raise Failure(f"{model} gives no intervals: leave out --interval.")
                extra = span_columns(piece, spans.take(order))
            out.write(piece, filled[:, order], extra)
            holes = np.isnan(piece.numbers)
            counts["rows"] += len(piece)
            counts["missing"] += int(holes.sum())
            counts["filled"] += int((holes & ~np.isnan(filled[:, order])).sum())
            advance(len(piece))
    blank.tell()
    seconds = perf_counter() - began
    facts = {**counts, "seconds": seconds, "rows_per_second": counts["rows"] / seconds}
    told.result(
        {**facts, "output": output, "model": model},
        f"Filled {counts['filled']} of {counts['missing']} missing cells in {counts['rows']} rows "
        f"({seconds:.1f} s, {facts['rows_per_second']:.0f} rows a second): {output}",
        to_error=output == "-",
    )


def about_rows(file: TableFile) -> int | None:
    """How many rows a text file has, by the length of its first lines; None if who knows."""
    path = Path(file.path)
    if str(file.path) == "-" or not path.is_file():
        return None
    with path.open("rb") as raw:
        begin = raw.read(SAMPLE)
    lines = begin.count(b"\n")
    # Compressed and binary files have no lines to speak of.
    if not lines or b"\0" in begin or begin.startswith(b"\x1f\x8b"):
        return None
    return max(1, round(path.stat().st_size * lines / len(begin)) - 1)


def _check_model(fitted: Any, path: Path, interval: float | None) -> None:
    """Models of hirank stream may not have started, and have no intervals."""
    started = getattr(fitted, "__sklearn_is_fitted__", None)
    if started is not None and not started():
        raise Failure(f"{path} has seen too few rows so far: let hirank stream learn from more.")
    if interval is not None and not hasattr(fitted, "interval"):
        raise Failure(
            f"{path} is a model of hirank stream, without intervals: leave out --interval."
        )


def _features(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _time_column(model: Any) -> str | None:
    """The column with the times, which may hold dates."""
    names, order = _features(model) or [], getattr(model, "order", None)
    return order if isinstance(order, str) and order in names else None


def _matched(
    table: Table, names: Sequence[str] | None, time: str | None, file: TableFile, model: Path
) -> Array:
    """The features of the model, n x m, in its order."""
    if names is None:
        return table.numbers
    lacking = [name for name in names if name not in file.names]
    if lacking:
        more = [name for name in file.names if name not in names]
        raise Failure(
            f"{file.path} does not have the columns of {model}. Lacking: {', '.join(lacking)}. "
            f"Not in the model: {', '.join(more) or 'none'}. Rename columns, or add empty ones."
        )
    columns = dict(zip(table.numeric, table.numbers.T, strict=True))
    if time is not None and time not in columns:
        columns[time] = times_of(table.column(time), time)
    return np.column_stack([columns[name] for name in names])


def _transformed(model: Any, frame: Any, shape: tuple[int, int]) -> Array:
    """The features of the model, n x m, completed; NaN where it can't tell."""
    filled = np.asarray(model.transform(frame), np.float64)
    if filled.shape[1] < shape[1]:  # features that were empty in fit have been dropped
        whole = np.full(shape, np.nan)
        whole[:, model.has_values_] = filled
        return whole
    filled = filled[:, : shape[1]]
    return blanked(filled, model) if hasattr(model, "has_values_") else filled


def _order(table: Table, names: Sequence[str] | None, m: int) -> list[int]:
    """Where the numeric columns of the table are among the features of the model."""
    return [*range(m)] if names is None else [names.index(name) for name in table.numeric]
