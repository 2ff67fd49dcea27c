"""Exit codes, and the errors that lead to them."""

from __future__ import annotations

from enum import IntEnum

from hirank.cli.options import option_name
from hirank.exceptions import InputError, OutputError, ParameterError


class ExitCode(IntEnum):
    """What the program returns to the shell."""

    DEFECT = 1
    USAGE = 2
    INPUT = 3
    OUTPUT = 4
    NO_VALUES = 5
    INTERRUPTED = 130


class NoValuesError(InputError):
    """Every numeric cell of a table is missing."""


def explain_error(error: BaseException) -> tuple[str, ExitCode] | None:
    """Return the message and the exit code of an error; None if it is a defect of hirank."""
    match error:
        case ParameterError():
            return error.message(option_name), ExitCode.USAGE
        case OutputError():
            return str(error), ExitCode.OUTPUT
        case NoValuesError():
            return str(error), ExitCode.NO_VALUES
        case InputError():
            return str(error), ExitCode.INPUT
        case KeyboardInterrupt():
            return "Interrupted. No output was left incomplete.", ExitCode.INTERRUPTED
        case MemoryError():
            remedy = "Fit a model to a part of the rows (hirank fit), and apply it (hirank apply)."
            return f"Not enough memory. {remedy}", ExitCode.INPUT
        case FileNotFoundError():
            return f"{error.filename}: No such file. Check the name and the folder.", ExitCode.INPUT
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror or error}.", ExitCode.OUTPUT
        case ModuleNotFoundError():
            return f'This requires {error.name}: pip install "hirank[cli]"', ExitCode.DEFECT
    return None
