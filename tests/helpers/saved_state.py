"""States of a stream: compared to the bit, and saved in a file without pickle."""

from pathlib import Path
from typing import Any

import numpy as np

from hirank.persistence.container import read, write


def flatten(state: Any, name: str = "") -> dict[str, Any]:
    """Return the leaves of nested dicts and lists, by their path."""
    if isinstance(state, dict):
        parts = state.items()
    elif isinstance(state, list | tuple):
        parts = enumerate(state)
    else:
        return {name: state}
    return {key: leaf for k, v in parts for key, leaf in flatten(v, f"{name}/{k}").items()}


def differences(one: Any, two: Any) -> list[str]:
    """Return the paths of the leaves that differ, even in the last bit only."""
    a, b = flatten(one), flatten(two)
    return [key for key in sorted(a.keys() | b.keys()) if _bits(a.get(key)) != _bits(b.get(key))]


def _bits(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype, leaf.shape, leaf.tobytes()
    return type(leaf), repr(leaf)


def save(state: Any, path: Path) -> None:
    """Write a state to a file, which appears complete or not at all."""
    write(path, {}, state)


def load(path: Path) -> Any:
    """Return the state that was saved."""
    return read(path)[1]
