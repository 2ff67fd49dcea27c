"""What ends a command: exit codes that mean something, and one sentence instead of a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hirank.exceptions import OutputError

UNEXPECTED, USAGE, BAD_INPUT, CANNOT_WRITE, NOTHING_FILLED, INTERRUPTED = 1, 2, 3, 4, 5, 130


class Failure(Exception):
    """Ends the program with a message and an exit code."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def ending() -> Iterator[None]:
    """Turn what may go wrong in a command into a sentence on standard error and an exit code.

    Whatever hirank raises for bad input is a ValueError with a sentence that says what to do;
    anything else is a mistake of ours, and its traceback helps to find it.
    """
    try:
        yield
    except Failure as failure:
        _end(str(failure), failure.code)
    except KeyboardInterrupt:
        _end("Interrupted; nothing was left half written.", INTERRUPTED)
    except BrokenPipeError:
        # Whoever read the output has enough. Python would complain once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _end("Not enough memory: give fewer rows, or learn from a part (fit) and apply.", BAD_INPUT)
    except FileNotFoundError as error:
        _end(f"There is no file {str(error.filename)!r}: check its name and folder.", BAD_INPUT)
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        _end(f"{error.strerror or error}{where}.", CANNOT_WRITE)
    except ModuleNotFoundError as error:
        _end(f'This needs {error.name}: pip install "hirank[cli]"', UNEXPECTED)
    except (ValueError, TypeError) as error:
        if not _ours(error):
            raise
        _end(str(error), CANNOT_WRITE if isinstance(error, OutputError) else BAD_INPUT)


def _ours(error: BaseException) -> bool:
    """Whether the error was raised on purpose, by hirank or by scikit-learn's checks."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return str(name).startswith(("hirank.", "sklearn.utils.", "sklearn.base"))


def _end(message: str, code: int) -> None:
    sys.stderr.write(f"hirank: {message}\n")
    sys.exit(code)
