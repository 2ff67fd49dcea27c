"""Writing a table: to a temporary file beside, renamed when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, BinaryIO, Self, cast

import numpy as np
from numpy.typing import NDArray

from hirank._typing import Array
from hirank.io.errors import FileError, OutputError, Path, writing
from hirank.io.table import Table, TableFile

__all__ = ["Replacement", "Writer"]


class Replacement:
    """A file that appears under its name only when it is complete.

    What is not a regular file (a device, a pipe, standard output as "-") is written at once.

    Parameters
    ----------
    path : str or path
    source : str or path
        The file the table comes from.
    force : bool
        Whether a file that is there may be replaced. Its permissions stay, and a link stays a link.
    """

    def __init__(self, path: Path, source: Path, *, force: bool) -> None:
        self.path = path
        self.force = force
        self._target = os.path.realpath(path)
        self._temporary: str | None = None
        self.file: BinaryIO | None = None
        self.direct = os.fspath(path) == "-"
        if not self.direct and os.path.exists(path):
            self._check_present(source)

    def _check_present(self, source: Path) -> None:
        if os.path.isdir(self.path):
            raise OutputError(f"{self.path}: this is a folder; name a file in it")
        self.direct = not stat.S_ISREG(os.stat(self.path).st_mode)
        if self.direct or self.force:
            return
        if os.path.exists(source) and os.path.samefile(self.path, source):
            raise OutputError(
                f"{self.path}: this is the input; write to another file, or replace it with --force"
            )
        raise OutputError(
            f"{self.path}: there is such a file already; choose another name, or replace it with "
            "--force"
        )

    def open(self) -> BinaryIO:
        """Where to write; the file so far, if any, is thrown away."""
        with writing(self.path):
            if os.fspath(self.path) == "-":
                self.file = cast("BinaryIO", sys.stdout.buffer)
            elif self.direct:
                self.file = open(self.path, "wb")  # noqa: SIM115 - closed by commit or discard
            else:
                self.discard()
                folder, name = os.path.split(self._target)
                beside = f".{name[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp"
                self._temporary = os.path.join(folder, beside)
                self.file = open(self._temporary, "x+b")  # noqa: SIM115
                if os.path.exists(self._target):
                    os.chmod(self._temporary, stat.S_IMODE(os.stat(self._target).st_mode))
        return self.file

    def renew(self) -> tuple[BinaryIO, Replacement]:
        """Another file to write instead, and the one so far, still open to read, to discard."""
        old = Replacement.__new__(Replacement)
        old.__dict__.update(self.__dict__)
        self.file = self._temporary = None
        return self.open(), old

    def commit(self) -> None:
        """The file is complete: give it its name."""
        assert self.file is not None
        with writing(self.path):
            self.file.flush()
            if self.direct:
                self._close()
                return
            os.fsync(self.file.fileno())
            self._close()
            assert self._temporary is not None
            if not self.force and os.path.exists(self._target):
                self.discard()
                raise OutputError(
                    f"{self.path}: somebody wrote this file meanwhile; choose another name, or "
                    "replace it with --force"
                )
            os.replace(self._temporary, self._target)
            self._temporary = None
            with contextlib.suppress(OSError):  # not every file system can sync a folder
                folder = os.open(os.path.dirname(self._target), os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def discard(self) -> None:
        """Remove what was written."""
        with contextlib.suppress(OSError):
            self._close()
        if self._temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)
            self._temporary = None

    def _close(self) -> None:
        if self.file is not None and os.fspath(self.path) != "-":
            file, self.file = self.file, None
            file.close()


class Writer(ABC):
    """Writes a completed table part by part; a context manager made by `create`.

    Nothing is left behind unless the ``with`` block ends without an error.
    """

    def __init__(self, output: Replacement, like: TableFile, digits: int | None) -> None:
        self.path = output.path
        self.like = like
        self.digits = digits
        self._output = output
        self._extra: tuple[str, ...] | None = None
        self._open = False

    def write(
        self, table: Table, filled: NDArray[Any], extra: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        """Add rows.

        Parameters
        ----------
        table : Table
            As it was read.
        filled : (n, v)
            The numbers for the cells that are missing; NaN leaves a cell as it is. The cells that
            are not missing are written as they stand, whatever is here.
        extra : mapping of name to (n,), optional
            Columns to append, the same in every call.
        """
        if not self._open:
            raise RuntimeError("a writer is to be used in a with block")
        filled = np.asarray(filled, dtype=float)
        if filled.shape != table.numbers.shape:
            raise ValueError(f"filled is {filled.shape}, the numbers are {table.numbers.shape}")
        if np.isinf(filled[np.isnan(table.numbers)]).any():
            raise ValueError("filled holds infinite values; a fill is a finite number or NaN")
        columns = {name: np.asarray(a, dtype=float) for name, a in (extra or {}).items()}
        for name, values in columns.items():
            if values.shape != (len(table),):
                raise ValueError(
                    f'extra column "{name}" is {values.shape}, expected {(len(table),)}'
                )
            if name in table.names:
                raise OutputError(f'{self.path}: the table has a column "{name}" already')
        if self._extra is not None and self._extra != tuple(columns):
            raise ValueError(f"extra columns {list(columns)} after {list(self._extra)}")
        self._extra = tuple(columns)
        with writing(self.path):
            self._write(table, np.where(np.isnan(table.numbers), filled, np.nan), columns)

    def __enter__(self) -> Self:
        self._output.open()
        self._open = True
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._open = False
        if kind is not None:
            self._abandon()
            return
        try:
            with writing(self.path):
                self._finish()
            self._output.commit()
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        # Closing may fail for the same reason (a full disk); the first error is the one to show.
        with contextlib.suppress(Exception):
            self._release()
        self._output.discard()

    @abstractmethod
    def _write(self, table: Table, fills: Array, extra: Mapping[str, Array]) -> None:
        """Add rows; `fills` is NaN where a cell stays as it is."""

    def _finish(self) -> None:
        """Write what comes last."""
        self._release()

    def _release(self) -> None:  # noqa: B027 - most writers hold nothing
        """Close what stands between the writer and the file."""

    @property
    def _file(self) -> BinaryIO:
        assert self._output.file is not None
        return self._output.file

    def _names(self) -> list[str]:
        return [*self.like.names, *(self._extra or ())]

    def _numbers_only(self, table: Table, kind: str) -> None:
        if table.text:
            raise FileError(
                f'{self.path}: {kind} holds numbers only, and the column "{table.text[0]}" is '
                "not numeric; write CSV or Parquet"
            )
