"""``hirank stream``: impute rows as they arrive, and learn from them."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hirank.cli.intervals import check_coverage
from hirank.cli.lock import locked
from hirank.cli.models import load_markers, set_threads
from hirank.cli.output_checks import check_target
from hirank.cli.reporter import Reporter
from hirank.cli.stream.checkpoint import Checkpoint, Output, Position
from hirank.cli.stream.follow import Restart, open_lines
from hirank.cli.stream.layouts import Detected, Detector
from hirank.cli.stream.loop import Session
from hirank.cli.stream.model import StreamModel, open_model
from hirank.cli.stream.signals import Signals
from hirank.cli.stream.sources import Lines
from hirank.exceptions import InputError, OutputError, ParameterError
from hirank.io.cell_format import CellFormat
from hirank.io.dialect import check_delimiter
from hirank.io.errors import reading
from hirank.io.rows import Delimited
from hirank.persistence.container import read_header

if TYPE_CHECKING:
    from hirank.cli.app import Stream


def run(options: Stream, reporter: Reporter) -> None:
    """Build the parts of a session from the options, and run it."""
    source = None if options.source is None or str(options.source) == "-" else options.source
    path = options.model.resolve()
    _check_options(options, source, path)
    with Signals() as stop, reporter.warnings(), ExitStack() as stack:
        if _saves(options, source, path):
            stack.enter_context(locked(path))
        model = open_model(
            path,
            reporter,
            frozen=options.frozen,
            time=options.time,
            groups=options.groups,
            coverage=options.interval,
            forecasts=options.forecast is not None,
        )
        set_threads(model.model, options.n_jobs)
        markers = [*(options.missing or ()), *_model_markers(model, path)]
        checkpoint, output = Checkpoint(path, markers), Output(options.output)
        if checkpoint.is_foreign and not options.restart:
            reporter.note(f"{checkpoint.path.name} belongs to another model and is ignored.")
        restart = _make_restart(options, checkpoint.last, output)
        if options.follow and source is not None and restart.place is None:
            _wait_for(source, stop, reporter)
        if stop.requested:
            return
        own = [path, checkpoint.path, *([] if output.path is None else [output.path])]
        lines = open_lines(source, restart, stop, follow=options.follow, own=own)
        kept, is_same = _find_kept(options, checkpoint.last, lines)
        aside = model.time_column, model.group_column
        cells = CellFormat(markers, options.decimal, options.digits, *aside)
        detector = Detector(options, cells, lines, model, reporter)
        detected = _detect(detector, kept, output, is_same=is_same)
        if stop.requested:
            return
        if detected is None:
            raise InputError("The input is empty. It must have a header line or a row.")
        place = None if kept is None else kept.output
        output.open(place, cut=lines.is_file and is_same, force=options.force)
        top = b"" if _has_top(output, lines) else detected.top
        parts = (lines, detected, model, output, checkpoint, reporter, stop, top)
        Session(options, *parts).run()


def _find_kept(
    options: Stream, last: Position | None, lines: Lines
) -> tuple[Position | None, bool]:
    """Return the position whose output is continued, and whether the input is the same.

    With --restart the input is another one, and the output may still be continued.
    """
    is_same = last is not None and not options.restart and last.input == lines.start
    return last if is_same or (options.restart and not options.force) else None, is_same


def _has_top(output: Output, lines: Lines) -> bool:
    """Return whether the output has its first line already."""
    is_continued = lines.start is not None and lines.start.offset > 0
    return output.size > 0 or (output.path is None and is_continued)


def _saves(options: Stream, source: Path | None, model: Path) -> bool:
    """Return whether anything is saved, which two processes must not do with one model."""
    if source is not None or options.output != "-":
        return True
    if options.frozen or not model.exists():
        return not options.frozen
    with reading(model):
        return read_header(model).get("kind") in ("OnlineImputer", "OnlineKFMC")


def _make_restart(options: Stream, last: Position | None, output: Output) -> Restart:
    """Return where the input is continued, and what was written after that was saved."""
    out = "" if options.output == "-" else f" -o {shlex.quote(options.output)}"
    command = f"hirank stream -m {shlex.quote(str(options.model))}{out} --restart"
    if last is None or options.restart:
        return Restart(None, command=command)
    written = max(output.count_written(last.output) - last.forecasts, 0)
    if last.output is not None and last.output.size == 0 and last.columns is not None:
        written = max(written - 1, 0)  # the header
    return Restart(last.input, written, last.header is not None, command)


def _detect(
    detector: Detector, last: Position | None, output: Output, *, is_same: bool
) -> Detected | None:
    """Detect the layout of the input, for an output that may be continued."""
    if last is None:
        return detector.detect()
    has_rows = last.output is not None and last.output.size > 0
    is_written = has_rows and output.is_continued(last.output)
    start = detector.lines.start if is_same else None
    is_inside = start is not None and start.offset > 0
    # A file that was created again may have no header; a pipe has to have one.
    header = last.header if is_inside or (is_written and start is not None) else None
    detected = detector.detect(header, last.columns if is_written or is_inside else None)
    if is_written and detected is not None:
        is_csv = isinstance(detected.layout, Delimited)
        if is_csv != (last.columns is not None):
            formats = ("JSON lines", "CSV")
            problem = f"The file contains {formats[not is_csv]}, but the input is {formats[is_csv]}"
            raise OutputError(output.path, f"{problem}. Use another file.")
    return detected


def _wait_for(source: Path, stop: Signals, reporter: Reporter) -> None:
    """Wait until a file exists, or a signal arrives."""
    if not source.exists():
        reporter.note(f"Waiting for {source}.")
    while not source.exists() and not stop.requested:
        stop.wait(0.1)


def _check_options(options: Stream, source: Path | None, model: Path) -> None:
    """Raise an error if the options contradict each other, or a file cannot be used."""
    if os.name != "posix":
        raise InputError("hirank stream requires Linux or macOS.")
    check_delimiter(options.delimiter, options.decimal)
    check_coverage(options.interval)
    if options.follow and source is None:
        raise ParameterError("follow", "requires a FILE; standard input is followed anyway.")
    if options.follow and options.forecast is not None:
        raise ParameterError("forecast", "requires an input that ends. Omit {follow}.", "follow")
    check_target(model, force=True)
    if options.output != "-":
        path = Path(options.output).resolve()
        inputs = [model, *(model.with_name(model.name + end) for end in (".position", ".lock"))]
        if path in inputs or (source is not None and path == source.resolve()):
            raise OutputError(options.output, "This is an input. Use another name.")
        check_target(options.output, force=True)


def _model_markers(model: StreamModel, path: Path) -> list[str]:
    """Return what marks missing values for the model, and did when hirank fit fitted it."""
    own = float(model.model.missing_values)
    known = load_markers(path) if path.exists() else []
    return known if np.isnan(own) else [*known, str(own)]
