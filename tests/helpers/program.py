"""The program in this process, which is faster than in one of its own."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from hirank.cli.app import app


def invoke(*arguments: str | float | Path) -> Any:
    """Run `hirank ARGUMENTS`; return the result, whose `output` includes standard error."""
    try:
        runner = CliRunner(mix_stderr=False)
    except TypeError:  # click 8.2 and later keep them apart
        runner = CliRunner()
    return runner.invoke(app, [str(argument) for argument in arguments])
