"""The command line: one module per command, imported when it is called."""

import sys

NEEDED = {"typer", "rich", "pyarrow"}


def main() -> None:
    """Run the program; if a package is missing, print in one line how to install it."""
    try:
        from hirank.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f'The command line requires {error.name}: pip install "hirank[cli]"')
    app()
