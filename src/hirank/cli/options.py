"""Every option of the program, described once; the commands in `app` are records of these.

No module of the library is imported here, so that ``hirank --help`` is quick.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass
from enum import StrEnum
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

RowFormat = StrEnum("RowFormat", {"AUTO": "auto", "CSV": "csv", "JSONL": "jsonl"})
OnError = StrEnum("OnError", {"SKIP": "skip", "KEEP": "keep", "STOP": "stop"})
Decimal = StrEnum("Decimal", {"POINT": ".", "COMMA": ","})
# By panel of the help: option, short form and metavar, and what it does.
_HELP = {
    "Arguments": {
        "TABLE": "CSV or TSV (also .gz), Parquet, Arrow, Excel or NumPy file; "
        '"-" reads CSV from standard input.',
        "MODEL": "Model file.",
        "FILE": "Rows to impute; standard input by default.",
    },
    "Input": {
        "--missing VALUE": "Another marker of missing values, for instance -200; may be repeated. "
        "Empty cells, NaN, null, NA, N/A and None always count as missing.",
        "--id COLUMN": "A column of numbers that are identifiers or codes, which passes through "
        "unchanged; may be repeated.",
        "--time COLUMN": "The column that contains the times of the rows, as numbers or dates. "
        "Rows that are close in time help to impute each other.",
        "--group COLUMN": "Column with labels, such as names of devices. Rows of one device follow "
        "each other in time, rows of different devices do not.",
        "--in-order": "The rows are in the order of time and evenly spaced; instead of --time.",
        "--delimiter": 'Delimiter of a text file, one character or "tab"; detected by default.',
        "--encoding": "Encoding of a text file.",
        "--sheet": "Sheet of an Excel file; the first by default.",
        "--header/--no-header": "Whether the first row contains column names.",
        "--max-memory SIZE": "Memory that the table may take, for instance 4G; by default half of "
        "the machine's. A file that requires more is refused.",
        "--rows": "Rows in memory at the same time.",
        "--follow -f": "Wait for more rows at the end of FILE, also when it is renamed and created "
        "again, as logs are. If rows can be missing after a rotation, that is an error.",
        "--format": "CSV with a header line, or JSON lines, one object per line; auto detects it "
        "from the first line.",
        "--columns NAMES": "Column names of a CSV without header line, separated by commas.",
        "--decimal": "Decimal mark in CSV.",
        "--on-error": "A line that cannot be read is reported with its number, and left out "
        "(skip), written unchanged (keep), or ends the run (stop).",
    },
    "Model": {
        "--model -m FILE": "Model file.",
        "--max-time SECONDS": "Approximate limit of the time to select and fit the models.",
        "--seed": "Random seed. The same seed gives the same result, unless --max-time is reached.",
        "--bounds [COLUMN=]LOW:HIGH": "Limits of imputed values, for instance rain=0: or 0:100 for "
        "all columns; may be repeated.",
        "--raw": "Write imputed values as they are computed: not rounded to the decimals of their "
        "column, nor kept from crossing 0, 1 or 100 where no observed value does.",
        "--integers auto|all|COLUMNS": "Round imputed values of columns of whole numbers: auto, "
        "all, or names separated by commas.",
        "--max-gap ROWS": "Leave longer gaps empty; requires --time, --group or --in-order.",
        "--frozen": "Impute without learning.",
        "--save-every ROWS": "Save the model after this many rows; it is also saved at the end, "
        "and at SIGTERM, SIGINT and SIGHUP.",
        "--hold": "Hold back the first 200 rows until a new model is fitted to them. Otherwise "
        "they are imputed at once, by the rows before. Always on for a FILE without --follow.",
        "--restart": "Read FILE from its start, whatever was read before. The model is kept, and "
        "the output is continued, unless --force is passed.",
    },
    "Output": {
        "--output -o FILE": "Output file; by default beside the input, data.filled.csv for "
        'data.csv. The extension selects the format; "-" writes CSV to standard output.',
        "--report FILE.html": "Write a page about the result.",
        "--save FILE": "Save the fitted model for `hirank apply`.",
        "--interval COVERAGE": "Add two columns for each numeric one: the ends of intervals that "
        "contain the missing value with this probability, for instance 0.9.",
        "--forecast ROWS": "At the end of the input, also write this number of forecast rows for "
        "each group. A column (in JSON lines, a member) `forecast` numbers them.",
        "--digits": "Significant digits of imputed values in text files.",
        "--force": "Overwrite output files that exist.",
        "--plot FILE.png": "Draw the errors.",
    },
    "Options": {
        "--hold-out SHARE": "Share of the observed values to hold out.",
        "--json": "Print the result as one JSON object.",
        "--quiet -q": "Print nothing but errors.",
        "--jobs N": "Number of threads; by default one for each processor. The result does not "
        "depend on it.",
    },
}
_RANGES: dict[str, dict[str, float]] = {
    "--rows": {"min": 1},
    "--jobs": {"min": 1},
    "--seed": {"min": 0, "max": 2**32 - 1},
    "--max-gap": {"min": 1},
    "--save-every": {"min": 1},
    "--forecast": {"min": 1},
    "--digits": {"min": 1, "max": 17},
    "--hold-out": {"min": 0.01, "max": 0.5},
}
# Fields of the records below, and parameters of the library, whose option has another name.
_NAMES = {
    "ids": "--id",
    "groups": "--group",
    "form": "--format",
    "as_json": "--json",
    "coverage": "--interval",
    "random_state": "--seed",
    "header": "--header/--no-header",
}


def option_name(parameter: str) -> str:
    """Return the option that sets a parameter of the library or a field of a record."""
    return _NAMES.get(parameter, "--" + parameter.replace("_", "-"))


def _read_delimiter(value: str | None) -> str | None:
    return {"\\t": "\t", "tab": "\t"}.get(value or "", value)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of all commands."""

    as_json: bool = False
    quiet: bool = False

    argument: ClassVar[dict[str, str]] = {}  # the field that is an argument, and its metavar
    help: ClassVar[dict[str, str]] = {}  # of options that are, or mean, something else here
    prints_events: ClassVar[bool] = False  # with --json: one object per event, not one in all

    @classmethod
    def parameter(cls, field: Field[Any], kind: Any) -> Parameter:
        """Return a field as a parameter of a function that typer turns into a command."""
        name = cls.argument.get(field.name) or option_name(field.name)
        rows = ((panel, key) for panel, options in _HELP.items() for key in options)
        panel, key = next((row for row in rows if row[1].split(" ")[0] == name), ("Options", name))
        flags = [part for part in key.split(" ") if part.startswith("-")]
        metavar = None if key.split(" ")[-1] in flags else key.split(" ")[-1]
        more: dict[str, Any] = {
            "help": cls.help.get(name) or _HELP[panel][key],
            "metavar": metavar,
            "rich_help_panel": None if panel == "Options" else panel,
            "show_default": field.default not in (MISSING, None),
            "callback": _read_delimiter if name == "--delimiter" else None,
            **_RANGES.get(name, {}),
        }
        info = typer.Option(*flags, **more) if flags else typer.Argument(**more)
        default = Parameter.empty if field.default is MISSING else field.default
        annotation = Annotated[kind, info]
        return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@dataclass(frozen=True, kw_only=True)
class WorkOptions(Options):
    """Options of commands that compute."""

    jobs: int | None = None

    @property
    def n_jobs(self) -> int:
        """The number of threads, as a parameter of the library."""
        return self.jobs or -1


@dataclass(frozen=True, kw_only=True)
class TableOptions(WorkOptions):
    """Options of commands that read a table."""

    table: str
    missing: list[str] | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    sheet: str | None = None
    header: bool = True
    max_memory: str | None = None

    argument: ClassVar[dict[str, str]] = {"table": "TABLE"}

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of `hirank.io.open_table` that are passed on as they are."""
        names = ("delimiter", "encoding", "sheet", "header", "max_memory")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class LearnOptions(TableOptions):
    """Options of commands that read a table and learn from it."""

    ids: list[str] | None = None
    max_time: float | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class FitOptions(LearnOptions):
    """Options of commands that fit a model to keep or to impute with."""

    time: str | None = None
    groups: str | None = None
    in_order: bool = False
    bounds: list[str] | None = None
    integers: str | None = None
    raw: bool = False
    max_gap: int | None = None
    report: Path | None = None
    force: bool = False
