"""Tables in files: read and written, complete or not at all.

To add a format, write a module with a `TableFile` and a `Writer`, and add it to `_FORMATS`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from typing import Any

from hirank._typing import PathLike
from hirank.exceptions import FileError, OutputError
from hirank.io.cells import Missing
from hirank.io.memory import MemoryLimit
from hirank.io.output import Writer, check_output, is_direct
from hirank.io.table import ReadOptions, Table, TableFile

__all__ = ["Table", "TableFile", "Writer", "create", "open_table"]

_TEXT = ("csv", "tsv", "txt", "dat")  # may be compressed
# Extension: module, reader, writer. Imported on demand, since some of the libraries load slowly.
_FORMATS = {
    **dict.fromkeys(_TEXT, ("text", "TextFile", "TextWriter")),
    **dict.fromkeys(("parquet", "pq"), ("columnar", "ParquetFile", "ParquetWriter")),
    **dict.fromkeys(("arrow", "feather", "ipc"), ("columnar", "ArrowFile", "ArrowWriter")),
    "npy": ("arrays", "NpyFile", "NpyWriter"),
    "xlsx": ("excel", "ExcelFile", "ExcelWriter"),
}


def open_table(
    path: PathLike,
    *,
    missing: Iterable[str | float] = (),
    numeric: Sequence[str] | None = None,
    text: Sequence[str] = (),
    delimiter: str | None = None,
    encoding: str = "utf-8",
    sheet: str | None = None,
    header: bool = True,
    max_memory: int | str | None = None,
) -> TableFile:
    r"""Open a table in a file, whose extension selects the format.

    Text (.csv, .tsv, .txt, .dat, each with .gz), Parquet (.parquet, .pq), Arrow (.arrow, .feather,
    .ipc), NumPy (.npy) and Excel (.xlsx). A column is numeric if all its cells that are not missing
    are finite numbers; the others pass through as they are, and so does a column of a text or Excel
    file without a name, which is nearly always a row number. Several columns without a name are
    called "column 3" and so on, by their position.

    Parameters
    ----------
    path : str or path
        "-" is a text table on standard input.
    missing : strings and numbers
        What marks a missing value in addition to an empty cell, NaN, null, NA, N/A and None, in any
        case; -200 also matches "-200.0".
    numeric : names, optional
        The columns that must be numeric, in the order of the numbers to be returned. By default
        they are detected.
    text : names
        Columns that are not numeric even if their cells are numbers (numbers of rows or people).
    delimiter : str, optional
        Of a text table; a space stands for any number of spaces. By default it is detected. A comma
        is the decimal mark where the delimiter is ";" and the cells require it.
    encoding : str
        Of a text table.
    sheet : str, optional
        Of an Excel file; the first by default.
    header : bool
        Whether the first row of a text table or Excel sheet contains the names of the columns. If
        not, they are called "column 1", "column 2", ..., as they always are in NumPy files.
    max_memory : int or str, optional
        Bytes, or a size such as "4G", that the table may take. By default half of the memory of the
        machine. A file that declares more is refused before it is read.

    Returns
    -------
    file : TableFile

    Raises
    ------
    FileError
        If the file cannot be read; the message states the remedy.

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
    known = None if numeric is None else tuple(dict.fromkeys(numeric))
    markers = Missing(missing)
    memory = MemoryLimit.parse(max_memory)
    options = ReadOptions(markers, known, tuple(text), delimiter, encoding, sheet, header, memory)
    file: TableFile = _find_format(path, is_output=False)[0](path, options)
    return file


def create(
    path: PathLike,
    like: TableFile,
    *,
    force: bool = False,
    digits: int | None = None,
    integers: Collection[str] = (),
) -> Writer:
    r"""Make a writer for the imputed table, a context manager; the extension selects the format.

    Observed cells are written as they were read; only missing numeric cells get a number. An
    integer that the format of the output would round is an error. The file appears under its name
    when it is complete: it is written to a temporary file in the same folder, which is removed
    after an error.

    Parameters
    ----------
    path : str or path
        "-" is standard output, as text.
    like : TableFile
        The file of the table: text keeps its delimiter, quotes, line ends and header, Parquet its
        metadata, Excel the name of the sheet and the values (in a new workbook).
    force : bool
        Overwrite an existing file, which may be the input.
    digits : int, optional
        Significant digits of the imputed numbers in text formats; by default as few as identify the
        number in single precision, eight or so.
    integers : names
        Columns whose imputed values are whole numbers, also in parts that are yet to come: so
        Parquet and Arrow files keep their type.

    Returns
    -------
    writer : Writer
        ``writer.write(table, filled, extra={})`` adds rows; see `open_table` for an example.

    Raises
    ------
    OutputExistsError
        If the file exists, and `force` is False.
    OutputError
        If the file cannot be written; the message states the remedy.

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
        raise ValueError(f"digits must be between 1 and 17; got {digits}")
    check_output(path, force=force)
    kind: type[Writer] = _find_format(path, is_output=True)[1]
    if is_direct(path) and not kind.writes_streams:
        problem = "This format cannot be written to a pipe or a device. Write to a file, or CSV."
        raise OutputError(path, problem)
    return kind(path, like, digits=digits, force=force, integers=integers)


def _find_format(path: PathLike, *, is_output: bool) -> tuple[Any, Any]:
    """Return the reader and the writer of a format."""
    name = os.fspath(path).lower()
    suffix = os.path.basename(name).removesuffix(".gz").rpartition(".")[2]
    is_known = suffix in _FORMATS and (suffix in _TEXT or not name.endswith(".gz"))
    if not is_known and not is_direct(path):
        if not is_output and not os.path.exists(path):
            raise FileError(path, "No such file. Check the name and the folder.")
        known = ", ".join(f".{extension}" for extension in _FORMATS)
        problem = f"Unknown file format. The known extensions are {known} (text also with .gz)."
        raise (OutputError if is_output else FileError)(path, problem)
    module, reader, writer = _FORMATS[suffix if is_known else "csv"]
    loaded = import_module(f"hirank.io.{module}")
    return getattr(loaded, reader), getattr(loaded, writer)
