"""Signals that end a stream after its state was saved."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType
from typing import Any, Self


class Signals:
    """Turns SIGTERM, SIGINT and SIGHUP into a request to stop; a second one ends the program."""

    def __init__(self) -> None:
        self.requested, self.number = False, 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)
        self._wake = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._old[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake)
        os.close(self._read)
        os.close(self._write)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested, self.number = True, number
        signal.signal(number, signal.SIG_DFL)

    def wait(self, seconds: float | None, *fds: int) -> bool:
        """Wait for input, a signal, or the end of the time; return whether there is input."""
        if self.requested:
            return False
        ready, _, _ = select.select([self._read, *fds], [], [], seconds)
        if self._read in ready:
            with suppress(BlockingIOError):
                os.read(self._read, 64)
        return not self.requested and any(fd in ready for fd in fds)
