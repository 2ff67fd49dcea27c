"""Tables in files: read, written, never left half written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module

from hirank.io.cells import Missing
from hirank.io.errors import FileError, OutputError, Path
from hirank.io.output import Replacement, Writer
from hirank.io.table import Options, Table, TableFile

__all__ = ["FileError", "OutputError", "Table", "TableFile", "Writer", "create", "open_table"]

_TEXT = ("csv", "tsv", "txt", "dat")
_FORMATS = dict.fromkeys(_TEXT, "text") | {
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "ipc",
    "feather": "ipc",
    "ipc": "ipc",
    "npy": "npy",
    "npz": "npz",
    "mat": "mat",
    "xlsx": "xlsx",
}
# Imported when needed: the libraries behind some of these take a while to load.
_READERS = {
    "text": ("text", "TextFile"),
    "parquet": ("columnar", "ParquetFile"),
    "ipc": ("columnar", "ArrowFile"),
    "npy": ("arrays", "NpyFile"),
    "npz": ("arrays", "NpzFile"),
    "mat": ("arrays", "MatFile"),
    "xlsx": ("excel", "ExcelFile"),
}
_WRITERS = {
    "text": ("text_output", "TextWriter"),
    "parquet": ("columnar_output", "ParquetWriter"),
    "ipc": ("columnar_output", "ArrowWriter"),
    "npy": ("arrays_output", "NpyWriter"),
    "npz": ("arrays_output", "NpzWriter"),
    "mat": ("arrays_output", "MatWriter"),
    "xlsx": ("excel_output", "ExcelWriter"),
}


def open_table(
    path: Path,
    *,
    missing: Iterable[str | float] = (),
    numeric: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    key: str | None = None,
    header: bool = True,
) -> TableFile:
    r"""A table in a file, of a format that its extension tells.

    Text (.csv, .tsv, .txt, .dat, each with .gz), Parquet (.parquet, .pq), Arrow (.arrow, .feather,
    .ipc), NumPy (.npy, .npz), MATLAB (.mat) and Excel (.xlsx). A column is numeric if all its cells
    that are not missing are finite numbers; the others pass through as they are, and so does a
    column of a text or Excel file without a name, which is nearly always a row number. Several
    columns without a name are called "column 3" and so on, by their position.

    Parameters
    ----------
    path : str or path
        "-" is a text table on standard input.
    missing : strings and numbers
        What stands for a missing value besides an empty cell, NaN, null, NA, N/A and None, in any
        case; -200 also matches "-200.0".
    numeric : names, optional
        The columns that must be numeric, in the order in which their numbers are wanted. By default
        they are found.
    text : names
        Columns that are not numeric, whatever their cells say (numbers of rows or people).
    delimiter : str, optional
        Of a text table; a space stands for any number of spaces. By default it is found. A comma is
        taken as the decimal sign where the delimiter is ";" and the cells say so.
    encoding : str
        Of a text table.
    sheet : str, optional
        Of an Excel file; the first by default.
    key : str, optional
        The array in an .npz or .mat file, where there are several tables.
    header : bool
        Whether the first row of a text table or Excel sheet gives the names of the columns. If not,
        they are called "column 1", "column 2", ..., as they always are in NumPy and MATLAB files.

    Returns
    -------
    file : TableFile

    Raises
    ------
    FileError
        With a sentence that says what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hirank.io import create, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weather.csv")
    ...     _ = path.write_text('day,"warm",rain\n"Mon",12.50,3\n"Tue",,-200\n')
    ...     with open_table(path, missing=["-200"]) as file:
    ...         table = file.read()
    ...         with create(path.with_name("filled.csv"), like=file) as writer:
    ...             writer.write(table, [[0.0, 0.0], [11.25, 4.0]])
    ...     print(path.with_name("filled.csv").read_text())
    day,"warm",rain
    "Mon",12.50,3
    "Tue",11.25,4
    <BLANKLINE>
    """
    options = Options(
        Missing(missing),
        None if numeric is None else tuple(dict.fromkeys(numeric)),
        tuple(text),
        delimiter,
        encoding,
        sheet,
        key,
        header,
    )
    module, name = _READERS[_format(path)]
    file: TableFile = getattr(import_module(f"hirank.io.{module}"), name)(path, options)
    return file


def create(
    path: Path, like: TableFile, *, force: bool = False, digits: int | None = None
) -> Writer:
    r"""A writer for the completed table, of a format that the extension tells; a context manager.

    Cells that were observed are written as they stood; only missing numeric cells get a number. The
    file appears under its name when it is complete: it is written to a temporary file in the same
    folder, which an error removes.

    Parameters
    ----------
    path : str or path
        "-" is standard output, as text.
    like : TableFile
        The file the table comes from: text keeps its delimiter, quotes, line ends and header, Excel
        its styles and other sheets, Parquet its metadata, .npz and .mat their other variables.
    force : bool
        Replace a file that is there already (perhaps the input).
    digits : int, optional
        Significant digits of the numbers filled in, in text formats; by default the fewest that
        give the number in single precision, eight or so.

    Returns
    -------
    writer : Writer
        ``writer.write(table, filled, extra={})`` adds rows; see `open_table` for an example.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hirank.io import create, open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "t.csv")
    ...     _ = path.write_text("x;y\n1,5;\n;2,5\n")
    ...     with open_table(path) as file, create(path, like=file, force=True) as writer:
    ...         for part in file.chunks(1):
    ...             writer.write(part, [[0.1, 0.2]])
    ...     print(path.read_text())
    x;y
    1,5;0,2
    0,1;2,5
    <BLANKLINE>
    """
    if digits is not None and not 1 <= digits <= 17:
        raise ValueError(f"digits must be 1 to 17, got {digits}")
    kind = _format(path, output=True)
    output = Replacement(path, like.path, force=force)
    if output.direct and kind != "text":
        raise OutputError(f"{path}: only text can be written to a pipe or a device; name a file")
    module, name = _WRITERS[kind]
    writer: Writer = getattr(import_module(f"hirank.io.{module}"), name)(output, like, digits)
    return writer


def _format(path: Path, *, output: bool = False) -> str:
    name = os.fspath(path)
    suffix = os.path.basename(name).lower().removesuffix(".gz").rpartition(".")[2]
    compressed = name.lower().endswith(".gz")
    special = name == "-" or (os.path.exists(name) and not os.path.isfile(name))
    if suffix in _FORMATS and not (compressed and suffix not in _TEXT):
        return _FORMATS[suffix]
    if special:
        return "text"
    if not output and not os.path.exists(name):
        raise FileError(f"{path}: there is no such file; check the name and the folder")
    error = OutputError if output else FileError
    raise error(
        f"{path}: unknown kind of file; known are .csv, .tsv and .txt (also with .gz), .parquet, "
        ".arrow, .feather, .npy, .npz, .mat and .xlsx"
    )
