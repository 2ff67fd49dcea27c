"""``hirank stream``: impute rows as they arrive, and learn from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hirank.cli.models import load_markers
from hirank.cli.output_checks import check_target
from hirank.cli.reporter import Reporter
from hirank.cli.stream.checkpoint import Checkpoint, Output, Position
from hirank.cli.stream.layouts import Detector
from hirank.cli.stream.loop import Session
from hirank.cli.stream.model import StreamModel, open_model
from hirank.cli.stream.signals import Signals
from hirank.cli.stream.sources import Lines, Place, open_lines
from hirank.exceptions import InputError, OutputError, ParameterError
from hirank.io.dialect import check_delimiter
from hirank.io.rows import CellFormat

if TYPE_CHECKING:
    from hirank.cli.app import Stream


def run(options: Stream, reporter: Reporter) -> None:
    """Build the parts of a session from the options, and run it."""
    source = None if options.source is None or str(options.source) == "-" else options.source
    path = options.model.resolve()
    _check_options(options, source, path)
    with Signals() as stop, reporter.warnings():
        model = open_model(path, reporter, frozen=options.frozen)
        markers = [*(options.missing or ()), *_model_markers(model, path)]
        checkpoint = Checkpoint(path, markers)
        last = None if options.restart else checkpoint.last
        if checkpoint.is_foreign and not options.restart:
            reporter.note(f"{checkpoint.path.name} belongs to another model and is ignored.")
        if options.follow and source is not None:
            _wait_for(source, stop, reporter)
        if stop.requested:
            return
        saved = None if last is None else last.input
        lines = open_lines(source, saved, stop, follow=options.follow)
        cells = CellFormat(markers, options.decimal, options.digits)
        is_continued = lines.start is not None and lines.start.offset > 0
        header = last.header if last is not None and is_continued else None
        detected = Detector(options, cells, lines, model, reporter).detect(header)
        if stop.requested:
            return
        if detected is None:
            raise InputError("The input is empty. It must have a header line or a row.")
        output = _open_output(options, last, lines)
        has_top = output.size > 0 or (output.path is None and is_continued)
        top = b"" if has_top else detected.top
        parts = (lines, detected, model, output, checkpoint, reporter, stop, top)
        Session(options, *parts).run()


def _wait_for(source: Path, stop: Signals, reporter: Reporter) -> None:
    """Wait until a file exists, or a signal arrives."""
    if not source.exists():
        reporter.note(f"Waiting for {source}.")
    while not source.exists() and not stop.requested:
        stop.wait(0.1)


def _open_output(options: Stream, last: Position | None, lines: Lines) -> Output:
    """Open the output, at its last position if the input continues there."""
    output = Output(options.output)
    place = last.output if last is not None and _is_same(last.input, lines.start) else None
    output.open(place, cut=lines.is_file, force=options.force)
    return output


def _check_options(options: Stream, source: Path | None, model: Path) -> None:
    """Raise an error if the options contradict each other, or a file cannot be used."""
    if os.name != "posix":
        raise InputError("hirank stream requires Linux or macOS.")
    check_delimiter(options.delimiter, options.decimal)
    if options.follow and source is None:
        raise ParameterError("follow", "requires a FILE; standard input is followed anyway.")
    check_target(model, force=True)
    if options.output != "-":
        path = Path(options.output).resolve()
        inputs = [model, model.with_name(model.name + ".position")]
        if path in inputs or (source is not None and path == source.resolve()):
            raise OutputError(options.output, "This is an input. Use another name.")
        check_target(options.output, force=True)


def _model_markers(model: StreamModel, path: Path) -> list[str]:
    """Return what marks missing values for the model, and did when hirank fit fitted it."""
    own = float(model.model.missing_values)
    known = load_markers(path) if path.exists() else []
    return known if np.isnan(own) else [*known, str(own)]


def _is_same(last: Place | None, now: Place | None) -> bool:
    """Return whether the input continues where it was, so that the output can."""
    # A run that was killed before its first save may have written rows: it was at the start.
    if last is not None and now is not None and last.offset == now.offset == 0:
        return last.path == now.path
    return last == now
