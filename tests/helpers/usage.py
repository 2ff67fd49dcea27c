"""Time and memory that a block of code takes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Usage:
    """What a block took; set at its end."""

    seconds: float = 0.0  # of CPU: other programs do not count
    megabytes: float = 0.0  # growth of the resident memory at its peak; 0 where it is not known


@contextmanager
def measured() -> Iterator[Usage]:
    """Measure the block; memory only on Linux, whose peak can be reset."""
    usage = Usage()
    if CLEAR.exists():
        CLEAR.write_text("5")  # the peak is now what is resident
    before, began = _peak_kilobytes(), process_time()
    try:
        yield usage
    finally:
        usage.seconds = process_time() - began
        usage.megabytes = (_peak_kilobytes() - before) / 1000


def _peak_kilobytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+)", STATUS.read_text()) if STATUS.exists() else None
    return int(found[1]) if found else 0
