"""States of a stream: compared to the bit, and kept in a file without pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np


def flat(state: Any, name: str = "") -> dict[str, Any]:
    """The leaves of nested dicts and lists, by their path."""
    if isinstance(state, dict):
        parts = state.items()
    elif isinstance(state, list | tuple):
        parts = enumerate(state)
    else:
        return {name: state}
    return {key: leaf for k, v in parts for key, leaf in flat(v, f"{name}/{k}").items()}


def differences(one: Any, two: Any) -> list[str]:
    """Paths of the leaves that differ, be it in the last bit."""
    a, b = flat(one), flat(two)
    return [key for key in sorted(a.keys() | b.keys()) if _bits(a.get(key)) != _bits(b.get(key))]


def _bits(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype, leaf.shape, leaf.tobytes()
    return type(leaf), repr(leaf)


def save(state: Any, path: Path) -> None:
    """Numbers and words as JSON, arrays beside them; the file is there as a whole or not at all."""
    arrays: dict[str, np.ndarray] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list):
            return [plain(part) for part in value]
        if isinstance(value, np.ndarray):
            arrays[f"a{len(arrays)}"] = value
            return {"array": f"a{len(arrays) - 1}"}
        return value

    text = json.dumps(plain(state))
    new = path.with_suffix(".new")
    with new.open("wb") as file:
        np.savez(file, allow_pickle=False, text=np.array(text), **arrays)
    os.replace(new, path)


def load(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return [whole(part) for part in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return arrays[value["array"]]
        return {key: whole(part) for key, part in value.items()}

    return whole(json.loads(str(arrays.pop("text"))))
