"""``hirank stream``: rows come in, completed rows go out, and the model learns on."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hirank.cli.errors import CANNOT_WRITE, USAGE, Failure
from hirank.exceptions import ParameterError

if TYPE_CHECKING:
    from hirank.cli.stream.loop import Signals
    from hirank.cli.stream.model import Completer
    from hirank.cli.stream.reporter import Teller
    from hirank.cli.stream.sources import Lines

INPUT, STATE, OUTPUT = "The input", "The model", "The output"


def stream(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Rows to complete; standard input if not given.",
            show_default=False,
        ),
    ] = None,
    *,
    model: Annotated[
        Path,
        typer.Option(
            "--model",
            "-m",
            metavar="FILE",
            help="Model file. If it is not there, a new model learns from the first rows on. Where "
            "the input stopped is kept beside it, in FILE.position.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where completed rows go; - is standard output. A file goes on where it stopped.",
            rich_help_panel=OUTPUT,
        ),
    ] = "-",
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Wait for more at the end of FILE, also when it is renamed and made anew, or "
            "emptied, as logs are.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="auto|csv|jsonl",
            help="CSV with a header line, or a JSON object a line; auto tells by the first line.",
            rich_help_panel=INPUT,
        ),
    ] = "auto",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Names of the columns of a CSV without header line, with commas between.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing",
            metavar="VALUE",
            help="What else stands for a missing value, e.g. -200; may be repeated. Empty cells, "
            "NaN, null, NA, N/A and None always do, and absent keys in JSON.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="A column to pass through although it holds numbers (ids, codes); may be "
            "repeated. Only for a new model: others know their columns.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(help="Of a CSV; found out by itself if not given.", rich_help_panel=INPUT),
    ] = None,
    decimal: Annotated[
        str,
        typer.Option(
            metavar=".|,", help="What stands before the decimals in CSV.", rich_help_panel=INPUT
        ),
    ] = ".",
    on_error: Annotated[
        str,
        typer.Option(
            metavar="skip|keep|stop",
            help="A line that can't be read is reported with its number, and left out (skip), "
            "passed on unchanged (keep), or ends the run (stop).",
            rich_help_panel=INPUT,
        ),
    ] = "skip",
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Complete rows, learn nothing.", rich_help_panel=STATE)
    ] = False,
    save_every: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="ROWS",
            help="Save the state after so many rows; also at the end, and at SIGTERM, SIGINT and "
            "SIGHUP.",
            rich_help_panel=STATE,
        ),
    ] = 1000,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold",
            help="Hold the first 200 rows until a new model has started from them. Without it, "
            "they get column means at once. Always so for a FILE without --follow.",
            rich_help_panel=STATE,
        ),
    ] = False,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Read FILE from its start, whatever was read before. The model stays.",
            rich_help_panel=STATE,
        ),
    ] = False,
    digits: Annotated[
        int | None,
        typer.Option(min=1, max=17, help="Significant digits of fills.", rich_help_panel=OUTPUT),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the output file.", rich_help_panel=OUTPUT),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Tell what happens on standard error as a JSON object a line: at each save, bad "
            "line, and the end.",
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Say nothing but what goes wrong."),
    ] = False,
) -> None:
    """Example: [bold]tail -F sensors.csv | hirank stream -m model.hirank[/bold]

    Completes rows as they come, each at once, and learns from them. Observed cells and columns
    that are not the model's come out exactly as they went in.
    """  # noqa: D400
    from hirank.cli.errors import ending

    given = locals()
    del given["ending"]
    with ending():
        run(**given)


def run(
    *,
    source: Path | None,
    model: Path,
    output: str,
    follow: bool,
    form: str,
    columns: str | None,
    missing: list[str] | None,
    ids: list[str] | None,
    delimiter: str | None,
    decimal: str,
    on_error: str,
    frozen: bool,
    save_every: int,
    hold: bool,
    restart: bool,
    digits: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Put the parts together, and let them work until the input ends or a signal comes."""
    if os.name != "posix":
        raise Failure("hirank stream needs Linux or macOS: signals and pipes are theirs.", USAGE)
    source = None if source is None or str(source) == "-" else source
    model = model.resolve()
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    _check(source, model, output, follow, form, delimiter, decimal, on_error)

    from hirank.cli.stream.checkpoint import Output, Positions
    from hirank.cli.stream.layouts import Reading, first_look
    from hirank.cli.stream.lines import CellFormat
    from hirank.cli.stream.loop import Session, Signals
    from hirank.cli.stream.model import opened
    from hirank.cli.stream.reporter import Teller

    tell = Teller(as_json=as_json, quiet=quiet)
    with Signals() as stop, warnings.catch_warnings():
        tell.hear()
        positions = Positions(model)
        completer = opened(model, frozen=frozen, say=tell.say)
        words = [*(missing or ()), *_own_words(completer, model)]
        positions.notes["missing"] = sorted(set(words))
        cells = CellFormat(words, decimal, digits)
        last = positions.last()
        if last is None and positions.known and not restart:
            tell.say(f"{positions.path.name} belongs to another model, so it is not used.")
        lines, place = _open(source, None if restart else last, follow, stop, tell)
        if lines is None:
            return
        reading = Reading(form, columns, tuple(ids or ()), delimiter, cells, tell.say)
        header = last["header"] if last is not None and place["offset"] else None
        look = first_look(reading, lines, completer, header)
        if look is None:
            if stop.asked:
                return
            raise Failure("The input is empty: not even a header line or a row.")
        target = Output(output)
        goes_on = _goes_on(last, place, lines, restart)
        target.open(last["output"] if goes_on and last else None, cut=lines.again, force=force)
        fresh = target.size == 0 if target.path is not None else not place["offset"]
        session = Session(
            source=lines,
            layout=look.layout,
            completer=completer,
            output=target,
            positions=positions,
            tell=tell,
            stop=stop,
            header=look.header,
            top=look.top if fresh else b"",
            total=0 if last is None else last["rows"],
            place=place,
            save_every=save_every,
            on_error=on_error,
            hold=hold or not lines.live,
        )
        session.run()


def _check(
    source: Path | None,
    model: Path,
    output: str,
    follow: bool,
    form: str,
    delimiter: str | None,
    decimal: str,
    on_error: str,
) -> None:
    for name, value, allowed in (
        ("--format", form, ("auto", "csv", "jsonl")),
        ("--on-error", on_error, ("skip", "keep", "stop")),
        ("--decimal", decimal, (".", ",")),
    ):
        if value not in allowed:
            raise Failure(f"{name} must be {', '.join(allowed)}; got {value!r}.", USAGE)
    from hirank.io.dialect import check_delimiter  # not before: help needs no NumPy

    try:
        check_delimiter(delimiter, decimal)
    except ParameterError as error:
        raise Failure(error.message("--{}".format), USAGE) from None
    if follow and source is None:
        raise Failure("--follow needs a FILE; standard input is followed anyway.", USAGE)
    if model.is_dir():
        raise Failure(f"{model} is a folder: add a file name.", CANNOT_WRITE)
    if not model.parent.is_dir():
        raise Failure(f"There is no folder {model.parent}: create it first.", CANNOT_WRITE)
    taken = {model, model.with_name(model.name + ".position")}
    if source is not None and source.is_dir():
        raise Failure(f"{source} is a folder: give a file.")
    if output != "-":
        path = Path(output).resolve()
        if path in taken or (source is not None and path == source.resolve()):
            raise Failure(f"--output {output} is a file that is needed: give another.", USAGE)
        if path.is_dir():
            raise Failure(f"{output} is a folder: add a file name.", CANNOT_WRITE)
        if not path.parent.is_dir():
            raise Failure(f"There is no folder {path.parent}: create it first.", CANNOT_WRITE)


def _own_words(completer: Completer, path: Path) -> list[str]:
    """What the model itself takes for missing, and what did when hirank fit learned it."""
    from hirank.cli.fit_table import markers_of

    own = getattr(completer.model, "missing_values", float("nan"))
    known = markers_of(path) if path.exists() else []
    return known if own is None or own != own else [*known, str(own)]


def _open(
    source: Path | None,
    last: dict[str, Any] | None,
    follow: bool,
    stop: Signals,
    tell: Teller,
) -> tuple[Lines | None, dict[str, Any]]:
    """The input, from where it stopped; no input if asked to stop before there is any."""
    from hirank.cli.stream.sources import File, Followed, Lines, found_again, renamed

    start: dict[str, Any] = {"offset": 0, "line": 0, "last": "", "last_size": 0}
    if source is None:
        lines = Lines(0, stop)
        lines.live = not stat.S_ISREG(os.fstat(0).st_mode)
        return lines, start
    told = False
    while follow and not source.exists() and not stop.asked:
        if not told:
            tell.say(f"Waiting for {source}.")
            told = True
        stop.wait(0.1)
    if stop.asked:
        return None, start
    try:
        info = os.stat(source)
        if not stat.S_ISREG(info.st_mode):
            return Lines(os.open(source, os.O_RDONLY), stop), start
        place, at = None, source
        saved = None if last is None else last["input"]
        if saved is not None and (
            saved["path"] == str(source.resolve()) or saved["inode"] == info.st_ino
        ):
            if found_again(source, saved):
                place = saved
            elif follow and (other := renamed(source, saved)) is not None:
                place, at = saved, other
                tell.say(f"{source} is a new file; what is left of the old one comes first.")
            else:
                tell.say(f"{source} is not what was read before: it is read from its start.")
        if follow:
            file: File = Followed(source, stop, place, tell.say, at)
        else:
            file = File(source, stop, place)
    except OSError as error:
        raise Failure(f"Can't read {source}: {error.strerror}.") from None
    return file, place or {**start, **vars(file.origin)}


def _goes_on(
    last: dict[str, Any] | None, place: dict[str, Any], lines: Lines, restart: bool
) -> bool:
    """Whether the output of the last run is that of the rows before this place."""
    if last is None or restart:
        return False
    if not lines.again or last["input"] is None:
        return not lines.again and last["input"] is None
    return bool(last["input"] == place) or _start_of_same(last["input"], place)


def _start_of_same(saved: dict[str, Any], place: dict[str, Any]) -> bool:
    # Killed before its first save: the output may hold rows, the position is at the start.
    return saved["offset"] == place["offset"] == 0 and saved["path"] == place["path"]
