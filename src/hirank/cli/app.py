"""All commands: a record of options each, and a function `run` in a module of the same name.

To add a command, write its record here and a module with ``run(options, reporter)``, which is
imported when the command is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_type_hints

import typer

from hirank.cli import options as o
from hirank.cli.reporter import Reporter

C = TypeVar("C", bound=o.Options)

app = typer.Typer(
    name="hirank",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Impute missing values in tables, and estimate the error of the imputed values.\n\n"
    "Start with: [bold]hirank complete data.csv -o filled.csv --report report.html[/bold]",
    epilog="Exit codes: 0 success, 2 wrong options, 3 table or model cannot be used, 4 cannot "
    "write, 5 no observed values, 130 interrupted, 1 defect of hirank.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import hirank

        typer.echo(f"hirank {hirank.__version__}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", help="Print the version.", callback=_print_version, is_eager=True
)


@app.callback()
def _root(version: Annotated[bool, _VERSION] = False) -> None:
    pass


@dataclass_transform(frozen_default=True, kw_only_default=True)
def command(example: str) -> Callable[[type[C]], type[C]]:
    """Make a frozen record of options, and the command of its name; its docstring is the help."""

    def register(options: type[C]) -> type[C]:
        options = dataclass(frozen=True, kw_only=True)(options)
        name = options.__name__.lower()

        def run(**given: Any) -> None:
            record = options(**given)
            events = record.prints_events
            with Reporter(as_json=record.as_json, quiet=record.quiet, events=events) as reporter:
                import_module(f"hirank.cli.{name}").run(record, reporter)

        hints = get_type_hints(options)
        parameters = [options.parameter(field, hints[field.name]) for field in fields(options)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        paragraphs = [" ".join(one.split()) for one in (options.__doc__ or "").split("\n\n")]
        text = "\n\n".join([f"Example: [bold]{example}[/bold]", *paragraphs])
        app.command(name, help=text, short_help=paragraphs[0])(run)
        return options

    return register


@command("hirank complete data.csv -o filled.csv --report report.html")
class Complete(o.FitOptions):
    """Impute the missing values of a table.

    Missing values of numeric columns are imputed. Other columns and observed cells are written
    exactly as they are in the input.
    """

    output: str | None = None
    save: Path | None = None
    interval: float | None = None
    digits: int | None = None


@command("hirank fit history.parquet -m model.hirank")
class Fit(o.FitOptions):
    """Fit a model to a table and save it.

    The model file is for `hirank apply` and `hirank stream`.
    """

    model: Path


@command("hirank apply -m model.hirank new.csv -o filled.csv")
class Apply(o.TableOptions):
    """Impute a table with a saved model.

    The model is not changed. The table may be larger than memory. Columns are matched by name.
    """

    model: Path
    output: str | None = None
    rows: int = 20_000
    interval: float | None = None
    digits: int | None = None
    force: bool = False


@command("tail -F sensors.csv | hirank stream -m model.hirank")
class Stream(o.WorkOptions):
    """Impute rows as they arrive, and learn from them.

    Each row is written at once. Observed cells, and columns that the model does not know, are
    written exactly as they are in the input.
    """

    source: Path | None = None
    model: Path
    output: str = "-"
    follow: bool = False
    form: o.RowFormat = o.RowFormat.AUTO
    columns: str | None = None
    missing: list[str] | None = None
    ids: list[str] | None = None
    time: str | None = None
    groups: str | None = None
    delimiter: str | None = None
    decimal: o.Decimal = o.Decimal.POINT
    on_error: o.OnError = o.OnError.SKIP
    frozen: bool = False
    save_every: int = 1000
    hold: bool = False
    restart: bool = False
    interval: float | None = None
    forecast: int | None = None
    digits: int | None = None
    force: bool = False

    argument: ClassVar[dict[str, str]] = {"source": "FILE"}
    help: ClassVar[dict[str, str]] = {
        "--model": "Model file. If it does not exist, a new model learns from the first rows on. "
        "The position in the input is saved in FILE.position.",
        "--time": "The column that contains the times of the rows, as numbers or ISO dates. By "
        "default rows count as evenly spaced, and the model finds out whether their order helps.",
        "--output": 'Output file, continued if the input is; "-" is standard output.',
        "--json": "Print JSON objects to standard error: one for each save, note and bad line, and "
        "one at the end.",
    }
    prints_events: ClassVar[bool] = True


@command("hirank advise data.csv")
class Advise(o.LearnOptions):
    """Estimate how well the missing values of a table can be imputed.

    Prints the error to expect of imputed values, and which rows and columns have too few values.
    """

    max_time: float | None = 60.0


@command("hirank compare data.csv --plot errors.png")
class Compare(o.LearnOptions):
    """Compare hirank with other methods on held-out values.

    Some observed values are held out, and imputed by hirank and by other methods.
    """

    plot: Path | None = None
    hold_out: float = 0.1
    force: bool = False


@command("hirank info model.hirank")
class Info(o.Options):
    """Print what a model file contains; without a file, the versions of all that hirank uses."""

    model: Path | None = None

    argument: ClassVar[dict[str, str]] = {"model": "MODEL"}
