"""Whether results can be written where they are wanted, asked before the work begins."""

from __future__ import annotations

from pathlib import Path

from hirank.cli.errors import CANNOT_WRITE, Failure


def check_targets(
    source: str,
    *targets: str | Path | None,
    force: bool,
    table: str | Path | None = None,
    keep: tuple[str | Path, ...] = (),
) -> None:
    """Raise if an output exists, is the input, is named twice, or lies in no folder.

    With `force`, only `table`, the filled table, may take the place of the input; nothing may take
    that of the files in `keep`.
    """
    spared = [Path(path).resolve() for path in keep]
    if source != "-":
        spared.append(Path(source).resolve())
    seen: list[Path] = []
    for target in (table, *targets):
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
        if path in spared and path.exists():
            if target is not table or path in spared[: len(keep)]:
                raise Failure(
                    f"{target} would overwrite an input: give another name.", CANNOT_WRITE
                )
            if not force:
                raise Failure(f"{target} is the input itself: --force overwrites it.", CANNOT_WRITE)
        if path.exists() and not force:
            raise Failure(f"{target} is there: --force overwrites it.", CANNOT_WRITE)
