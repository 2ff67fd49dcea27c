"""Fingerprints of the code that a cell depends on, by which runs of other code are recognized."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import hirank
from reproduction.cells import Cell
from reproduction.methods import ESTIMATORS

ROOTS = {"hirank": Path(hirank.__file__).parent, "reproduction": Path(__file__).parent}
REPORTING = {
    f"hirank.estimators.{name}"
    for name in ("callbacks", "fitted", "plot_data", "saving", "summary", "uncertainty")
}
"""How models are stored and described, which changes no imputed value."""
BELOW_ESTIMATORS = ("hirank.core", "hirank.kernels", "hirank.optim", "hirank.exceptions")
"""What the shared parts of estimators (validation, scaling) compute with."""
BESIDE_METHODS = (
    *("reproduction", "hirank.cluster", "hirank.datasets", "hirank.metrics", "hirank.theory"),
    *BELOW_ESTIMATORS,
)
"""What tasks compute with, apart from the method of a cell."""
NOT_FOLLOWED = {"reproduction.methods", "reproduction.published"}
"""Modules that lead from a task to every method."""


def fingerprint(cell: Cell) -> str:
    """Return a fingerprint of the code that the numbers of a cell depend on.

    That is the module of its estimator and of its task, and the modules that these import. Comments
    and docstrings do not count. A change in one estimator leaves the runs of others as they are.
    """
    return _fingerprint(ESTIMATORS[cell.method.estimator].__module__, cell.task)


@cache
def _fingerprint(estimator: str, task: str) -> str:
    names = find_method_modules(estimator) | find_task_modules(f"reproduction.tasks.{task}")
    digest = hashlib.sha256()
    for name in sorted(names - REPORTING):
        digest.update(f"{name}\n{_read_code(name)}\n".encode())
    return digest.hexdigest()[:12]


def find_method_modules(start: str) -> set[str]:
    """Return the modules that an estimator depends on, from the one that defines it."""

    def follow(name: str) -> Iterator[str]:
        shared = name.startswith("hirank.estimators") and name != start
        return (one for one in _imports(name) if not shared or one.startswith(BELOW_ESTIMATORS))

    return _reach(start, follow)


def find_task_modules(start: str) -> set[str]:
    """Return the modules that a task depends on, without those of methods."""

    def follow(name: str) -> Iterator[str]:
        return (
            one
            for one in _imports(name)
            if one.startswith(BESIDE_METHODS) and one not in NOT_FOLLOWED
        )

    return _reach(start, follow)


def _reach(start: str, follow: Callable[[str], Iterator[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found and _find_file(name) is not None:
            found.add(name)
            waiting += follow(name)
    return found


@cache
def _find_file(name: str) -> Path | None:
    """Return the file of a module of hirank or of the reproduction; None for others."""
    first, *others = name.split(".")
    if first not in ROOTS:
        return None
    path = ROOTS[first].joinpath(*others)
    files = [path / "__init__.py"] + ([path.with_suffix(".py")] if others else [])
    return next((file for file in files if file.exists()), None)


@cache
def _imports(name: str) -> tuple[str, ...]:
    file = _find_file(name)
    assert file is not None
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [one if _find_file(one) else node.module for one in inner]
    return tuple(found)


@cache
def _read_code(name: str) -> str:
    """Return the code of a module without comments, docstrings and formatting."""
    file = _find_file(name)
    assert file is not None
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a string alone: a docstring, or one below a constant."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
