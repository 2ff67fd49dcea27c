"""Parquet and Arrow files as they are written: other columns and metadata untouched."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from hirank._typing import Array
from hirank.io.cells import whole_numbers
from hirank.io.columnar import ArrowCells, ColumnarFile, arrow
from hirank.io.errors import OutputError
from hirank.io.output import Replacement, Writer
from hirank.io.table import Table, TableFile

__all__ = ["ArrowWriter", "ParquetWriter"]


class ColumnarWriter(Writer):
    """What the writers of Parquet and Arrow files share.

    The types of the columns are those of the first rows. Where later rows bring the first number
    that is not whole into a column of whole numbers, the file so far is written again.
    """

    def __init__(self, output: Replacement, like: TableFile, digits: int | None) -> None:
        super().__init__(output, like, digits)
        self.pa = arrow(output.path)
        self._schema: Any = None
        self._sink: Any = None

    def _write(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        pa = self.pa
        numeric = {name: j for j, name in enumerate(table.numeric)}
        columns = [
            self._numbers(table, i, numeric[name], fills[:, numeric[name]])
            if name in numeric
            else self._others(table, i)
            for i, name in enumerate(table.names)
        ]
        columns += [pa.array(values, from_pandas=True) for values in extra.values()]
        self._fit([column.type for column in columns])
        schema = self._schema
        columns = [
            column.cast(field.type, safe=False)
            for column, field in zip(columns, schema, strict=True)
        ]
        try:
            self._sink.write_table(pa.Table.from_arrays(columns, schema=schema))
        except pa.ArrowException as error:
            raise OutputError(f"{self.path}: pyarrow can't write this table ({error})") from error

    def _numbers(self, table: Table, index: int, j: int, fills: Array) -> Any:
        """A numeric column with its fills, of its own type if that can hold them."""
        pa, cells = self.pa, table.cells
        import pyarrow.compute as pc

        filled = ~np.isnan(fills)
        if not isinstance(cells, ArrowCells):
            return self._converted(table, index, j, fills)
        column = cells.data.column(index)
        if not filled.any():
            return column
        kind, dtype = column.type, cells.dtype(index)
        if dtype is None or (dtype.kind in "iu" and not _fits(fills[filled], dtype)):
            kind, dtype = pa.float64(), np.dtype(float)
        elif dtype.itemsize == 2 and dtype.kind == "f":
            kind, dtype = pa.float32(), np.dtype(np.float32)  # too coarse for what was computed
        values = np.where(filled, fills, 0).astype(dtype)
        return pc.if_else(pa.array(filled), pa.array(values, kind), column.cast(kind, safe=False))

    def _converted(self, table: Table, index: int, j: int, fills: Array) -> Any:
        """A numeric column that comes from another format."""
        values = np.where(np.isnan(fills), table.numbers[:, j], fills)
        missing = np.isnan(values)
        dtype = table.cells.dtype(index)
        if dtype is None:
            integral = table.names[index] in table.integral
            dtype = np.dtype(np.int64 if integral else np.float64)
        if dtype.kind in "iu":
            if (np.abs(table.numbers[:, j]) >= 2.0**53).any():
                return self._large(table, index, fills)
            if not _fits(values[~missing], dtype):
                dtype = np.dtype(float)
        return self.pa.array(np.where(missing, 0, values).astype(dtype), mask=missing)

    def _large(self, table: Table, index: int, fills: Array) -> Any:
        """Whole numbers that double precision would round."""
        known = ~np.isnan(table.numbers[:, table.numeric.index(table.names[index])])
        cells = table.cells.column(index)
        values: list[int | float | None] = [
            int(cell) if seen else (None if np.isnan(fill) else fill)
            for cell, seen, fill in zip(cells, known.tolist(), fills.tolist(), strict=True)
        ]
        if whole_numbers(fills[~np.isnan(fills)]).all():
            whole = [None if value is None else int(value) for value in values]
            with contextlib.suppress(OverflowError):
                return self.pa.array(whole, self.pa.int64())
        return self.pa.array([None if v is None else float(v) for v in values], self.pa.float64())

    def _others(self, table: Table, index: int) -> Any:
        if isinstance(table.cells, ArrowCells):
            return table.cells.data.column(index)
        texts = table.cells.texts(index)
        return self.pa.array([text or None for text in texts], self.pa.string())

    def _fit(self, types: list[Any]) -> None:
        """Have a sink whose columns can hold these types."""
        pa = self.pa
        if self._schema is None:
            self._schema = self._first_schema(types)
            self._sink = self._new_sink(self._file, self._schema)
            return
        wider = self._schema
        for i, (field, kind) in enumerate(zip(self._schema, types, strict=True)):
            if pa.types.is_integer(field.type) and pa.types.is_floating(kind):
                wider = wider.set(i, field.with_type(pa.float64()))
            elif pa.types.is_null(field.type) or (
                pa.types.is_floating(field.type)
                and pa.types.is_floating(kind)
                and kind.bit_width > field.type.bit_width
            ):
                wider = wider.set(i, field.with_type(kind))
        if wider is not self._schema:
            self._widen(wider)

    def _first_schema(self, types: list[Any]) -> Any:
        pa = self.pa
        if isinstance(self.like, ColumnarFile):
            schema = self.like.schema
            for i, (field, kind) in enumerate(zip(schema, types, strict=False)):
                if field.type != kind:
                    schema = schema.set(i, field.with_type(kind))
            for name, kind in zip(self._extra or (), types[len(schema) :], strict=True):
                schema = schema.append(pa.field(name, kind))
            return schema
        return pa.schema(list(zip(self._names(), types, strict=True)))

    def _widen(self, schema: Any) -> None:
        self._sink.close()
        stream, old = self._output.renew()
        try:
            assert old.file is not None
            old.file.seek(0)
            self._sink = self._new_sink(stream, schema)
            for batch in self._batches_of(old.file):
                part = self.pa.Table.from_batches([batch])
                columns = [
                    column.cast(field.type, safe=False)
                    for column, field in zip(part.columns, schema, strict=True)
                ]
                self._sink.write_table(self.pa.Table.from_arrays(columns, schema=schema))
        finally:
            old.discard()
        self._schema = schema

    def _finish(self) -> None:
        if self._schema is None:  # no rows at all
            pa = self.pa
            if isinstance(self.like, ColumnarFile):
                schema = self.like.schema
            else:
                schema = pa.schema([(name, pa.float64()) for name in self._names()])
            self._sink = self._new_sink(self._file, schema)
        self._release()

    def _release(self) -> None:
        if self._sink is not None:
            sink, self._sink = self._sink, None
            sink.close()

    def _new_sink(self, stream: Any, schema: Any) -> Any:
        raise NotImplementedError

    def _batches_of(self, stream: Any) -> Any:
        raise NotImplementedError


class ParquetWriter(ColumnarWriter):
    """Parquet, compressed by Snappy."""

    def _new_sink(self, stream: Any, schema: Any) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetWriter(stream, schema)

    def _batches_of(self, stream: Any) -> Any:
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(stream).iter_batches()


class ArrowWriter(ColumnarWriter):
    """The Arrow file format, which is Feather version 2."""

    def _new_sink(self, stream: Any, schema: Any) -> Any:
        import pyarrow.ipc

        return pyarrow.ipc.new_file(stream, schema)

    def _batches_of(self, stream: Any) -> Any:
        import pyarrow.ipc

        reader = pyarrow.ipc.open_file(stream)
        return map(reader.get_batch, range(reader.num_record_batches))


def _fits(values: Array, dtype: np.dtype[Any]) -> bool:
    """Whether these are whole numbers that the type can hold."""
    limits = np.iinfo(dtype)
    inside = (values >= limits.min) & (values <= limits.max)
    return bool((whole_numbers(values) & inside).all())
