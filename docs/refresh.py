"""Replace what is generated in the documentation: outputs of Python blocks, the list of modules.

    python docs/refresh.py README.md docs/guide.md docs/choosing.md docs/algorithms.md \
        docs/architecture.md

The output of a block is the text block that follows it; blocks without one may print nothing. The
list of modules is the last section of the architecture page, from the first lines of docstrings.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "hirank"
PACKAGES = "cli report io cluster theory baselines estimators persistence selection online models "
PACKAGES += "optim core kernels datasets"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
MODULES = "\n## Modules\n"


def refresh(page: Path) -> None:
    """Replace what is generated in a page."""
    text = page.read_text()
    head, title, _ = text.partition(MODULES)
    page.write_text(head + title + list_modules() if title else run_blocks(text, page.name))


def run_blocks(text: str, name: str) -> str:
    """Run the Python blocks of a page in order, in one namespace and an empty folder."""
    names: dict[str, object] = {}

    def run(match: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match[1], name, "exec"), names)
        if match[2] is None:
            return match[0]
        return f"```python\n{match[1]}```\n\n```text\n{printed.getvalue()}```\n"

    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return BLOCK.sub(run, text)
        finally:
            os.chdir(home)


def list_modules() -> str:
    """Return a table of the modules of each package, with the first line of their docstrings."""
    lines = []
    for name in PACKAGES.split():
        folder = SOURCE / name
        lines += ["", f"**`{name}`**: {_first_line(folder / '__init__.py')}", *_table(folder)]
    lines += ["", "**Modules beside the packages**", *_table(SOURCE, nested=False)]
    return "\n".join(lines) + "\n"


def _table(folder: Path, *, nested: bool = True) -> list[str]:
    paths = folder.rglob("*.py") if nested else folder.glob("*.py")
    modules = sorted(path for path in paths if path.name != "__init__.py")
    rows = [
        f"| `{path.relative_to(folder).with_suffix('').as_posix()}` | {_first_line(path)} |"
        for path in modules
    ]
    return ["", "| module | content |", "|---|---|", *rows]


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.partition("\n")[0].rstrip(".:").replace("``", "`")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        refresh(Path(argument).absolute())
