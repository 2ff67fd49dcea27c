"""Parquet and Arrow files, by pyarrow."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hirank.io.cells import Parsed
from hirank.io.errors import FileError, Path, missing_package, reading
from hirank.io.table import Cells, Options, TableFile

__all__ = ["ArrowCells", "ArrowFile", "ColumnarFile", "ParquetFile", "arrow"]

_PANDAS_INDEX = re.compile(r"__index_level_[0-9]+__")


def arrow(path: Path) -> Any:
    """The module pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        missing_package(path, "pyarrow", error)
    return pyarrow


class ArrowCells(Cells):
    """Rows as a pyarrow table."""

    def __init__(self, file: ColumnarFile, data: Any, first_row: int) -> None:
        self.file = file
        self.data = data
        self.first_row = first_row

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def column(self, index: int) -> Sequence[Any]:
        cells: list[Any] = self.data.column(index).to_pylist()
        return cells

    def texts(self, index: int) -> list[str]:
        column = self.data.column(index)
        dtype = self.dtype(index)
        if dtype is not None and dtype.kind == "f":
            values = column.to_numpy().astype(dtype)
            return [
                "" if np.isnan(v) else t for v, t in zip(values, values.astype("U32"), strict=True)
            ]
        return ["" if cell is None else str(cell) for cell in column.to_pylist()]

    def dtype(self, index: int) -> np.dtype[Any] | None:
        types = arrow(self.file.path).types
        kind = self.data.schema.field(index).type
        if types.is_integer(kind) or types.is_floating(kind):
            return np.dtype(kind.to_pandas_dtype())
        return None

    def parse(self, columns: Sequence[int]) -> list[Parsed]:
        return [self._parse(index) for index in columns]

    def _parse(self, index: int) -> Parsed:
        pa, column = arrow(self.file.path), self.data.column(index)
        if pa.types.is_null(column.type):
            return Parsed(np.full(len(self), np.nan), 0)
        dtype = self.dtype(index)
        if dtype is None:
            valid = len(self) - column.null_count
            first = next((i for i, cell in enumerate(column) if cell.is_valid), 0)
            # One of them stands for all: it is the type that is no number.
            strays = [(first, f"{column[first]} ({column.type})")] if valid else []
            return Parsed(np.full(len(self), np.nan), valid, strays, valid)
        # Whole numbers of 64 bits are rounded to double precision here, and kept in the output.
        values = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=float)
        self.file.options.missing.remove(values)
        infinite = np.flatnonzero(np.isinf(values))
        observed = int(np.count_nonzero(~np.isnan(values)))
        strays = [(int(i), str(values[i])) for i in infinite[:3]]
        whole = dtype.kind in "iu" and observed > 0
        return Parsed(values, observed, strays, len(infinite), whole)


class ColumnarFile(TableFile):
    """What Parquet and Arrow files share."""

    def __init__(self, path: Path, options: Options) -> None:
        self.pa = arrow(path)
        with self._guard(path):
            self.schema = self._read_schema(path)
            names = self.schema.names
        super().__init__(path, names, options)

    def _guard(self, path: Path) -> Any:
        return _Guard(path, self.format, self.pa)

    def _read_schema(self, path: Path) -> Any:
        raise NotImplementedError

    def _parts(self, rows: int) -> Iterator[Any]:
        """The record batches of the file."""
        raise NotImplementedError

    def _never_numeric(self) -> Iterable[str]:
        index: list[Any] = []
        with contextlib.suppress(KeyError, ValueError, TypeError):  # not written by pandas
            index = list(json.loads((self.schema.metadata or {})[b"pandas"])["index_columns"])
        names = {name for name in index if isinstance(name, str)}
        return [name for name in self.names if name in names or _PANDAS_INDEX.fullmatch(name)]

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        table, first, waiting, size = self.pa.Table.from_batches, 0, list[Any](), 0
        table = partial(table, schema=self.schema)
        with self._guard(self.path):
            for batch in self._parts(rows or 65_536):
                batch.validate(full=True)  # a damaged file may hold offsets beyond its end
                start = 0
                while rows is not None and size + batch.num_rows - start >= rows:
                    waiting.append(batch.slice(start, rows - size))
                    start += rows - size
                    yield ArrowCells(self, table(waiting), first)
                    first, waiting, size = first + rows, [], 0
                if start < batch.num_rows:
                    waiting.append(batch.slice(start))
                    size += batch.num_rows - start
            if waiting or rows is None:
                yield ArrowCells(self, table(waiting), first)


class _Guard:
    """Turns what pyarrow raises for damaged files into a `FileError`."""

    def __init__(self, path: Path, kind: str, pa: Any) -> None:
        self.path, self.kind, self.pa = path, kind, pa

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        if isinstance(error, FileError) or error is None:
            return
        if isinstance(error, OSError) and error.errno:
            with reading(self.path):
                raise error
        # pyarrow answers with many kinds of error to bytes it does not understand.
        if isinstance(
            error, (self.pa.ArrowException, OSError, ValueError, KeyError, OverflowError)
        ):
            first = (str(error).splitlines() or [""])[0][:200]
            raise FileError(
                f"{self.path}: not a {self.kind} file, or a damaged one ({first}); write it again"
            ) from error


class ParquetFile(ColumnarFile):
    """A Parquet file; see `open_table`."""

    format = "parquet"

    def _read_schema(self, path: Path) -> Any:
        import pyarrow.parquet

        with self._opened(path) as stream:
            return pyarrow.parquet.ParquetFile(stream).schema_arrow

    def _opened(self, path: Path) -> Any:
        with reading(path):
            return open(path, "rb")

    def _parts(self, rows: int) -> Iterator[Any]:
        import pyarrow.parquet

        with self._opened(self.path) as stream:
            file = pyarrow.parquet.ParquetFile(stream)
            yield from file.iter_batches(batch_size=min(rows, 65_536))


class ArrowFile(ColumnarFile):
    """An Arrow file or stream (Feather version 2 is the same); see `open_table`."""

    format = "arrow"

    def _read_schema(self, path: Path) -> Any:
        with reading(path), open(path, "rb") as stream:
            return self._reader(stream).schema

    def _parts(self, rows: int) -> Iterator[Any]:
        with reading(self.path), open(self.path, "rb") as stream:
            reader = self._reader(stream)
            if hasattr(reader, "num_record_batches"):
                yield from map(reader.get_batch, range(reader.num_record_batches))
            else:
                yield from reader

    def _reader(self, stream: Any) -> Any:
        import pyarrow.ipc

        start = stream.read(6)
        stream.seek(0)
        if not start:
            raise FileError(f"{stream.name}: the file is empty; write it again")
        opener = pyarrow.ipc.open_file if start == b"ARROW1" else pyarrow.ipc.open_stream
        return opener(stream)
