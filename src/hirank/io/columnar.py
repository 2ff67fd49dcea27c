"""Parquet and Arrow files, read and written by pyarrow."""

from __future__ import annotations

import json
import struct
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from hirank._integers import fit_integers
from hirank._typing import Array, PathLike
from hirank.exceptions import FileError, OutputError
from hirank.io.arrow_sizes import batch_sizes
from hirank.io.cells import Column, check_numbers
from hirank.io.errors import damaged, reading, require
from hirank.io.memory import CELL
from hirank.io.output import Writer
from hirank.io.table import Cells, ReadOptions, Table, TableFile

_MIN_BATCH, _MAX_BATCH = 64, 65_536  # rows that are decoded at once
_WIDTH = 8  # bytes of a value whose type has no fixed length
_REMEDY = (
    "Impute whole numbers only (--integers '{name}' when the model is fitted), leave the column as "
    "it is (--id '{name}'), or write CSV."
)


class ArrowCells(Cells):
    """Rows as a pyarrow table."""

    def __init__(self, file: ColumnarFile, data: Any, first_row: int) -> None:
        self.file, self.data, self.first_row = file, data, first_row

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def column(self, index: int) -> Sequence[Any]:
        column, dtype = self.data.column(index), self.dtype(index)
        # As numbers of their own type: single precision has fewer digits as text.
        single = dtype is not None and dtype.kind == "f" and dtype.itemsize < 8
        return list(column.to_numpy()) if single else column.to_pylist()

    def dtype(self, index: int) -> np.dtype[Any] | None:
        types, kind = self.file.pa.types, self.data.schema.field(index).type
        if types.is_integer(kind) or types.is_floating(kind):
            return np.dtype(kind.to_pandas_dtype())
        return None

    def parse(self, columns: Sequence[int]) -> list[Column]:
        return [self._parse(index) for index in columns]

    def _parse(self, index: int) -> Column:
        pa, column, dtype = self.file.pa, self.data.column(index), self.dtype(index)
        if dtype is None:
            n_valid = len(self) - column.null_count
            first = next((i for i, cell in enumerate(column) if cell.is_valid), 0)
            # The type is invalid, so one cell stands for all.
            invalid = [(first, f"{column[first]} ({column.type})")] if n_valid else []
            return Column(np.full(len(self), np.nan), n_valid, invalid, n_valid)
        # Integers of 64 bits are rounded to double precision here, but not in the output.
        values = np.array(column.cast(pa.float64(), safe=False).to_numpy(), dtype=float)
        missing = self.file.options.missing
        if missing.numbers:
            own = column.drop_null().to_numpy()
            values[np.flatnonzero(column.is_valid())[missing.find(own)]] = np.nan
        return check_numbers(values, whole=dtype.kind in "iu")


class ColumnarFile(TableFile):
    """What Parquet and Arrow files share."""

    def __init__(self, path: PathLike, options: ReadOptions) -> None:
        self.pa, self.options = require("pyarrow", path), options
        with self._reading(path) as stream:
            self.schema = self._open(stream)[0]
        index: list[Any] = []
        with suppress(KeyError, ValueError, TypeError):  # not written by pandas
            index = list(json.loads((self.schema.metadata or {})[b"pandas"])["index_columns"])
        names = self.schema.names
        text = [name for name in names if name in index or name.startswith("__index_level_")]
        super().__init__(path, names, options, text)

    @abstractmethod
    def _open(self, stream: Any) -> tuple[Any, Iterator[Any]]:
        """Return the schema of an open file, and its record batches."""

    @abstractmethod
    def _measure(self, stream: Any, *, whole: bool) -> int:
        """Return the bytes of all rows, or of those decoded at once, as the file declares."""

    @contextmanager
    def _reading(self, path: PathLike) -> Iterator[Any]:
        """Open the file, and turn the errors of pyarrow for damaged files into `FileError`."""
        try:
            with open(path, "rb") as stream:
                yield stream
        except FileError:
            raise
        except (
            self.pa.ArrowException,
            OSError,
            ValueError,
            KeyError,
            OverflowError,
            struct.error,
        ) as error:
            with reading(path):
                if isinstance(error, OSError) and error.errno:
                    raise
            raise damaged(path, f".{self.format}", error) from error

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        first, size, waiting = 0, 0, list[Any]()
        memory, total = self.options.memory, 0
        with self._reading(self.path) as stream:
            memory.check(self.path, self._measure(stream, whole=rows is None))
            stream.seek(0)
            for batch in self._open(stream)[1]:
                total = total * (rows is None) + batch.nbytes
                memory.check(self.path, total)
                batch.validate(full=True)  # a damaged file may have offsets beyond its end
                start = 0
                while rows is not None and size + batch.num_rows - start >= rows:
                    waiting.append(batch.slice(start, rows - size))
                    start += rows - size
                    yield ArrowCells(self, self.pa.Table.from_batches(waiting, self.schema), first)
                    first, size, waiting = first + rows, 0, []
                if start < batch.num_rows:
                    waiting.append(batch.slice(start))
                    size += batch.num_rows - start
            if waiting or rows is None:
                yield ArrowCells(self, self.pa.Table.from_batches(waiting, self.schema), first)


class ParquetFile(ColumnarFile):
    """A Parquet file; see `open_table`."""

    format = "parquet"

    def _open(self, stream: Any) -> tuple[Any, Iterator[Any]]:
        file = require("pyarrow.parquet", self.format).ParquetFile(stream)
        return file.schema_arrow, file.iter_batches(self._batch_rows(file.metadata))

    def _batch_rows(self, metadata: Any) -> int:
        """Return how many rows to decode at once.

        A text may be stored once and occur in every row, so few bytes of a file may become many.
        """
        texts = [
            chunk.total_uncompressed_size
            for chunk in _chunks(metadata)
            if chunk.physical_type == "BYTE_ARRAY"
        ]
        rows = self.options.memory.size // (4 * max(texts, default=1))
        return max(_MIN_BATCH, min(_MAX_BATCH, rows))

    def _measure(self, stream: Any, *, whole: bool) -> int:
        if not whole:
            return 0  # `_batch_rows` limits them
        metadata = require("pyarrow.parquet", self.format).ParquetFile(stream).metadata
        widths = [metadata.schema.column(j).length or _WIDTH for j in range(metadata.num_columns)]
        return sum(
            chunk.num_values * (CELL + widths[k % len(widths)]) + chunk.total_uncompressed_size
            for k, chunk in enumerate(_chunks(metadata))
        )


def _chunks(metadata: Any) -> Iterator[Any]:
    """Yield the columns of all row groups of a Parquet file."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        yield from (group.column(j) for j in range(group.num_columns))


class ArrowFile(ColumnarFile):
    """An Arrow file or stream (Feather version 2 is the same); see `open_table`."""

    format = "arrow"

    def _open(self, stream: Any) -> tuple[Any, Iterator[Any]]:
        ipc = require("pyarrow.ipc", self.format)
        if stream.peek(6)[:6] != b"ARROW1":
            reader = ipc.open_stream(stream)
            return reader.schema, iter(reader)
        reader = ipc.open_file(stream)
        return reader.schema, map(reader.get_batch, range(reader.num_record_batches))

    def _measure(self, stream: Any, *, whole: bool) -> int:
        per_row = CELL * len(self.names)
        sizes = (rows * per_row + size for rows, size in batch_sizes(stream))
        return sum(sizes) if whole else max(sizes, default=0)


class ColumnarWriter(Writer):
    """What the writers of Parquet and Arrow files share: other columns and metadata are kept.

    The types are decided before the first row is written. An integer column stays one if its
    imputed values are whole numbers, or if it is known to have no missing values. When a table is
    written in parts, the values to come are unknown: all others become double precision, except
    `integers`. It is an error if that would change an observed value.
    """

    def __init__(self, path: PathLike, like: TableFile, **options: Any) -> None:
        super().__init__(path, like, **options)
        self.pa = require("pyarrow", path)
        self._schema: Any = None
        self._sink: Any = None

    @abstractmethod
    def _open_sink(self, stream: Any, schema: Any) -> Any:
        """Return a pyarrow writer."""

    def _write(self, table: Table, filled: Array, extra: Mapping[str, Array]) -> None:
        pa, width = self.pa, len(table.names)
        if self._sink is None:
            types = [self._type(table, i, filled) for i in range(width)]
            self._start([*types, *(pa.float64() for _ in extra)])
        columns = [self._column(table, i, filled) for i in range(width)]
        columns += [pa.array(values, from_pandas=True) for values in extra.values()]
        try:
            self._sink.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        except pa.ArrowException as error:
            raise OutputError(self.path, f"pyarrow cannot write this table ({error}).") from error

    def _type(self, table: Table, index: int, filled: Array) -> Any:
        """Return the type of the input if it can hold the imputed values, or a wider one."""
        pa, cells, name = self.pa, table.cells, table.names[index]
        if name not in table.numeric:
            return cells.data.column(index).type if isinstance(cells, ArrowCells) else pa.string()
        dtype = cells.dtype(index)
        if dtype is None:  # a text or Excel file, or a column of nulls
            whole = table.is_whole and name in table.types.integral
            dtype = np.dtype(np.int64 if whole else np.float64)
        if dtype.kind == "f":  # half precision is too coarse for imputed values
            return pa.float32() if dtype.itemsize < 8 else pa.float64()
        # Double precision holds all smaller integers, and also imputed values out of their range.
        keeps = name in table.types.complete or (name in self.integers and dtype.itemsize == 8)
        if table.is_whole:
            j = table.numeric.index(name)
            keeps = fit_integers(filled[~np.isnan(filled[:, j]), j], dtype)
            if cells.dtype(index) is None:  # a number of a text file may exceed 64 bits
                keeps = keeps and not (np.abs(table.numbers[:, j]) >= 2.0**63).any()
        return pa.from_numpy_dtype(dtype) if keeps else pa.float64()

    def _column(self, table: Table, index: int, filled: Array) -> Any:
        """Return a column with its imputed values, in the type of the schema."""
        pa, cells, kind = self.pa, table.cells, self._schema.field(index).type
        if table.names[index] not in table.numeric:
            if isinstance(cells, ArrowCells):
                return cells.data.column(index)
            return pa.array([text or None for text in cells.texts(index)], kind)
        name = table.names[index]
        if pa.types.is_floating(kind):
            self._check_exact(table, name, _REMEDY.format(name=name))
        j = table.numeric.index(name)
        known, imputed = ~np.isnan(table.numbers[:, j]), ~np.isnan(filled[:, j])
        own = np.dtype(kind.to_pandas_dtype())
        if own.kind in "iu" and not fit_integers(filled[imputed, j], own):
            problem = f'A value imputed in column "{name}" does not fit the type {kind}.'
            raise OutputError(self.path, f"{problem} Fit the model with --bounds.")
        if isinstance(cells, ArrowCells):
            values = pa.array(np.where(imputed, filled[:, j], 0).astype(own))
            column = cells.data.column(index).cast(kind, safe=False)
            return require("pyarrow.compute", self.path).if_else(pa.array(imputed), values, column)
        values = np.where(known, table.numbers[:, j], filled[:, j])
        if own.kind in "iu":  # of the cells, since double precision may round them
            values = np.where(known, np.array(cells.column(index), dtype=object), values)
            values = [None if value != value else int(value) for value in values]
        return pa.array(values, kind, from_pandas=True)

    def _start(self, types: Sequence[Any]) -> None:
        pa, like = self.pa, self.like
        fields = [pa.field(name, kind) for name, kind in zip(self._names(), types, strict=True)]
        schema = pa.schema(fields)
        if isinstance(like, ColumnarFile):
            old = [field.with_type(kind) for field, kind in zip(like.schema, types, strict=False)]
            schema = pa.schema([*old, *fields[len(old) :]], like.schema.metadata)
        self._schema = schema
        self._sink = self._stack.enter_context(self._open_sink(self._file, schema))

    def _finish(self) -> None:
        if self._sink is None:  # no rows at all
            like = self.like
            types = like.schema.types if isinstance(like, ColumnarFile) else []
            self._start([*types, *(self.pa.float64() for _ in self._names()[len(types) :])])


class ParquetWriter(ColumnarWriter):
    """Write Parquet, compressed by Snappy."""

    def _open_sink(self, stream: Any, schema: Any) -> Any:
        return require("pyarrow.parquet", self.path).ParquetWriter(stream, schema)


class ArrowWriter(ColumnarWriter):
    """Write the Arrow file format, which is Feather version 2."""

    def _open_sink(self, stream: Any, schema: Any) -> Any:
        return require("pyarrow.ipc", self.path).new_file(stream, schema)
