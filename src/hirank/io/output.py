"""Writing a table: the file appears under its name when it is complete."""

from __future__ import annotations

import errno
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, BinaryIO, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from hirank._atomic import replace_file
from hirank._integers import EXACT, find_rounded
from hirank._typing import Array, PathLike
from hirank.exceptions import OutputError, OutputExistsError
from hirank.io.cells import parse_integer
from hirank.io.errors import writing
from hirank.io.table import Table, TableFile


def is_direct(path: PathLike) -> bool:
    """Return whether this is standard output ("-"), a device or a pipe, written at once."""
    return os.fspath(path) == "-" or (os.path.exists(path) and not os.path.isfile(path))


def check_output(path: PathLike, *, force: bool) -> None:
    """Raise an error if `path` is a folder, or a file that may not be overwritten."""
    if os.path.isdir(path):
        raise OutputError(path, "This is a folder. Add a file name.")
    if not force and os.path.isfile(path):
        raise OutputExistsError(path)


@contextmanager
def _open_output(path: PathLike, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file by `replace_file`, or standard output, a device or a pipe directly."""
    if os.fspath(path) == "-":
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        yield cast("BinaryIO", sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif is_direct(path):
        with open(path, "wb") as file:
            yield file
    else:
        try:
            with replace_file(path, overwrite=force) as file:
                yield file
        except FileExistsError as error:
            remedy = "Another process created it in the meantime. Pass --force to overwrite it."
            raise OutputExistsError(path, remedy) from error


class Writer(ABC):
    """Write an imputed table part by part; a context manager made by `create`.

    The file is left as it was unless the ``with`` block ends without an error.
    """

    writes_streams: ClassVar[bool] = False  # whether the format can be written to a pipe
    _file: BinaryIO

    def __init__(
        self,
        path: PathLike,
        like: TableFile,
        *,
        digits: int | None = None,
        force: bool = False,
        integers: Collection[str] = (),
    ) -> None:
        self.path, self.like, self.digits, self.integers = path, like, digits, integers
        self._force, self._is_open = force, False
        self._stack = ExitStack()  # the file, and what is between the writer and the file
        self._extra: tuple[str, ...] | None = None

    def write(self, table: Table, filled: Array, extra: Mapping[str, Array] | None = None) -> None:
        """Add rows.

        Parameters
        ----------
        table : Table
            As it was read.
        filled : (n, v)
            The numbers for the cells that are missing; NaN leaves a cell missing. Cells that are
            not missing are written as they are in `table`.
        extra : mapping of name to (n,), optional
            Columns to append, the same in every call.
        """
        if not self._is_open:
            raise RuntimeError("a writer must be used in a with block")
        filled = np.asarray(filled, dtype=float)
        if filled.shape != table.numbers.shape:
            raise ValueError(f"filled must have shape {table.numbers.shape}; got {filled.shape}")
        missing = np.isnan(table.numbers)
        if np.isinf(filled[missing]).any():
            raise ValueError("filled must be finite or NaN; got infinite values")
        columns = {name: np.asarray(a, dtype=float) for name, a in (extra or {}).items()}
        taken = [name for name in columns if name in table.names]
        if taken:
            raise OutputError(self.path, f'The table already has a column "{taken[0]}". Rename it.')
        if self._extra is not None and self._extra != tuple(columns):
            raise ValueError(f"extra columns must be {list(self._extra)}; got {list(columns)}")
        self._extra = tuple(columns)
        with writing(self.path):
            self._write(table, np.where(missing, filled, np.nan), columns)

    def __enter__(self) -> Self:
        with writing(self.path):
            self._file = self._stack.enter_context(_open_output(self.path, force=self._force))
        self._is_open = True
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                with writing(self.path):
                    self._finish()
                    self._stack.close()
        except BaseException as failure:
            error = failure
            raise
        finally:
            self._is_open = False
            # Closing may fail as well (a full disk); the first error is the one to show.
            with suppress(Exception):
                if error is not None:
                    self._stack.__exit__(type(error), error, error.__traceback__)

    @abstractmethod
    def _write(self, table: Table, filled: Array, extra: Mapping[str, Array]) -> None:
        """Add rows; `filled` is NaN where a cell stays as it is."""

    @abstractmethod
    def _finish(self) -> None:
        """Write what comes last."""

    def _check_exact(self, table: Table, name: str, remedy: str) -> None:
        """Raise OutputError if an observed integer of a column would change as a double."""
        numbers = table.numbers[:, table.numeric.index(name)]
        large = np.flatnonzero(np.abs(numbers) >= EXACT).tolist()
        if large:
            cells = table.column(name)
            integers = np.empty(len(large), dtype=object)
            integers[:] = [parse_integer(cells[i]) for i in large]
            self._refuse_rounded(integers[find_rounded(integers)], name, remedy)

    def _refuse_rounded(self, rounded: NDArray[Any], name: str, remedy: str) -> None:
        """Raise OutputError if there are integers that would be rounded."""
        if len(rounded):
            problem = f'{rounded[0]} in column "{name}" would be rounded to double precision.'
            raise OutputError(self.path, f"{problem} {remedy}")

    def _names(self) -> list[str]:
        return [*self.like.names, *(self._extra or ())]
