"""All commands and their options; what they do is in a module of its own, imported when called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hirank.cli import options as o
from hirank.cli.errors import ending
from hirank.cli.stream.command import stream

app = typer.Typer(
    name="hirank",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Fill in missing values in tables, and tell how far to trust the fills.\n\n"
    "Start with: [bold]hirank complete data.csv -o filled.csv --report report.html[/bold]",
    epilog="Exit codes: 0 done, 2 wrong options, 3 bad table or model, 4 can't write, 5 nothing "
    "to fill by, 130 interrupted, 1 a mistake of hirank's own.",
)


def _version(wanted: bool) -> None:
    if wanted:
        import hirank

        typer.echo(f"hirank {hirank.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _run(command: str, **given: Any) -> None:
    """Import the module of a command, and let it work."""
    with ending():
        import_module(f"hirank.cli.{command}").run(**given)


@app.command(short_help="Fill the holes of a table.")
def complete(
    table: o.Data,
    output: o.Output,
    report: o.Report = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE", help="Keep the model for apply.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    missing: o.Missing = None,
    ids: o.Ids = None,
    time: o.Time = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    sheet: o.Sheet = None,
    header: o.Header = True,
    max_time: o.MaxTime = None,
    seed: o.Seed = 0,
    bounds: o.Bounds = None,
    integers: o.Integers = None,
    max_gap: o.MaxGap = None,
    interval: o.Interval = None,
    digits: o.Digits = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Example: [bold]hirank complete data.csv -o filled.csv --report report.html[/bold]

    Fills the holes of a table. Numeric columns are filled, others pass through; observed cells come
    out exactly as they stood.
    """  # noqa: D400
    _run("complete", **locals())


@app.command(short_help="Learn a model from a table and keep it.")
def fit(
    table: o.Data,
    model: o.ModelFile,
    report: o.Report = None,
    missing: o.Missing = None,
    ids: o.Ids = None,
    time: o.Time = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    sheet: o.Sheet = None,
    header: o.Header = True,
    max_time: o.MaxTime = None,
    seed: o.Seed = 0,
    bounds: o.Bounds = None,
    integers: o.Integers = None,
    max_gap: o.MaxGap = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Example: [bold]hirank fit history.parquet -m model.hirank[/bold]

    Learns a model from a table and keeps it in a file, for apply and stream.
    """  # noqa: D400
    _run("fit", **locals())


@app.command(short_help="Fill a table with a kept model.")
def apply(
    table: o.Data,
    model: o.ModelFile,
    output: o.Output,
    missing: o.Missing = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    sheet: o.Sheet = None,
    header: o.Header = True,
    rows: Annotated[
        int,
        typer.Option("--rows", min=1, help="Rows in memory at a time.", rich_help_panel=o.TABLE),
    ] = 20_000,
    interval: o.Interval = None,
    digits: o.Digits = None,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Example: [bold]hirank apply -m model.hirank new.csv -o filled.csv[/bold]

    Fills a table with a model that was learned before; it is never changed. The table may be larger
    than memory. Columns are matched by name.
    """  # noqa: D400
    _run("apply", **locals())


app.command(short_help="Complete rows as they come, and keep learning.")(stream)


@app.command(short_help="Tell whether a table can be filled, and by what.")
def advise(
    table: o.Data,
    missing: o.Missing = None,
    ids: o.Ids = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    sheet: o.Sheet = None,
    header: o.Header = True,
    max_time: o.MaxTime = 60,
    seed: o.Seed = 0,
    as_json: o.Json = False,
) -> None:
    """Example: [bold]hirank advise data.csv[/bold]

    Prints the error to expect of imputed values, and which rows and columns have too few values.
    """  # noqa: D400
    _run("advise", **locals())


@app.command(short_help="hirank against other methods on hidden cells.")
def compare(
    table: o.Data,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw the errors.", rich_help_panel=o.OUTPUT),
    ] = None,
    hide: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="Part of the observed cells to hide.")
    ] = 0.1,
    missing: o.Missing = None,
    ids: o.Ids = None,
    delimiter: o.Delimiter = None,
    encoding: o.Encoding = "utf-8",
    sheet: o.Sheet = None,
    header: o.Header = True,
    max_time: o.MaxTime = None,
    seed: o.Seed = 0,
    force: o.Force = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Example: [bold]hirank compare data.csv --plot errors.png[/bold]

    Hides some observed cells and lets hirank and other methods fill them again.
    """  # noqa: D400
    _run("compare", **locals())


@app.command(short_help="Tell what a model file holds.")
def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", show_default=False)],
    as_json: o.Json = False,
) -> None:
    """Example: [bold]hirank info model.hirank[/bold]

    Tells what a model file holds.
    """  # noqa: D400
    _run("info", **locals())
