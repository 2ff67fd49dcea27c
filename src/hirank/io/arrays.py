"""NumPy and MATLAB files: a matrix of numbers, its columns without names."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hirank.io.cells import Parsed
from hirank.io.errors import FileError, Path, reading
from hirank.io.matlab import check
from hirank.io.table import Cells, Options, TableFile

__all__ = ["ArrayCells", "MatFile", "MatrixFile", "NpyFile", "NpzFile"]


class ArrayCells(Cells):
    """Rows of a matrix."""

    def __init__(self, file: MatrixFile, matrix: NDArray[Any], first_row: int) -> None:
        self.file = file
        self.matrix = matrix
        self.first_row = first_row

    def __len__(self) -> int:
        return len(self.matrix)

    def column(self, index: int) -> Sequence[Any]:
        return list(self.matrix[:, index])

    def texts(self, index: int) -> list[str]:
        values = self.matrix[:, index]
        texts: list[str] = values.astype("U32").tolist()
        return ["" if missing else t for t, missing in zip(texts, np.isnan(values), strict=True)]

    def dtype(self, index: int) -> np.dtype[Any]:
        return self.matrix.dtype

    def parse(self, columns: Sequence[int]) -> list[Parsed]:
        return [self._parse(index) for index in columns]

    def _parse(self, index: int) -> Parsed:
        values = np.array(self.matrix[:, index], dtype=float)
        self.file.options.missing.remove(values)
        infinite = np.flatnonzero(np.isinf(values))
        observed = int(np.count_nonzero(~np.isnan(values)))
        strays = [(int(i), str(values[i])) for i in infinite[:3]]
        whole = self.matrix.dtype.kind in "iu" and observed > 0
        return Parsed(values, observed, strays, len(infinite), whole)


class MatrixFile(TableFile):
    """What the files with matrices share.

    Attributes
    ----------
    key : str or None
        The variable that holds the table, where the file has variables.
    others : mapping
        The other variables.
    """

    key: str | None = None
    others: Mapping[str, Any] = {}

    def __init__(self, path: Path, options: Options) -> None:
        with reading(path):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of SciPy, about names that come twice
                    self.matrix = self._load(path, options)
            except (FileError, FileNotFoundError, IsADirectoryError, PermissionError):
                raise
            except Exception as error:
                # A damaged file makes NumPy and SciPy fail in every way there is.
                reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
                raise FileError(
                    f"{path}: not a .{self.format} file, or a damaged one ({reason}); "
                    "write it again"
                ) from error
        problem = _problem(self.matrix)
        if problem:
            raise FileError(f"{path}: {problem}")
        names = [f"column {j}" for j in range(1, self.matrix.shape[1] + 1)]
        super().__init__(path, names, options)

    def _load(self, path: Path, options: Options) -> NDArray[Any]:
        raise NotImplementedError

    def _choose(self, path: Path, variables: Mapping[str, Any], key: str | None) -> NDArray[Any]:
        """The variable that is the table."""
        shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in variables.items()) or "none"
        if key is not None:
            if key not in variables:
                raise FileError(f'{path}: no variable "{key}"; there are: {shapes}')
        else:
            usable = [name for name, a in variables.items() if not _problem(a)]
            # MATLAB keeps single numbers and vectors as matrices too; a table is wider than that.
            found = [name for name in usable if min(variables[name].shape) > 1] or usable
            # Nor is it the small matrix beside a larger array of more dimensions.
            largest = max((a.size for a in map(np.asarray, variables.values())), default=0)
            if len(found) != 1 or variables[found[0]].size < largest:
                raise FileError(
                    f"{path}: {'several arrays' if found else 'no matrix'} of numbers; "
                    f"name the one to complete by its key: {shapes}"
                )
            key = found[0]
        self.key = key
        self.others = {name: a for name, a in variables.items() if name != key}
        matrix: NDArray[Any] = variables[key]
        return matrix

    def _batches(self, rows: int | None) -> Iterator[Cells]:
        n = len(self.matrix)
        step = rows or max(n, 1)
        for start in range(0, max(n, 1), step):
            yield ArrayCells(self, self.matrix[start : start + step], start)


class NpyFile(MatrixFile):
    """An .npy file, mapped into memory; see `open_table`."""

    format = "npy"

    def _load(self, path: Path, options: Options) -> NDArray[Any]:
        with open(path, "rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                raise FileError(f"{path}: not a .npy file; write it by numpy.save")
        matrix: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return matrix


class NpzFile(MatrixFile):
    """An .npz file; see `open_table`."""

    format = "npz"

    def _load(self, path: Path, options: Options) -> NDArray[Any]:
        with open(path, "rb") as stream:
            if stream.read(2) != b"PK":
                raise FileError(f"{path}: not a .npz file; write it by numpy.savez")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                return self._choose(path, dict(file), options.key)


class MatFile(MatrixFile):
    """A MATLAB file, version 4 to 7.2; see `open_table`."""

    format = "mat"

    def _load(self, path: Path, options: Options) -> NDArray[Any]:
        import scipy.io

        with open(path, "rb") as stream:
            data = stream.read()
        start = data[:128]
        if b"MATLAB 7.3" in start or start.startswith(b"\x89HDF"):
            raise FileError(f"{path}: a MATLAB file of version 7.3; save it by save(..., '-v7')")
        if not start:
            raise FileError(f"{path}: the file is empty; write it again")
        check(data)
        variables = scipy.io.loadmat(io.BytesIO(data))
        variables = {name: a for name, a in variables.items() if not name.startswith("__")}
        return self._choose(path, variables, options.key)


def _problem(array: Any) -> str:
    """Why this is no table of numbers, if it is not."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        return "no numbers; save a matrix of real numbers"
    if array.ndim != 2:
        return (
            f"an array of {array.ndim} dimensions; save a matrix, a row for each sample "
            "(a vector x by x.reshape(-1, 1))"
        )
    return "" if array.shape[1] else "a matrix without columns"
