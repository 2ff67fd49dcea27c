"""The memory that a table may take: what a file declares is checked before it is read."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hirank._typing import PathLike
from hirank.exceptions import FileError, ParameterError

SHARE = 0.5
"""Share of the machine's memory that a table may take; a fit needs the rest."""
CELL = 16
"""Bytes of a number in memory: as it is parsed, and in the table of all columns."""
_FALLBACK = 4 << 30  # where the system does not report its memory
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class MemoryLimit:
    """The memory in bytes that reading a table may take.

    Examples
    --------
    >>> from hirank.io.memory import MemoryLimit
    >>> MemoryLimit.parse("1.5G").size
    1610612736
    >>> MemoryLimit.parse("1K").check("t.npy", 5000)
    Traceback (most recent call last):
      ...
    hirank.exceptions.FileError: t.npy: The table would take about 4.9K of memory, but the limit \
is 1.0K. If the file is what you expect, raise the limit (max_memory, --max-memory).
    """

    size: int = field(default_factory=lambda: int(SHARE * _machine_memory()))

    @classmethod
    def parse(cls, size: int | str | None) -> MemoryLimit:
        """Return the limit that a number of bytes or a text such as "4G" stands for."""
        if size is None:
            return cls()
        found = _SIZE.fullmatch(str(size).strip())
        if found is None or float(found[1]) <= 0:
            raise ParameterError("max_memory", f"must be a size such as 4G or 500M; got {size!r}.")
        return cls(int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")))

    def check(self, path: PathLike, needed: float, what: str = "The table") -> None:
        """Raise FileError if `needed` bytes are more than the limit."""
        if needed > self.size:
            raise FileError(
                path,
                f"{what} would take about {format_size(needed)} of memory, but the limit is "
                f"{format_size(self.size)}. If the file is what you expect, raise the limit "
                "(max_memory, --max-memory).",
            )


def format_size(size: float) -> str:
    """Return a number of bytes as text that `MemoryLimit.parse` reads."""
    unit = 0
    while size >= 1024 and unit < 4:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}{' KMGT'[unit].strip()}"


def _machine_memory() -> int:
    """Return the memory of the machine, or of the container if that has less."""
    sizes = []
    with suppress(AttributeError, ValueError, OSError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in _CGROUPS:
        with suppress(ValueError, OSError):  # "max" is no number
            sizes.append(int(Path(name).read_text()))
    return min(sizes, default=_FALLBACK)
