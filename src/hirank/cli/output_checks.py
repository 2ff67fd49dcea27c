"""Checks before the work begins that the outputs can be written."""

from __future__ import annotations

from pathlib import Path

from hirank._typing import PathLike
from hirank.exceptions import OutputError
from hirank.io.output import check_output


def output_for(source: str) -> str:
    """Return the name of the output if none is given: data.csv becomes data.filled.csv."""
    if source == "-":
        return source
    path = Path(source)
    ends = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    suffix = "".join(ends)
    return str(path.with_name(f"{path.name[: len(path.name) - len(suffix)]}.filled{suffix}"))


def check_target(path: PathLike, *, force: bool) -> None:
    """Raise OutputError if `path` is a folder, in none, or a file that may not be overwritten."""
    check_output(path, force=force)
    if not Path(path).resolve().parent.is_dir():
        raise OutputError(path, "The folder does not exist. Create it first.")


def check_outputs(
    *others: PathLike | None,
    source: str,
    force: bool,
    table: PathLike | None = None,
    protected: tuple[PathLike, ...] = (),
) -> None:
    """Raise OutputError if an output cannot be written, or would overwrite an input.

    With `force`, `table` may be the input `source`; no output may be one of the files `protected`.
    """
    inputs = {Path(path).resolve() for path in protected}
    targets: set[Path] = set()
    for target in (table, *others):
        if target is None or str(target) == "-":
            continue
        path = Path(target).resolve()
        if path in targets:
            raise OutputError(target, "Two outputs have this name. Use different names.")
        if path in inputs or (target is not table and path == Path(source).resolve()):
            raise OutputError(target, "This is an input. Use another name.")
        check_target(target, force=force)
        targets.add(path)
