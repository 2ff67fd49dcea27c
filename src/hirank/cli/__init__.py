"""The command line: one module per command, imported when it is called."""

import gc
import json
import os
import sys
from typing import Any

NEEDED = {"typer", "rich", "pyarrow"}
GARBAGE = 50_000  # new objects after which Python looks for garbage, of which imports make none


def main() -> None:
    """Run the program; if a package is missing, print in one line how to install it."""
    open_closed_streams()
    gc.set_threshold(GARBAGE)
    try:
        from hirank.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f'The command line requires {error.name}: pip install "hirank[cli]"')
    if "--json" in sys.argv[1:]:
        _run_with_json(app)
    app()


def open_closed_streams() -> None:
    """Occupy the descriptors of closed standard streams, which files would get otherwise.

    As in other programs of the shell, reading and writing such a stream is an error; only messages
    for a closed standard error are dropped.
    """
    for descriptor, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, flags)  # the lowest one that is free: this one
            os.set_inheritable(opened, True)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - for the life of the process


def _run_with_json(app: Any) -> None:
    """Run the program; print wrong options as JSON, as all other errors."""
    try:
        sys.exit(app(standalone_mode=False))
    except Exception as error:
        # The class is click's, of which typer has a copy of its own in later versions.
        if not hasattr(error, "format_message"):
            raise
        code = int(getattr(error, "exit_code", 2))
        print_json_error(error.format_message(), code)
        sys.exit(code)


def print_json_error(message: str, code: int, **facts: Any) -> None:
    """Print an error to standard error as one JSON object."""
    sys.stderr.write(json.dumps({"error": message, "exit_code": code, **facts}) + "\n")
    sys.stderr.flush()
