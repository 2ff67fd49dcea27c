"""NumPy and MATLAB files as they are written: the other variables survive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.io.arrays import ArrayCells, MatrixFile
from hirank.io.cells import whole_numbers
from hirank.io.errors import OutputError
from hirank.io.output import Replacement, Writer
from hirank.io.table import Table, TableFile

__all__ = ["MatWriter", "NpyWriter", "NpzWriter"]


class MatrixWriter(Writer):
    """What the writers of matrices share: the rows are collected and written at the end."""

    kind = "this kind of file"

    def __init__(self, output: Replacement, like: TableFile, digits: int | None) -> None:
        super().__init__(output, like, digits)
        self._parts: list[NDArray[Any]] = []

    def _write(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        if isinstance(table.cells, ArrayCells):
            matrix = _filled(table, table.cells.matrix, fills)
        else:
            self._numbers_only(table, self.kind)
            order = [table.numeric.index(name) for name in table.names]
            matrix = np.where(np.isnan(fills), table.numbers, fills)[:, order]
        if extra:
            added = np.column_stack(list(extra.values())).astype(_floating(matrix.dtype))
            matrix = np.hstack([matrix, added])
        self._parts.append(matrix)

    def _matrix(self) -> NDArray[Any]:
        if not self._parts:
            return np.empty((0, len(self._names())))
        kinds = {part.dtype for part in self._parts}
        # NumPy would forget the order of bytes of the input.
        return np.concatenate(self._parts, dtype=kinds.pop() if len(kinds) == 1 else None)

    def _variables(self, default: str) -> dict[str, Any]:
        """The table and the other variables of the input."""
        if isinstance(self.like, MatrixFile) and self.like.key is not None:
            return {**self.like.others, self.like.key: self._matrix()}
        return {default: self._matrix()}


class NpyWriter(MatrixWriter):
    """An .npy file."""

    kind = "an .npy file"

    def _finish(self) -> None:
        np.save(self._file, self._matrix(), allow_pickle=False)


class NpzWriter(MatrixWriter):
    """An .npz file."""

    kind = "an .npz file"

    def _finish(self) -> None:
        # Variables of a MATLAB file that NumPy could only pickle are left out.
        plain = {n: a for n, a in self._variables("X").items() if not np.asarray(a).dtype.hasobject}
        np.savez(self._file, **plain)


class MatWriter(MatrixWriter):
    """A MATLAB file of version 5."""

    kind = "a .mat file"

    def _finish(self) -> None:
        import scipy.io

        variables = self._variables("X")
        try:
            scipy.io.savemat(self._file, variables, long_field_names=True)
        except (TypeError, ValueError) as error:
            raise OutputError(
                f"{self.path}: SciPy can't write a variable of the input ({error}); write .csv"
            ) from error


def _floating(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "f" else np.dtype(float)


def _filled(table: Table, matrix: NDArray[Any], fills: Array) -> NDArray[Any]:
    """The matrix with its fills, of its own type if that can hold them."""
    columns = np.array([table.names.index(name) for name in table.numeric], dtype=int)
    rows, j = np.nonzero(~np.isnan(fills))
    values = fills[rows, j]
    out = np.array(matrix)
    if out.dtype.kind in "iu":
        limits = np.iinfo(out.dtype)
        inside = (values >= limits.min) & (values <= limits.max)
        if not (whole_numbers(values) & inside).all():
            out = out.astype(float)
    with np.errstate(over="ignore"):
        out[rows, columns[j]] = values
    return out
