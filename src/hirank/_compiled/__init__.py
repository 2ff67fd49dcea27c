"""The compiled core: the functions in which most time is spent, in C++, if they could be built.

The NumPy code is the reference, and runs where there is no compiled core. The sources are compiled
once for each instruction set of the processor, into modules with the same functions; the best one
that the processor supports is loaded at first use. Results are equal to the bit on one instruction
set, and differ by rounding between two. docs/compiled.md says how the core is built and checked.

The environment variable ``HIRANK_COMPILED`` selects a module by name, or none with "off".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Literal

INSTRUCTION_SETS = ("x86_64_v3", "baseline")
"""Names of the modules, the fastest first."""
OFF = "off"
VARIABLE = "HIRANK_COMPILED"

_selected: list[str] = []  # names that `using` has set, the last one counts


def core() -> ModuleType | None:
    """Return the module of compiled functions that is in use; None without one."""
    return _load(_selected[-1] if _selected else os.environ.get(VARIABLE, ""))


def instruction_set() -> str:
    """Return the instruction set of the compiled core that is in use, or "off"."""
    module = core()
    return OFF if module is None else module.__name__.rpartition(".")[2]


def describe() -> str:
    """Return the instruction set in use, or "off" and the reason for it."""
    name = instruction_set()
    if name != OFF:
        return name
    if os.environ.get(VARIABLE) == OFF:
        return f"off ({VARIABLE} is set)"
    problems = [problem for one in INSTRUCTION_SETS if (problem := _import(one)[1])]
    return f"off ({problems[0]})" if problems else "off (it was not built; NumPy is used instead)"


def available() -> list[str]:
    """Return the instruction sets that were compiled and that this processor supports."""
    baseline, _ = _import("baseline")
    if baseline is None:
        return []
    return [name for name in INSTRUCTION_SETS if baseline.supports(name) and _import(name)[0]]


@contextmanager
def using(name: str) -> Iterator[None]:
    """Use one instruction set, or none with "off", in a block: for tests and measurements."""
    _load(name)
    _selected.append(name)
    try:
        yield
    finally:
        _selected.pop()


def fingerprint(folder: Path) -> str:
    """Return a hash of the sources in a folder, which a module built from them carries.

    It is empty where there are no sources, as in a wheel.
    """
    sources = sorted([*folder.glob("*.cpp"), *folder.glob("*.h")])
    if not sources:
        return ""
    digest = hashlib.sha256()
    for path in sources:
        # Line ends are those of the checkout, not of the source.
        digest.update(path.name.encode() + b"\0" + b"\n".join(path.read_bytes().splitlines()))
    return "_" + digest.hexdigest()[:16]


@cache
def _load(name: str) -> ModuleType | None:
    if name == OFF:
        return None
    found = available()
    if not name:
        _warn_of_problems(found)
        return _import(found[0])[0] if found else None
    if name not in found:
        names = ", ".join([*found, OFF])
        raise ImportError(f"{VARIABLE} must be one of {names} on this machine; got {name!r}.")
    return _import(name)[0]


@cache
def _import(name: str) -> tuple[ModuleType | None, str]:
    """Return a module, or None and what is wrong with it; nothing is wrong if it was not built."""
    spec = find_spec(f"hirank._compiled.{name}")
    if spec is None or spec.origin is None:
        return None, ""
    if _is_cut_off(spec.origin):
        return None, f"{name} cannot be loaded: the file is cut off"
    try:
        module = import_module(spec.name)
    except ImportError as error:  # damaged, or linked with libraries that are not here
        return None, f"{name} cannot be loaded: {error}"
    expected = fingerprint(Path(__file__).parent)
    if expected and getattr(module, "fingerprint", "") != expected:
        return None, f"{name} was built from other sources than those beside it"
    return module, ""


def _is_cut_off(path: str) -> bool:
    """Return whether an ELF file of 64 bits ends before its last part, the table of sections.

    The loader of Linux does not check that, and the process would end with a bus error.
    """
    with open(path, "rb") as file:
        header = file.read(64)
        size = file.seek(0, os.SEEK_END)
    if header[:5] != b"\x7fELF\x02":
        return False
    if len(header) < 64:
        return True
    order: Literal["little", "big"] = "little" if header[5] == 1 else "big"
    offset, entry, count = (
        int.from_bytes(header[a:b], order) for a, b in ((40, 48), (58, 60), (60, 62))
    )
    return offset + entry * count > size


def _warn_of_problems(found: list[str]) -> None:
    from hirank.exceptions import CompiledCoreWarning, warn

    problems = [problem for name in INSTRUCTION_SETS if (problem := _import(name)[1])]
    if problems:
        warn(CompiledCoreWarning(problems[0], found[0] if found else "NumPy"))
