"""The command line: one file a command, imported when it is called."""

import sys

NEEDED = {"typer", "rich", "pyarrow"}


def main() -> None:
    """Run the program; without its packages, say in one line what to install."""
    try:
        from hirank.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        sys.exit(f'The command line needs {error.name}: pip install "hirank[cli]"')
    app()
