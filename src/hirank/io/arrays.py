"""NumPy files: a matrix of numbers, whose columns have no names."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._integers import find_rounded, fit_integers
from hirank._typing import Array, PathLike
from hirank.exceptions import FileError, OutputError
from hirank.io.cells import Column, check_numbers
from hirank.io.errors import damaged, reading
from hirank.io.memory import CELL
from hirank.io.output import Writer
from hirank.io.table import Cells, ReadOptions, Table, TableFile, slices

_MAX_HEADER = 1 << 16  # bytes
_NAME = 256  # bytes of the name of a column in memory, in all places where it is
_REMEDY = "Write CSV or Parquet, whose columns have types of their own."


class ArrayCells(Cells):
    """Rows of a matrix."""

    def __init__(self, file: NpyFile, matrix: NDArray[Any], first_row: int) -> None:
        self.file, self.matrix, self.first_row = file, matrix, first_row

    def __len__(self) -> int:
        return len(self.matrix)

    def column(self, index: int) -> Sequence[Any]:
        return list(self.matrix[:, index])

    def dtype(self, index: int) -> np.dtype[Any]:
        return self.matrix.dtype

    def parse(self, columns: Sequence[int]) -> list[Column]:
        missing, whole = self.file.options.missing, self.matrix.dtype.kind in "iu"
        found = []
        for j in columns:
            values = np.array(self.matrix[:, j], dtype=float)
            values[missing.find(self.matrix[:, j])] = np.nan
            found.append(check_numbers(values, whole=whole))
        return found


class NpyFile(TableFile):
    """An .npy file, mapped into memory; see `open_table`."""

    format = "npy"

    def __init__(self, path: PathLike, options: ReadOptions) -> None:
        with reading(path), open(path, "rb") as stream:
            head, size = stream.read(_MAX_HEADER), os.fstat(stream.fileno()).st_size
        if not head.startswith(b"\x93NUMPY"):
            raise FileError(path, "Not an .npy file. Write it by numpy.save.")
        try:
            shape, dtype, start = _read_header(head)
        except Exception as error:  # a damaged file makes NumPy fail in many ways
            raise damaged(path, ".npy", error) from error
        if dtype.kind not in "iuf" or dtype.itemsize > 8 or len(shape) != 2 or not shape[1]:
            raise FileError(
                path,
                f"The array has shape {shape} and type {dtype}. Save a matrix of real numbers of "
                "at most 64 bits with a row for each sample (a vector x by x.reshape(-1, 1)).",
            )
        if math.prod(shape) * dtype.itemsize > size - start:
            raise FileError(
                path,
                f"The header declares {math.prod(shape)} numbers, more than the file contains. "
                "Write it again.",
            )
        options.memory.check(path, shape[1] * _NAME, "The names of the columns")
        try:
            self.matrix: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:
            raise damaged(path, ".npy", error) from error
        names = [f"column {j}" for j in range(1, shape[1] + 1)]
        super().__init__(path, names, options)

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        n, m = self.matrix.shape
        size = m * (CELL + self.matrix.dtype.itemsize)
        self.options.memory.check(self.path, min(n, rows or n) * size)
        for part in slices(len(self.matrix), rows):
            yield ArrayCells(self, self.matrix[part], part.start)


def _read_header(head: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Return the shape, the type and the position of the data from the first bytes of a file."""
    stream = io.BytesIO(head)
    version = np.lib.format.read_magic(stream)
    # Version 3 has the layout of version 2, and names of fields that may be any text.
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
    shape, _, dtype = (read or np.lib.format.read_array_header_2_0)(stream)
    return shape, dtype, stream.tell()


class NpyWriter(Writer):
    """Write an .npy file: the rows are collected and written at the end."""

    def __init__(self, path: PathLike, like: TableFile, **options: Any) -> None:
        super().__init__(path, like, **options)
        self._parts: list[NDArray[Any]] = []

    def _write(self, table: Table, filled: Array, extra: Mapping[str, Array]) -> None:
        if isinstance(table.cells, ArrayCells):
            matrix = self._fill(table, table.cells.matrix, filled)
        elif table.text:
            raise OutputError(
                self.path,
                f'An .npy file contains only numbers, but column "{table.text[0]}" is not numeric. '
                "Write CSV or Parquet.",
            )
        else:
            for name in table.numeric:
                self._check_exact(table, name, _REMEDY)
            order = [table.numeric.index(name) for name in table.names]
            matrix = np.where(np.isnan(filled), table.numbers, filled)[:, order]
        if extra:
            matrix = self._to_floats(matrix)
            added = np.column_stack(list(extra.values()))
            matrix = np.hstack([matrix, added.astype(matrix.dtype)])
        self._parts.append(matrix)

    def _fill(self, table: Table, matrix: NDArray[Any], filled: Array) -> NDArray[Any]:
        """Return the matrix with imputed values, of its own type if that can hold them."""
        columns = np.array([table.names.index(name) for name in table.numeric], dtype=int)
        rows, j = np.nonzero(~np.isnan(filled))
        values, out = filled[rows, j], np.array(matrix)
        if out.dtype.kind in "iu" and not fit_integers(values, out.dtype):
            out[rows, columns[j]] = 0  # a marker of missing values, which may have any size
            out = self._to_floats(out)
        with np.errstate(over="ignore"):
            out[rows, columns[j]] = values
        return out

    def _to_floats(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return a matrix of floats; raise OutputError if an integer would change."""
        if matrix.dtype.kind == "f":
            return matrix
        for name, column in zip(self.like.names, matrix.T, strict=True):
            self._refuse_rounded(column[find_rounded(column)], name, _REMEDY)
        return matrix.astype(float)

    def _finish(self) -> None:
        parts = self._parts or [np.empty((0, len(self._names())))]
        if len({part.dtype for part in parts}) > 1:
            parts = list(map(self._to_floats, parts))
        # Without a type, NumPy would drop the byte order of the input.
        matrix = np.concatenate(parts, dtype=parts[0].dtype)
        # To a real file NumPy writes in C, and an error (a full disk) would not state its reason.
        stream: Any = SimpleNamespace(write=self._file.write)
        np.save(stream, matrix, allow_pickle=False)
