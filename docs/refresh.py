"""Run the Python blocks of pages, and replace the outputs shown below them.

    python docs/refresh.py README.md docs/guide.md docs/choosing.md

The output of a block is the text block that follows it; blocks without one may print nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def refresh(page: Path) -> None:
    """Run the blocks of a page in order, in one namespace and an empty folder."""
    names: dict[str, object] = {}

    def run(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match[1], str(page), "exec"), names)
        if match[2] is None:
            return match[0]
        return f"```python\n{match[1]}```\n\n```text\n{printed.getvalue()}```\n"

    text, home = page.read_text(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            text = BLOCK.sub(run, text)
        finally:
            os.chdir(home)
    page.write_text(text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name).absolute())
