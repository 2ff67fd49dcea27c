"""Options that several commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TABLE, MODEL, OUTPUT = "The table", "The model", "The output"

Data = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV or TSV (also .gz), Parquet, Arrow, Excel or NumPy file; - is CSV on standard "
        "input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Option("--model", "-m", metavar="FILE", help="Model file.", show_default=False)
]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the filled table goes; its ending says the format, - is standard output.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="VALUE",
        help="What else stands for a missing value, e.g. -200; may be repeated. Empty cells, NaN, "
        "null, NA, N/A and None always do.",
        rich_help_panel=TABLE,
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="A column to pass through although it holds numbers (ids, codes); may be repeated.",
        rich_help_panel=TABLE,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Rows are in order of time, and neighbors in time help: the column with the times "
        "(numbers or dates), or 'rows' if they are evenly spaced.",
        rich_help_panel=TABLE,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Of a text file; found out by itself if not given.", rich_help_panel=TABLE),
]
Encoding = Annotated[str, typer.Option(help="Of a text file.", rich_help_panel=TABLE)]
Sheet = Annotated[
    str | None,
    typer.Option(help="Of an Excel file; the first if not given.", rich_help_panel=TABLE),
]
Header = Annotated[
    bool,
    typer.Option("--header/--no-header", help="Whether names come first.", rich_help_panel=TABLE),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="SECONDS",
        help="End the search for the best model after about so long.",
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0,
        max=2**32 - 1,
        help="The same seed gives the same result, unless --max-time ends the search.",
        rich_help_panel=MODEL,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        metavar="[COLUMN=]LOW:HIGH",
        help="Limits of fills, e.g. rain=0: or 0:100 for all columns; may be repeated.",
        rich_help_panel=MODEL,
    ),
]
Integers = Annotated[
    str | None,
    typer.Option(
        metavar="auto|all|COLUMNS",
        help="Round fills of columns that hold whole numbers: auto, all, or names with commas "
        "between.",
        rich_help_panel=MODEL,
    ),
]
MaxGap = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="ROWS", help="Leave longer gaps empty; needs --time.", rich_help_panel=MODEL
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        metavar="COVERAGE",
        help="Add two columns for each filled one, between which the truth lies with this "
        "probability, e.g. 0.9.",
        rich_help_panel=OUTPUT,
    ),
]
Digits = Annotated[
    int | None,
    typer.Option(
        min=1, max=17, help="Significant digits of fills in text files.", rich_help_panel=OUTPUT
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Overwrite what is there.", rich_help_panel=OUTPUT)
]
Json = Annotated[bool, typer.Option("--json", help="Tell what came of it as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something fails.")]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html", help="Write a page about the result.", rich_help_panel=OUTPUT
    ),
]
