"""Hooks of mkdocs: pages from files outside of docs/, and the gallery from examples/.

README, CONTRIBUTING, CHANGELOG and the scripts of examples/ exist once, where a reader of the
repository looks for them; the site includes them under the names below.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
PAGES |= {"CHANGELOG.md": "changelog.md", "examples/README.md": "gallery.md"}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are generated from files outside of docs/."""
    for source, page in PAGES.items():
        text = gallery() if page == "gallery.md" else (ROOT / source).read_text()
        text = LINK.sub(lambda match, source=source: _relink(match, source), text)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to files outside of docs/ to their page, or replace them by their text."""
    if page.file.src_uri in PAGES.values():
        return markdown
    return LINK.sub(lambda match: _relink(match, f"docs/{page.file.src_uri}"), markdown)


def gallery() -> str:
    """Return a page with the scripts of examples/: docstring and code."""
    parts = ["# Gallery\n"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text()
        title = path.stem.replace("_", " ").capitalize()
        about = ast.get_docstring(ast.parse(code)) or ""
        body = code.split('"""', 2)[2].strip()
        parts.append(f"## {title}\n\n{about}\n\n```python\n{body}\n```\n")
    return "\n".join(parts)


def _relink(match: re.Match[str], source: str) -> str:
    label, (target, mark, anchor) = match[1], match[2].partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if path in PAGES:
        target = PAGES[path]
    elif path.startswith("docs/"):
        target = path.removeprefix("docs/")
    else:
        return f"{label} (`{path}`)" if label != path else f"`{path}`"
    if source.startswith("docs/"):
        target = posixpath.relpath(target, posixpath.dirname(source.removeprefix("docs/")) or ".")
    return f"[{label}]({target}{mark}{anchor})"
