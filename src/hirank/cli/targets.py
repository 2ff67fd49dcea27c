"""Whether results can be written where they are wanted, asked before the work begins."""

from __future__ import annotations

from pathlib import Path

from hirank.cli.errors import CANNOT_WRITE, Failure


def check_targets(source: str, *targets: str | Path | None, force: bool) -> None:
    """Raise if an output exists, is the input, is named twice, or lies in no folder."""
    seen: list[Path] = []
    for target in targets:
        if target is None or str(target) == "-":
            continue
        path = Path(target).resolve()
        if path in seen:
            raise Failure(f"{target} is to be written twice: give different names.", CANNOT_WRITE)
        seen.append(path)
        if path.is_dir():
            raise Failure(f"{target} is a folder: add a file name.", CANNOT_WRITE)
        if not path.parent.is_dir():
            raise Failure(f"There is no folder {path.parent}: create it first.", CANNOT_WRITE)
        if path.exists() and not force:
            what = (
                "the input itself" if source != "-" and path == Path(source).resolve() else "there"
            )
            raise Failure(f"{target} is {what}: --force overwrites it.", CANNOT_WRITE)
